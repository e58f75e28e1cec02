"""Rows and numbers that only the data tells (GM802), where compiling a gradient of what is made of them ends with an
error."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, k: torch.Tensor):
        h = self.lin(x)
        rows = {rows}
        return {result}
"""
_GIVEN = ["torch.ones(3, 4), torch.tensor([1, 2])", "torch.ones(3, 4) * 2, torch.tensor([1, 1])"]
_CHOSEN, _MADE = "x[x[:, 0] > 0]", "h.new_zeros(int(k.max()), 4)"
_OFF = "not torch.is_grad_enabled()"
_TRAINING = [Scenario(True, "parameters")]


def _after(rows: str, result: str) -> str:
    return fixed(_MODEL.format(rows=rows, result=result), opaque=True, select=("GM802",))[0]


@pytest.mark.parametrize(
    ("rows", "result"),
    [
        ("self.lin(x[x[:, 0] > 0])", "rows.cumsum(0).sum()"),
        ("x[x[:, 0] > 0] @ self.lin.weight", "rows.prod(0).sum()"),
        ("torch.mul(x[x[:, 0] > 0], h[0])", "rows.cumsum(0).sum()"),
        ("x[x[:, 0] > 0].mul(h[0])", "rows.cumsum(0).sum()"),
    ],
)
def test_a_gradient_of_weights_that_rows_meet_is_asked_for(rows: str, result: str) -> None:
    after = _after(rows, result)
    assert _OFF in after
    compiles(after, _GIVEN, scenarios=[Scenario(False, "off")])
    assert not list(compiled_differences(after, _GIVEN, scenarios=_TRAINING, backend="aot_eager"))


def test_rows_that_meet_numbers_alone_ask_for_the_gradient_of_their_tensor() -> None:
    after = _after(_CHOSEN, "torch.exp(rows * 2 + 1).clamp(max=3).cumsum(0).sum() + h")
    assert "not (torch.is_grad_enabled() and x.requires_grad)" in after
    compiles(after, _GIVEN, scenarios=_TRAINING)


@pytest.mark.parametrize(
    ("rows", "result"),
    [
        ("self.lin(x[x[:, 0] > 0])", "(rows @ rows.t()).softmax(-1).sum()"),
        ("self.lin(x[x[:, 0] > 0])", "torch.log_softmax(torch.matmul(rows, rows.t()), -1).mean()"),
        (_CHOSEN, "torch.cat([h, rows])"),
        (_MADE, "torch.cat((h, rows)) * 2"),
        ("x[:, x[0] > 0]", "torch.cat([h, rows], 1)"),
        (_CHOSEN, "torch.cat([h.unsqueeze(0), rows.unsqueeze(0)], 1)"),
        (_CHOSEN, "torch.cat([h[None], rows[None]], 1)"),
        (_CHOSEN, "torch.cat([h.t(), rows.t()], dim=1)"),
        (_CHOSEN, "torch.cat([h.view(1, 3, 4), rows * x.new_ones(1, 1, 4)], dim=1)"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_inductor_cannot_compile_with_a_gradient_asks_for_none(rows: str, result: str) -> None:
    after = _after(rows, result)
    assert _OFF in after
    compiles(after, _GIVEN, scenarios=[Scenario(False, "off")])
    assert not list(compiled_differences(after, _GIVEN[:1], scenarios=_TRAINING, backend="inductor"))


@pytest.mark.parametrize(
    ("rows", "result"),
    [
        (_CHOSEN, "torch.cat([rows, rows * 2]).sum(0) + h"),
        (_CHOSEN, "torch.cat([x.new_zeros(1, 4), rows]).sum(0) + h"),
        (_CHOSEN, "torch.cat([h[x[:, 0] > 0], rows], 1).sum(0)"),
        (_CHOSEN, "torch.cat([h[x[:, 0] > 0].unsqueeze(1), (rows * 2).exp()[:, None]], dim=1).sum(0)"),
        ("x.argmax(1)[x[:, 0] > 0]", "torch.cat([h.argmax(1), rows]).sum() + h"),
        ("self.lin(x[x[:, 0] > 0])", "(rows @ rows.t()).sum() + h.softmax(-1)"),
        ("self.lin(x[x[:, 0] > 0])", "rows.softmax(-1).sum(0) + h @ h.t()[:, :1]"),
    ],
)
def test_what_inductor_compiles_is_in_the_graph_with_its_gradient(rows: str, result: str) -> None:
    after = _after(rows, result)
    assert "is_grad_enabled" not in after
    compiles(after, _GIVEN, scenarios=_TRAINING)
