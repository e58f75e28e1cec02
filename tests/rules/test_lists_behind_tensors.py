"""A list stands in for the tensor that was built from it only while neither has changed, under any name."""

from __future__ import annotations

import pytest

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
        "first = lengths.narrow(0, 0, 1)\nfirst.add_(1)",
        "first = torch.narrow(lengths, 0, 0, 1)\nfirst.add_(1)",
        "first = lengths[:1]\nfirst.add_(1)",
        "def change():\n    counts.reverse()\nchange()",
        "change = lambda: counts.reverse()\nchange()",
    ],
)
def test_a_change_under_another_name_is_seen(between: str) -> None:
    source = SOURCE.format(between="\n".join(f"        {line}" for line in between.splitlines()))
    after, result = fixed(source)
    assert after == source
    assert any("may change `counts` or `lengths`" in (each.declined or "") for each in result.remaining)


def test_what_only_reads_changes_nothing() -> None:
    assert "counts if" in fixed(SOURCE.format(between="        print(lengths.narrow(0, 0, 1))"))[0]
