"""An element of each row that a mask chooses, `x[mask, labels[mask]]`, read and written (GM510)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed, noop
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, labels, low: int):
        y = torch.zeros(labels.shape)
        z = (x.transpose(0, -1).contiguous() * 2).transpose(0, -1)
        mask = (labels >= low) & (labels < low + z.shape[-1])
        {statements}
        return y, z
"""
_ROWS = "torch.tensor([[1.0, -2.0, 0.5], [float('inf'), 0.0, float('nan')], [4.0, 0.25, 3.0]])"
_INPUTS = [
    f"{_ROWS}, torch.tensor([1, -100, 3]), 1",
    f"{_ROWS}, torch.tensor([99, -100, 7]), 50",  # none
    "torch.rand(2, 2, 3), torch.tensor([[0, 5], [2, -1]]), 0",
]
_TRAINED = [Scenario(), Scenario(gradients="leaves")]
_PLACE = "at = (labels[mask] - low).long()"


def _source(*statements: str) -> str:
    return _MODEL.format(statements="\n        ".join(statements))


@pytest.mark.parametrize(
    "statements",
    [
        (_PLACE, "y[mask] = z[mask, at].sqrt()"),
        ("y[mask] = (z[mask, labels[mask] - low] - 1) ** 2",),
        ("y[mask] = z[mask, -1] * z[mask, 0]",),
        ("y[mask] = 1 - z[mask, 0]",),
        ("y[mask] = z[mask, z[mask].argmax(-1)]",),
        ("z[mask, labels[mask] - low] = 7.5",),
        (_PLACE, "z[mask, at] = labels[mask].float()"),
        ("z[mask, labels[mask] - low] = y[mask]",),
        (_PLACE, "z[mask, at.clamp(min=1)] += y[mask] - 3"),
        ("z[mask, 1] -= z[mask, -(labels[mask] - low) - 1]",),
        (_PLACE, "y[mask] = (z[mask, at] - z[mask, 0]).abs().mean()"),
    ],
)
def test_elements_of_all_rows_are_taken(statements: tuple[str, ...]) -> None:
    source = _source(*statements)
    after, _ = fixed(source, select=("GM510",))
    assert fixed(after, select=("GM510",))[0] == after
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=_TRAINED)


def test_a_test_around_them_is_left_out() -> None:
    source = _source("if mask.any():", f"    {_PLACE}", "    z[mask, at] += y[mask] + 1")
    after, _ = fixed(source, select=("GM510",))
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=_TRAINED)


_FILLED = "z[mask, labels[mask]] = 0.5"


@pytest.mark.parametrize(
    ("statement", "given"),
    [
        (_FILLED, "torch.rand(3, 4), torch.tensor([True, False, True]), 0"),  # another mask
        (_FILLED, "torch.rand(3, 4, 2), torch.tensor([1, 0, 3]), 1"),  # rows of rows
        ("z[mask, 1] -= z[mask, 0]", "torch.rand(3, 4, 2), torch.tensor([1, 0, 3]), 1"),
        (_FILLED, "torch.rand(3, 0), torch.tensor([1, 0, 3]), 1"),
    ],
)
def test_what_is_no_index_of_an_element_runs_as_the_author_wrote_it(statement: str, given: str) -> None:
    source = _source(statement)
    after, _ = fixed(source, select=("GM510",))
    assert "_put_under" in after
    behaves(source, after, [given])
    compiles(after, [given], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize("number", [3, -4])
def test_a_number_that_no_row_has_raises_as_before(number: int) -> None:
    source = _source(f"y[mask] = z[mask, {number}] + 1")
    after, _ = fixed(source, select=("GM510",))
    given = "torch.rand(2, 3), torch.tensor([7, 8]), 0"
    behaves(source, after, [given])
    compiles(after, [given], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize(
    ("statements", "because"),
    [
        (("z[mask, y[mask]] = 1.0",), ""),  # asked for as int64
        (("z[mask, labels[mask].bool()] = 1.0",), "holds integers"),
        (("at = labels[mask].to(z.dtype)", "z[mask, at] = 1.0"), "holds integers"),
        (("at = labels[mask]", "at = at > 1", "z[mask, at] = 1.0"), "holds integers"),
        (("z[mask, z[mask].long()] = 1.0",), "how many dimensions"),  # several in each row
        (("z[mask, labels[mask] / 2] = 1.0",), "holds integers"),
        (("m = labels > 1", "at = labels[mask]", "y[mask] = z[m, at] + 1"), "the number of selected rows"),
        (("z[mask, labels[mask]] = torch.rand(3)",), "an element of each row"),
        (("z[mask, labels[mask]] = z[mask]",), "how many dimensions"),
    ],
)
def test_what_may_be_no_index_or_no_element_is_declined(statements: tuple[str, ...], because: str) -> None:
    source = _source(*statements)
    found = checked(source, select=("GM510",)).findings
    assert not because or (found and all(because in (each.declined or "") for each in found)), found
    if not because:
        assert "y.dtype == torch.int64" in fixed(source, select=("GM510",))[0]


def test_rows_that_reach_a_loss_far_behind_are_no_elements() -> None:
    begin = ("w, at = z, labels", "if low:", "    w = z[mask]", "    at = labels[mask]")
    loss = "y = nn.functional.cross_entropy(w, at)"
    assert "_rows_under" in fixed(_source(*begin, loss), select=("GM510",))[0]
    less = "    w = w - z[mask, 0].unsqueeze(-1)"
    assert "_elements_under" not in fixed(_source(*begin, less, loss), select=("GM510",))[0]


def test_several_targets_are_left_alone() -> None:
    noop(_source("z[mask, labels[mask]], y = 1.0, 2.0"), select=("GM510",))


def test_a_tensor_whose_rows_share_memory_is_written_as_before() -> None:
    source = _source("z = x[:1].expand(3, 3)", "z[mask, labels[mask] - low] = 7.5")
    after, _ = fixed(source, select=("GM510",))
    compiles(after, [f"{_ROWS}, torch.tensor([1, -100, -100]), 1"], scenarios=[Scenario()], strict=False)
