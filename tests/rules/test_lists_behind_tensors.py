"""A list stands in for the tensor that was built from it only while neither has changed, under any name."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        counts = [1, x.shape[0] - 1]
        lengths = torch.tensor(counts)
{between}
        return torch.cat(x.split(lengths.tolist())[::-1])
"""


@pytest.mark.parametrize(
    "between",
    [
        "(held := counts).reverse()",
        "match counts:\n    case held:\n        held.reverse()",
        "match (counts, 1):\n    case (held, _):\n        held.reverse()",
        "def change():\n    counts.reverse()\nchange()",
        "change = lambda: counts.reverse()\nchange()",
    ],
)
def test_a_list_that_changes_under_another_name_is_copied_before(between: str) -> None:
    source = SOURCE.format(between="\n".join(f"        {line}" for line in between.splitlines()))
    after, _ = fixed(source)
    assert "numbers_in_lengths = [*counts]" in after
    behaves(source, after, ["torch.ones(4, 2)"])
    compiles(after, ["torch.ones(4, 2)", "torch.ones(6, 2)"])


@pytest.mark.parametrize(
    "between",
    [
        "first = lengths.narrow(0, 0, 1)\nfirst.add_(1)",
        "first = torch.narrow(lengths, 0, 0, 1)\nfirst.add_(1)",
        "first = lengths[:1]\nfirst.add_(1)",
    ],
)
def test_a_change_of_the_tensor_under_another_name_is_seen(between: str) -> None:
    source = SOURCE.format(between="\n".join(f"        {line}" for line in between.splitlines()))
    after, result = fixed(source)
    assert after == source
    assert any("may write in place to `lengths`" in (each.declined or "") for each in result.remaining)


def test_what_only_reads_changes_nothing() -> None:
    assert "x.split(counts)" in fixed(SOURCE.format(between="        print(lengths.narrow(0, 0, 1))"))[0]
