"""Names that a branch reads before it binds them, or that a test reads: selects leave them as the branch found them."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
        a = torch.abs(a)
        b = torch.abs(b)
        few, many = x > 9.0, x > 1.0
        {branches}
        return a, b, many
"""
ROWS = "torch.tensor([[1.0, {}, 3.0], [0.5, 2.0, 4.0]]), torch.full((2, 3), 5.0), torch.full((2, 3), 7.0)"
INPUTS = [ROWS.format(each) for each in ("2.0", "-20.0", "20.0")]

BRANCHES = {
    "the second branch reads what it binds below": """if x.sum() > 0:
            a = x + 1.0
            b = x + 2.0
        else:
            b = a * 2.0
            a = x + 3.0""",
    "a later branch does": """if x.sum() > 20:
            a = x + 1.0
            b = x + 2.0
        elif x.sum() > 0:
            b = a * 2.0
            a = x + 3.0""",
    "a test reads what its branch binds for itself": """if few.any():
            few = x > 0.0
            many = few.clone()""",
    "a later test reads what the first branch binds": """if x.sum() > 20:
            few = x > 3.0
            many = few.flip(0)
        elif few.any():
            many = x > 2.0""",
    "the same with several names": """if few.any():
            few = x > 0.0
            many = few.flip(0)
            a = a * 2.0""",
}


@pytest.mark.parametrize("branches", BRANCHES.values(), ids=BRANCHES)
def test_a_select_computes_what_the_branch_does(branches: str) -> None:
    after, _ = fixed(MODEL.format(branches=branches))
    assert "torch.where(" in after
    assert [*compiled_differences(after, INPUTS, scenarios=(Scenario(gradients="off"),), strict=True)] == []


def test_names_that_are_computed_of_each_other_are_a_reason() -> None:
    branches = """if x.sum() > 0:
            a = b * 2.0
            b = x + 2.0
        else:
            b = a * 2.0
            a = x + 3.0"""
    source = MODEL.format(branches=branches)
    assert fixed(source)[0] == source
    assert any("compute `a` and `b` of each other" in (each.declined or "") for each in checked(source).findings)


SHARED = {
    "an expression": "b = a if x.sum() > 0 else x + 1.0",
    "a branch": """if x.sum() > 0:
            b = a""",
    "one name for two": """c = torch.abs(x)
        if x.sum() > 0:
            a = c
            b = c""",
}


@pytest.mark.parametrize("branches", SHARED.values(), ids=SHARED)
def test_a_tensor_that_another_name_has_as_well_is_not_copied_where_it_is_written_below(branches: str) -> None:
    source = MODEL.format(branches=branches).replace("return a,", "b += 1.0\n        return a,")
    after, _ = fixed(source)
    assert [*compiled_differences(after, INPUTS, scenarios=(Scenario(gradients="off"),))] == []
    assert after == source
    again, _ = fixed(source.replace("b += 1.0", "b = b + 1.0"))
    assert "torch.where(" in again


OWNED = {
    "its own": """c = torch.abs(x)
        if x.sum() > 0:
            c = c + 1.0
        c += 1.0""",
    "the last of another": """c = torch.abs(x)
        d = torch.relu(x)
        if x.sum() > 0:
            c = d
        c += 1.0""",
}


@pytest.mark.parametrize("branches", OWNED.values(), ids=OWNED)
def test_a_tensor_that_only_the_name_has_may_be_written_below(branches: str) -> None:
    after, _ = fixed(MODEL.format(branches=branches).replace("return a,", "return c,"))
    assert "torch.where(" in after
    assert [*compiled_differences(after, INPUTS, scenarios=(Scenario(gradients="off"),), strict=True)] == []


NESTED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
        def inner(x: torch.Tensor):
            {branches}
            return c

        return inner(x)
"""


@pytest.mark.parametrize("branches", OWNED.values(), ids=OWNED)
def test_nobody_else_can_write_it_in_a_nested_function(branches: str) -> None:
    assert "torch.where(" in fixed(NESTED.format(branches=branches.replace("\n", "\n    ")))[0]
