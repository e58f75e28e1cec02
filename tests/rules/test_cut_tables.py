"""Tables that are cut behind the last row that is used, before rows are picked."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = (6, 4)
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(6, 1, 3)), nn.Parameter(torch.randn(1, 4, 2))])

    def forward(self, positions: torch.Tensor):
        count = positions.shape[0]
        parts = [weight.expand((count,) + self.shape + weight.shape[-1:]) for weight in self.weights]
        last = positions.max().item()
        columns = -(-(last + 1) // self.shape[1])
        table = torch.cat([part[:, :columns] for part in parts], dim=-1)
        table = table.reshape(count, -1, table.shape[-1])
        table = torch.stack([torch.index_select(table[i], 0, positions[i]) for i in range(count)])
        return table * 2
"""
_CALLS = ["torch.tensor([[0, 1, 2], [5, 3, 9]])", "torch.tensor([[23, 0, 7]])", "torch.zeros(2, 3, dtype=torch.long)"]


def test_rows_are_picked_in_each_part() -> None:
    after, _ = fixed(_MODEL)
    assert "part[i].flatten(0, -2)" in after
    behaves(_MODEL, after, _CALLS, scenarios=(Scenario(), Scenario(training=True)))
    compiles(after, _CALLS)
    assert not [finding for finding in checked(after).findings if finding.code == "GM408"]


def test_rows_that_are_not_there_are_an_error_still() -> None:
    after, _ = fixed(_MODEL)
    compiles(after, ["torch.tensor([[-1, 0, 1]])", "torch.tensor([[24, 0, 7]])"], strict=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dim=-1)", "dim=2)"),
        ("part[:, :columns]", "part[:, -columns:]"),
        ("torch.index_select(table[i], 0, positions[i])", "table[i][positions[i]]"),
        ("0, positions[i])", "0, positions[0])"),
        ("positions.max()", "positions[0].max()"),
        ("table.reshape(count, -1", "table.reshape(1, -1"),
        ("range(count)", "range(1)"),
    ],
)
def test_another_form_is_not_this_one(old: str, new: str) -> None:
    assert old in _MODEL
    assert "GM408" not in {finding.code for finding in checked(_MODEL.replace(old, new)).findings}


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("return table * 2", "return table * columns", "`columns` is used for more than the cut"),
        ("-(-(last + 1) // self.shape[1])", "self.columns(last)", "is no arithmetic"),
        ("(count,) + self.shape", "(1,) + self.shape", "may have another first size"),
        ("        last =", "        count = 1\n        last =", "may have another first size"),
    ],
)
def test_a_cut_that_may_mean_more_is_left(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because=because)
