"""Statements as one operator that write into a tensor in place: what is read behind them has to come out."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        a, b = x * 1.0, y + 0.0
        d = x * y
        c = a * 2.0
        if a.max() >= 1:
            a[0] = c[1]
            b.add_(c)
            c[0] = d[1]
        {behind}
"""
INPUTS = [f"torch.full((2, 3), {each}), torch.full((2, 3), -3.0)" for each in ("2.0", "0.5")]
OFF = (Scenario(gradients="off"),)


@pytest.mark.parametrize(
    "behind", ["return a, c", "return b, c", "b = b.clone()\n        return b, c", "return a + b + c"]
)
def test_a_tensor_that_is_written_and_read_behind_is_no_copy(behind: str) -> None:
    after, _ = fixed(MODEL.format(behind=behind), opaque=True)
    assert [*compiled_differences(after, INPUTS, scenarios=OFF, state=False)] == []


def test_a_tensor_that_is_written_and_read_no_more_may_be_one() -> None:
    after, _ = fixed(MODEL.format(behind="self.seen = 1\n        a = c + 1.0\n        return a"), opaque=True)
    assert "it calls them as one operator" in after
    assert [*compiled_differences(after, INPUTS, scenarios=OFF, state=False)] == []
