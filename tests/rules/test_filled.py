"""GM411: what is filled with a number out of a tensor is filled with that tensor, where that is the same."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


def anchors(levels, strides):
    every = []
    for i in range(len(levels)):
        stride = strides[i]
        h, w = levels[i].shape[-2:]
        every.append(levels[0].new_full((h * w, 1), stride, dtype=levels[0].dtype))
    return torch.cat(every)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.strides = torch.tensor([8.0, 16.0])
        self.sizes = [3, 5]

    def forward(self, x: torch.Tensor, t: torch.Tensor, n=3):
        {body}
        return x
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (
            "return anchors([x, x[:, ::2]], self.strides) + x.sum()",
            ["torch.randn(4, 6), None", "torch.randn(8, 2), None"],
        ),
        ("y = t.mean()\n        x = x + torch.full_like(x, y)", ["torch.randn(4), torch.tensor([1.5, 2])"]),
        (
            "y = t.amax()\n        x = torch.full_like(input=x, fill_value=y, dtype=y.dtype) + x.new_full((2, 1), y)",
            ["torch.randn(4), torch.tensor([1.5, float('nan')])", "torch.randn(0), torch.tensor([0.1])"],
        ),
        (
            "y = t.any()\n        x = x * x.new_full((), y, dtype=torch.bool, device=x.device)",
            ["torch.randn(4), torch.tensor([True, False])"],
        ),
    ],
)
def test_the_tensor_is_filled_with_the_tensor(body: str, inputs: list[str]) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert ".fill_(" in after
    behaves(before, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=(Scenario(False, "off"),))


@pytest.mark.parametrize(
    "given",
    [
        "torch.randn(3), torch.tensor(2.5, requires_grad=True)",  # needs a gradient: raises in eager mode
        "torch.randn(3), torch.tensor([2.5])",  # is not 0-dim: raises
        "torch.randn(3).half(), torch.tensor(1e30)",  # does not fit: raises
        "torch.zeros(3, dtype=torch.int64), torch.tensor(2.7)",  # is truncated
        "torch.randn(3), 2.5",
        "torch.randn(3), True",
        "torch.randn(3), torch.tensor(2.5, dtype=torch.float64)",
    ],
)
def test_values_for_which_it_is_not_the_same_are_left_to_the_author(given: str) -> None:
    before = model("x = x + torch.full_like(x, t) + x.new_full((2, 1), t)")
    after, _ = fixed(before)
    assert ".fill_(" in after
    behaves(before, after, [given], scenarios=(Scenario(False, "off"),))
    compiles(after, [given], strict=False, scenarios=(Scenario(False, "off"),))


@pytest.mark.parametrize(
    "body",
    [
        "x = x + torch.full_like(x, self.sizes[0])",
        "x = x + x.new_full((2, 1), n)",
        "x = x + torch.full_like(x, float('inf')) + torch.full_like(x, -1e9)",
        "x = x + x.new_full((1,), x.size(0)) + x.new_full((), x.dim() + 1)",
        "y = t.mean()\n        x = x + torch.full_like(x, y, memory_format=torch.preserve_format)",
        "y = t.mean()\n        x = x + x.new_full((), y, requires_grad=True)",
        "y = t.mean()\n        x = x + self.full_like(x, y)",
        "y = t.mean()\n        x = x + torch.full_like(x, y, device='cpu')",
    ],
)
def test_numbers_and_what_cannot_be_filled_are_no_such_place(body: str) -> None:
    found = checked(model(body)).findings
    assert not [each for each in found if each.function == "Model.forward"]


def test_a_value_that_is_computed_on_the_spot_is_declined() -> None:
    declined(model("x = x + torch.full_like(x, t.mean())"), "`t.mean()` would be computed twice")
