"""Masks that a gradient of a compile path needs, and what writes them in place below."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        keep = lengths > 0
        total = x[keep].sum()
        {below}
        return total + x.sum(), keep
"""


@pytest.mark.parametrize(
    "write",
    [
        "keep.logical_not_()",
        "keep &= x[:, 0] > 1",
        "keep[0] = True",
        "torch.logical_not(keep, out=keep)",
        "torch.fill_(keep, True)",
        "F.hardtanh(keep, 0, 1, inplace=True)",
        "F.hardtanh(keep, 0, 1, True)",
    ],
)
def test_a_mask_that_is_written_below_is_not_saved_for_a_gradient(write: str) -> None:
    declined(_MODEL.format(below=write), because="changes in place what a gradient of the compile path would need")


@pytest.mark.parametrize("below", ["F.hardtanh(keep, 0, 1)", "torch.logical_not(keep, out=lengths)", "print_ = keep"])
def test_a_mask_that_is_only_read_below_may_be_saved(below: str) -> None:
    assert "torch.where(" in fixed(_MODEL.format(below=below))[0]
