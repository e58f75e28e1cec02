"""Sums and means of the rows of a class, added to a total where there are any: `if mask.any(): total = total + ...`."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn
import torch.nn.functional as F


def wider(rows):
    return rows.double() * 2


class Model(nn.Module):
    def __init__(self, weight=0.5):
        super().__init__()
        self.weight = weight
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor, y: torch.Tensor, label: torch.Tensor):
        x, y = x * self.scale, y.to(x.dtype)
        total = torch.zeros((), dtype=x.dtype)
        for c in range(3):
            mask = label == c
{body}
        return total
"""
_INPUTS = [
    f"torch.tensor([[1.0, -2.0, 0.0], [3.0, 4.0, -1.0], [0.5, 0.25, 9.0]]), torch.rand(3, 3), torch.tensor({labels})"
    for labels in ([0, 1, 2], [2, 0, 2], [7, 8, 9])
]
"""All classes have rows, one has none, none has any."""
_GOOD = {
    "continue": "if not mask.any():\n    continue\ntotal = total + x[mask].mean()",
    "no sum": "if mask.sum() == 0:\n    continue\ntotal = (x[mask] - y[mask]).abs().sum() + total",
    "less than one": "if mask.sum() < 1:\n    continue\ntotal += (x[mask] ** 2).mean() * 2",
    "any": "if mask.any():\n    total = total + F.mse_loss(x[mask], y[mask])",
    "sum": "if mask.sum() > 0:\n    total -= x[mask].sum()",
    "with names": (
        "if mask.any():\n    apart = x[mask] - y[mask]\n    total = total - self.weight * apart.abs().mean() / 2"
    ),
    "infinite derivative": "if mask.any():\n    total = total + x[mask].abs().sqrt().mean()",
    "a sum of labels": (
        "if mask.any():\n    total = total + F.cross_entropy(x[mask], label[mask].clamp(max=2), reduction='sum')"
    ),
    "two sums": "if mask.any():\n    total = total + (x[mask].mean() - 2 * y[mask].sum())",
}
_GRADIENTS = (Scenario(), Scenario(training=True, gradients="leaves"))


@pytest.mark.parametrize("name", _GOOD)
def test_what_is_added_without_rows_is_nothing(name: str) -> None:
    source = _model(_GOOD[name])
    after, _ = fixed(source)
    assert "mask.any()" in after
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=_GRADIENTS)
    assert fixed(after)[0] == after


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("if mask.any():\n    total = total + F.cross_entropy(x[mask], label[mask])", "not a number where no row"),
        ("if mask.any():\n    total = total + 1 / x[mask].mean()", "does something where no row"),
        ("if mask.any():\n    total = total + x[mask].mean() + self.weight", "does something where no row"),
        ("if mask.any():\n    total = total * x[mask].mean()", "does something where no row is selected"),
        ("if mask.any():\n    total = total + total * x[mask].mean()", "does something where no row is selected"),
        ("if mask.any():\n    total = total + x[mask].mean()\n    self.weight = 1", "does something where no row"),
        ("if mask.any():\n    total = total + x[mask].mean()\n    y = y + 1", "does something where no row"),
        ("if mask.any():\n    total = total + x[mask].double().mean()", "may change the dtype"),
        ("if mask.any():\n    total = total + x[mask].to(y).sum()", "may change the dtype"),
        ("if mask.any():\n    apart = wider(x[mask])\n    total = total + apart.mean()", "may change the dtype"),
        ("if not mask.any():\n    continue\ny = y + 1\ntotal = total + x[mask].mean()", "does something where no row"),
        ("if not mask.any():\n    continue\nprint(c)\ntotal = total + x[mask].mean()", "does something where no row"),
    ],
)
def test_what_does_more_without_rows_is_left_alone(body: str, because: str) -> None:
    found = [each.declined or "" for each in checked(_model(body)).findings if each.code in {"GM510", "GM101"}]
    assert any(because in each for each in found), found
    assert "_mean_of_some(" not in fixed(_model(body))[0]


@pytest.mark.parametrize("start", ["0", "0.0"])
def test_a_total_that_may_stay_a_python_number_is_left_alone(start: str) -> None:
    source = _model(_GOOD["any"]).replace("torch.zeros((), dtype=x.dtype)", start)
    found = [each.declined or "" for each in checked(source).findings if each.code == "GM510"]
    assert any("`total` begins as a Python number" in each for each in found)


def test_a_total_of_another_dtype_takes_the_way_of_the_author() -> None:
    source = _model(_GOOD["any"]).replace("torch.zeros((), dtype=x.dtype)", "torch.zeros((), dtype=torch.float16)")
    after, _ = fixed(source)
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, strict=False)


@pytest.mark.parametrize("dtype", ["torch.int32", "torch.bool", "torch.complex64"])
def test_a_sum_of_another_dtype_is_added_where_there_are_rows(dtype: str) -> None:
    source = _model(_GOOD["sum"].replace("-=", "= total +")).replace("y.to(x.dtype)", f"y\n        x = x.to({dtype})")
    after, _ = fixed(source)
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, strict=False)


def test_a_name_that_the_next_round_reads_is_no_business_of_the_branch_alone() -> None:
    body = (
        "if mask.any():\n    apart = x[mask]\n    total = total + apart.mean()\nelse:\n    total = total + apart.sum()"
    )
    source = _model(body).replace("        for c in", "        apart = y\n        for c in")
    assert "_mean_of_some(" not in fixed(source)[0]


def _model(body: str) -> str:
    return _MODEL.format(body=indent(body, " " * 12))
