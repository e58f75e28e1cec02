"""One row that is added to all that a mask chooses, `x[labels == 0] += self.row.weight` (GM510)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, noop
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.row = nn.Embedding(1, 4)
        self.rows = nn.ModuleList([nn.Embedding(1, 4), nn.Embedding(1, 4)])

    def forward(self, points, labels, given):
        x = points * 2
        {statement}
        return x
"""
_POINTS = "torch.rand(2, 3, 4)"
_LABELS = "torch.tensor([[0, 1, 2], [0, 5, 2]])"
_TRAINED = [Scenario(), Scenario(gradients="leaves")]


def _fixed(statement: str) -> tuple[str, str]:
    source = _MODEL.format(statement=statement)
    after, _ = fixed(source, select=("GM510",))
    assert "_is_one_row" in after
    return source, after


@pytest.mark.parametrize(
    "statement",
    [
        "x[labels == 0] += self.row.weight",
        "x[labels == 0] -= self.rows[1].weight",
        "x[labels == 0] += self.rows[0].weight + self.row.weight - self.rows[1].weight",
    ],
)
def test_the_row_is_added_where_the_mask_holds(statement: str) -> None:
    source, after = _fixed(statement)
    inputs = [f"{_POINTS}, {labels}, None" for labels in (_LABELS, "torch.full((2, 3), 7)", "torch.zeros(2, 3)")]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=_TRAINED)


def test_rows_of_one_element_get_a_number_in_a_tensor() -> None:
    source, after = _fixed("x[labels == 0] += given.data")
    inputs = ["torch.rand(3), torch.tensor([0, 1, 0]), torch.tensor(3.0)"]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=_TRAINED)


@pytest.mark.parametrize(
    ("points", "given"),
    [
        (_POINTS, "torch.rand(2, 4)"),  # a row for each chosen one
        ("torch.rand(2, 3, 2)", "torch.rand(2, 1)"),  # of as many as are chosen, and as a row is long
        (_POINTS, "torch.rand(1, 1, 4)[0, :, :1]"),
        (_POINTS, "torch.ones(4, dtype=torch.int64)"),
        ("torch.ones(2, 3, 4, dtype=torch.int64)", "torch.rand(1, 4)"),  # which eager mode does not add in place
        (_POINTS, "nn.Embedding(1, 4).to(torch.float64).weight"),
    ],
)
def test_what_has_not_the_form_of_a_row_runs_as_the_author_wrote_it(points: str, given: str) -> None:
    source, after = _fixed("x[labels == 0] += given.data")
    behaves(source, after, [f"{points}, {_LABELS}, {given}"])
    compiles(after, [f"{points}, {_LABELS}, {given}"], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize(
    "statement",
    [
        "x[labels == 0] *= self.row.weight",  # the gradient of an infinite row
        "x[labels == 0] += self.rows[labels.dim() - 2].weight",
        "x[labels == 0] += self.row.weight.exp()",
    ],
)
def test_other_changes_of_rows_are_left_alone(statement: str) -> None:
    noop(_MODEL.format(statement=statement), select=("GM510",))


def test_a_row_gets_no_gradient_where_eager_mode_skips_it() -> None:
    body = "mask = labels == 0\n        if mask.any():\n            x[mask] += self.row.weight"
    assert "_is_one_row" not in fixed(_MODEL.format(statement=body), select=("GM510",))[0]
