"""Sums that are written under a mask: all elements are computed, with nothing in the place of those it leaves out."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed

_MODEL = """
import math

import torch
from torch import nn


class Model(nn.Module):
    offset = 0.5

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.5]))

    def forward(self, x: torch.Tensor, y: torch.Tensor, keep: torch.BoolTensor):
        y = y * 1
        {write}
        return y, x.sum()
"""
_FORMS = {
    "y[keep] += 1": "y.copy_(torch.where(rows, y + 1, y))",
    "y[keep] -= 2.5": "y.copy_(torch.where(rows, y - 2.5, y))",
    "y[keep] *= 3": "y.copy_(torch.where(rows, y * 3, y))",
    "y[keep] /= 4": "y.copy_(torch.where(rows, y / 4, y))",
    "y[keep] += x[keep]": "y.copy_(torch.where(rows, y + x, y))",
    "y[keep] -= x[keep] - 1": "y.copy_(torch.where(rows, y - (x - 1), y))",
    "y[keep] = 1 - x[keep]": "y.copy_(torch.where(rows, 1 - x, y))",
    "y[keep] = -(x[keep] + y[keep]) - self.offset": "y.copy_(torch.where(rows, -(x + y) - self.offset, y))",
    "y[keep] = x[keep] * 2 + math.pi * 2": "y.copy_(torch.where(rows, x * 2 + math.pi * 2, y))",
    "y[keep] += self.weight": "y.copy_(torch.where(rows, y + self.weight, y))",
    "y[keep, :] = x[keep, :] - 1": "y.copy_(torch.where(rows, x - 1, y))",
    "y[y > x] -= 1": "y.copy_(torch.where(y > x, y - 1, y))",
    "y[y == 1] = 0.5 * y[y == 1]": "y.copy_(torch.where(y == 1, 0.5 * y, y))",
}
_KEEP = "torch.tensor([True, False, True])"
_INPUTS = [
    f"torch.randn(3, 2), torch.ones(3, 2), {_KEEP}",
    f"torch.tensor([[1.0, 2], [torch.inf, torch.nan], [3, 4]]), torch.tensor([[1.0], [torch.inf], [2]]), {_KEEP}",
    "torch.randn(3, 2), torch.ones(3, 2), torch.zeros(3, dtype=torch.bool)",
    "torch.randn(3, 2), torch.ones(3, 2), torch.randn(3, 2) > 0",
    f"torch.randn(3), torch.ones(3), {_KEEP}",
    "torch.randn(0, 2), torch.ones(0, 2), torch.zeros(0, dtype=torch.bool)",
]


@pytest.mark.parametrize("write", _FORMS)
def test_all_elements_are_computed_and_the_mask_selects(write: str) -> None:
    source = _MODEL.format(write=write)
    after, _ = fixed(source, select=("GM510",))
    assert _FORMS[write] in after
    assert "_under(" not in after
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, strict=False)


@pytest.mark.parametrize(
    "write",
    [
        "y[keep] = x[keep] * y[keep]",
        "y[keep] *= self.offset",
        "y[keep] /= self.offset",
        "y[keep] = 1 / x[keep]",
        "y[keep] = x[keep].exp()",
        "y[keep] = x[keep] - x[keep].exp()",
        "y[keep] = x[keep] * 1e999",
        "y[keep] **= 2",
        "y[keep] = (x - y)[keep] + 1",
        "z = x[keep]\n        y[keep] = z + 1",
    ],
)
def test_what_may_make_nan_of_what_is_left_out_has_rows_in_its_place(write: str) -> None:
    after, _ = fixed(_MODEL.format(write=write), select=("GM510",))
    assert "y.copy_(" not in after
    assert "_rows_under(keep" in after


def test_a_mask_of_the_wrong_shape_runs_the_original() -> None:
    source = _MODEL.format(write="y[y > x] += 1")
    after, _ = fixed(source, select=("GM510",))
    assert "and y.shape == (y > x).shape" in after
    other, _ = fixed(_MODEL.format(write="y[x > y] += 1"), select=("GM510",))
    assert "y.shape[: (x > y).dim()] == (x > y).shape" in other
    inputs = ["torch.ones(3), torch.ones(2, 3) * 2, None", "torch.ones(2, 3), torch.ones(3) * 2, None"]
    behaves(source, after, inputs)
    compiles(after, inputs, strict=False)
