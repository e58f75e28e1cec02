"""A break in a loop that nothing mends: Dynamo compiles nothing of the function, so a fix below it is idle."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        out = x * 1
        for step in range(2):
            mask = x > step
            {above}
            out[mask] = x[mask].exp()
        return out
"""


@pytest.mark.parametrize(
    ("above", "because"),
    [
        ("n = mask.sum().item()\n            if n == 0:\n                continue", "`mask.sum().item()` above it"),
        ("if mask.sum() == 0:\n                break", "`mask.sum() == 0` above it in the loop"),
    ],
)
def test_a_fix_below_such_a_break_is_declined(above: str, because: str) -> None:
    declined(_MODEL.format(above=above), because=because)


@pytest.mark.parametrize("above", ["n = mask.shape[0]\n            if n == 0:\n                continue", "pass"])
def test_a_fix_in_another_loop_is_written(above: str) -> None:
    assert "torch.where(" in fixed(_MODEL.format(above=above))[0]
