"""Places that a condition finds: which writes a mask can stand for, and which it cannot."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, embedded, fixed

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = 2

    def forward(self, ids: torch.Tensor, chosen: torch.BoolTensor = None):
        ends = torch.zeros(ids.shape[0], dtype=torch.int64, device=ids.device)
        seen = torch.zeros_like(ids)
        token = self.token
        ...
        return ends * 2, seen, ids + 0
"""
_INPUTS = [
    "torch.tensor([[1, 0, 2, 0], [0, 0, 0, 0]])",
    "torch.tensor([[0, 2, 2, 1], [2, 0, 0, 2]])",
    "torch.zeros(3, 2, dtype=torch.long)",
]


def written(statements: str) -> str:
    return embedded(statements, _SETUP)


@pytest.mark.parametrize(
    "statements",
    [
        "found = torch.where(ids == token)\nends[found[0]] -= found[1]",
        "rows, columns = torch.nonzero(ids == 2, as_tuple=True)\nends[rows] = columns",
        "found = (ids == 2).nonzero()\nends[found[:, 0]] += found[:, 1]\nends[found[:, 0]] = 9",
        "rows, columns = torch.where(ids == 2)\nseen[rows, columns] = 5",
        "found = torch.where(ids == 2)\nseen[found] = -1\nends[found[0]] = found[1]",
        "seen = seen.half()\nrows, columns = torch.where(ids == 2)\nseen[rows, columns] = float('-inf')",
        "seen = seen.half()\nrows, columns = torch.where(ids == 2)\nseen[rows] = torch.finfo(seen.dtype).min",
        "ends = ends.int()\nfound = torch.where(ids == token)\nends[found[0]] += found[1]",
        "places = seen + 1\nrows, columns = torch.where(ids == 2)\nends[rows] += columns\nends[rows] -= columns\n"
        "ends = ends + places.sum()",
        "ends = ends.to(torch.int16)\nkept = ends\nrows, columns = torch.where(ids == 2)\nends[rows] += columns\n"
        "ends = ends + kept",
    ],
)
def test_a_mask_writes_what_its_places_write(statements: str) -> None:
    after, result = fixed(written(statements), select=("GM507",))
    assert [finding.code for fix in result.fixes for finding in fix.applied] == ["GM507"]
    behaves(written(statements), after, _INPUTS)
    compiles(after, _INPUTS)


def test_another_number_of_dimensions_takes_the_original_statements() -> None:
    statements = "found = torch.where(ids == 2)\nends[found[0]] += found[1]"
    after, _ = fixed(written(statements), select=("GM507",))
    inputs = ["torch.tensor([[[0, 2], [2, 1]]])", "torch.zeros(2, 0, dtype=torch.long)"]
    behaves(written(statements), after, inputs)
    compiles(after, inputs, strict=False)


@pytest.mark.parametrize(
    ("statements", "because"),
    [
        (
            "rows, columns = torch.where(ids == 2)\nends[rows] *= columns",
            "would change rows that the mask does not select",
        ),
        ("rows, columns = torch.where(ids == 2)\nends[rows] += 1", "is both read and written"),
        ("rows, columns = torch.where(ids == 2)\nends[rows] = columns + 1", "is not a Python number"),
        ("rows, columns = torch.where(ids == 2)\nends[rows] = -columns", "is not a Python number"),
        ("rows, columns = torch.where(ids == 2)\nends[rows] = ~columns", "is not a Python number"),
        ("rows, columns = torch.where(ids == 2)\nends[rows] = 1\ncount = lambda: len(rows)", "is used for more"),
        ("rows, columns = torch.where(ids == 2)\nseen[rows, columns] = ids[rows, columns]", "is not a Python number"),
        ("rows, columns = torch.where(ids == 2)\nids[rows, columns] = 0", "the condition may read `ids`"),
        ("ends = ends.float()\nrows, columns = torch.where(ids == 2)\nends[rows] += columns", "would get a gradient"),
        ("rows, columns = torch.where(ids)\nends[rows] = 1", "is a bool tensor"),
        ("rows, columns = torch.where(ids == 2)\nends[rows] = columns\nids = ids + rows.sum()", "is used for more"),
    ],
)
def test_a_write_that_a_mask_does_not_say_is_left_alone(statements: str, because: str) -> None:
    declined(written(statements), because, select=("GM507",))


def test_places_that_choose_what_to_read_are_no_business_of_this_rule() -> None:
    source = written("rows, columns = torch.where(ids == 2)\nends = ids[rows]")
    assert checked(source, select=("GM507",)).findings == ()
