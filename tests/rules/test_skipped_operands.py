"""What Python's `and` and `or` skip, and compiled code computes."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed

SKIPPED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, flag: bool = True):
        if {test}:
            x = x * 2
        return x
"""


@pytest.mark.parametrize(
    "test",
    [
        "x.sum() or y > 1",
        "flag and not x.sum() and y > 1",
        "x.sum() > 0 or (y > 1 and y < 3)",
        "flag and (x.any() or -y >= y)",
    ],
)
def test_the_truth_of_several_elements_is_asked_only_where_eager_mode_asks(test: str) -> None:
    after, _ = fixed(SKIPPED.format(test=test))
    assert "y.numel() == 1" in after or "(-y >= y).numel() == 1" in after
    compiles(after, ["torch.ones(3), torch.zeros(3)"], strict=False)
    compiles(after, ["torch.ones(3), torch.tensor([2.0])", "torch.zeros(3), torch.tensor(2.0)"])
