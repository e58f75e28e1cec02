"""Numbers that buffers hold (GM802): with a gradient, read twice, written in between."""

from __future__ import annotations

import pytest

from tests.rules.unbacked_models import CODE, TRAINING
from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(2))
        self.register_buffer("sizes", torch.tensor([1, 3]))

    def forward(self, x: torch.Tensor):
        {lines}
"""
_X = ["torch.randn(3, 4)", "torch.randn(2, 4)"]


def _after(*lines: str) -> str:
    after = fixed(_MODEL.format(lines="\n        ".join(lines)), **CODE)[0]
    assert "_in_graph(" in after
    return after


@pytest.mark.parametrize(
    "line",
    [
        "return F.pad(x * 2, (self.n, 0)).sin()",
        "return F.pad(x * 2, (int(self.n), int(self.n))).sin()",
        "return torch.zeros(int(self.n), 4).sum() + x * int(self.n.view(1))",
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_compiles_sizes_that_buffers_hold_and_their_gradient(line: str) -> None:
    assert not list(compiled_differences(_after(line), _X[:1], scenarios=TRAINING, backend="inductor"))


@pytest.mark.parametrize(
    "lines",
    [
        ("a, b = torch.zeros(int(self.n), 4), torch.ones(int(self.n), 4)", "return x.sum() * (a + b)"),
        ("a = torch.zeros(int(self.n))", "return x.sum() * (a + torch.ones(int(self.n.view(1)[0])))"),
    ],
)
def test_a_number_that_is_read_twice_is_one_size(lines: tuple[str, ...]) -> None:
    compiles(_after(*lines), _X, scenarios=TRAINING, dynamic=None)


@pytest.mark.parametrize(
    "lines",
    [
        ("a = torch.ones(int(self.n))", "self.n.add_(1)", "return x.sum() * a.sum() + torch.ones(int(self.n)).sum()"),
        ("return x.sum() * torch.ones(int(self.sizes[0])).sum() - torch.ones(int(self.sizes[1])).sum()",),
        ("n = (self.n + 256).view(1)", "return x * int(n) + int(n.view(torch.uint8)[0]) + torch.zeros(int(n)).sum()"),
    ],
)
def test_what_is_written_between_reads_or_lies_elsewhere_is_another_number(lines: tuple[str, ...]) -> None:
    compiles(_after(*lines), _X, scenarios=[Scenario(False, "off")])


def test_a_number_is_read_in_inference_mode() -> None:
    after = _after("return x * int(self.n) + torch.zeros(int(self.n), 1).sum()")
    compiles(after, _X, scenarios=[Scenario(False, "inference")])
