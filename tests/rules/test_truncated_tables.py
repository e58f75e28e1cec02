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
        ("positions.max().item()", "int(positions.max())"),
        ("positions.max().item()", "int(torch.max(positions).item())"),
        ("last = positions.max().item()", "last = positions.amax().item()\n        more = last * 1"),
        ("last = positions.max().item()\n        columns = -(-(last + 1)", "columns = -(-(positions.max().item() + 1)"),
        ("part[:, :columns]", "part[:, : columns + 0]"),
        ("table = table.reshape(count, -1, table.shape[-1])", "table = table.view((count, -1, table.size(-1)))"),
        ("table = table.reshape(count, -1, table.shape[-1])", "table = table.flatten(1, -2)"),
        ("torch.index_select(table[i], 0, positions[i])", "table[i].index_select(0, positions[i])"),
        ("torch.index_select(table[i], 0, positions[i])", "torch.index_select(table[i], dim=0, index=positions[i])"),
        (
            "torch.stack([torch.index_select(table[i], 0, positions[i])",
            "torch.cat([torch.index_select(table[i], 0, positions[i])[None]",
        ),
        ("table = torch.cat(", "cut = torch.cat("),
        ("range(count)", "range(positions.shape[0])"),
        ("dim=-1)\n", "-1)\n"),
        ("(count,) + self.shape", "(1,) + self.shape"),
        ("import torch\n", "import torch as th\n"),
    ],
)
def test_other_words_for_the_same_are_understood(old: str, new: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    if "cut = " in new:
        source = source.replace("table.reshape(count, -1, table.shape", "cut.reshape(count, -1, cut.shape")
    if "range(pos" in new:
        source = source.replace("reshape(count", "reshape(positions.shape[0]")
    if "import" in new:
        source = source.replace("torch.", "th.").replace("from torch", "from torch")
    after, _ = fixed(source)
    assert "part[i].flatten(0, -2)" in after
    behaves(source, after, _CALLS, scenarios=(Scenario(),))
    strict = "(1,)" not in new
    compiles(after, _CALLS, strict=strict)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("dim=-1)", "dim=2)", "along a dimension other than the last"),
        ("part[:, :columns]", "part[:, -columns:]", "not a prefix of the second dimension"),
        ("part[:, :columns]", "part[:, : -columns]", "not a prefix of the second dimension"),
        ("part[:, :columns]", "part[:columns]", "not a prefix of the second dimension"),
        (
            "part[:, :columns] for part in parts]",
            "part[:, :columns] for part in parts if len(part)]",
            "uses more than",
        ),
        ("torch.index_select(table[i], 0, positions[i])", "table[i][positions[i]]", "is not a `torch.index_select`"),
        ("0, positions[i])", "0, positions[0])", "is not a `torch.index_select`"),
        ("0, positions[i])", "0, other[i])", "is not a `torch.index_select`"),
        ("positions.max()", "positions[0].max()", "`positions[0]` has no name"),
        ("table.reshape(count, -1", "table.reshape(1, -1", "have the same length"),
        ("range(count)", "range(1)", "have the same length"),
        ("table.reshape(count, -1, table.shape[-1])", "table.relu()", "does not build a table of rows"),
        ("return table * 2", "return table * columns", "`columns` is used for more than the cut"),
        ("-(-(last + 1) // self.shape[1])", "self.columns(last)", "is not arithmetic"),
        ("parts = [weight", "parts = (weight", "is a list"),
        ("        table = table.reshape", "        positions += 1\n        table = table.reshape", "cannot infer that"),
        ("for i in range(count)", "for part in range(count)", "is not a `torch.index_select`"),
    ],
)
def test_a_cut_that_may_mean_more_is_left(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    if "(weight" in new:
        source = source.replace("for weight in self.weights]", "for weight in self.weights)")
    if "][positions" in new:
        source = source.replace("        return", "        torch.index_select(table, 0, positions[0])\n        return")
    declined(source, because=because)


@pytest.mark.parametrize(("old", "new"), [("part[:, :columns]", "part[:, :4]"), (".max()", ".sum()")])
def test_another_number_is_not_this_one(old: str, new: str) -> None:
    assert old in _MODEL
    assert "GM408" not in {finding.code for finding in checked(_MODEL.replace(old, new)).findings}
