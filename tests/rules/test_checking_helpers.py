"""Checks made by a helper, and checks with parts in Python."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_COMPILED = (Scenario(gradients="off"),)

_MIXED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, same=False):
        super().__init__()
        self.same = same
        self.asked = 0

    def ask(self):
        self.asked += 1
        return False

    def forward(self, x: torch.Tensor, y: torch.Tensor, low=None):
        if {test}:
            raise ValueError("bad")
        return x * y


def make_same():
    return Model(True)
"""


@pytest.mark.parametrize(
    ("test", "fact"),
    [
        ("self.same or torch.equal(x, y)", "and not self.same\n"),
        ("not (x.shape == y.shape and (x < y).all())", "and x.shape == y.shape\n"),
        ("(x > 9).any() or x is y", "and x is not y\n"),
        ("(x > 9).any() or (low is not None and (x < 5).all())", "and low is not None\n"),
    ],
)
def test_a_python_part_beside_a_tensor_is_asked_for_in_the_header(test: str, fact: str) -> None:
    source = _MIXED.replace("{test}", test)
    after, _ = fixed(source)
    assert fact in after
    inputs = [
        "torch.ones(3), torch.arange(2.0, 5.0)",
        "torch.full((3,), 10.0), torch.full((3,), 20.0)",
        "torch.ones(3), torch.full((3,), 2.0), 0.5",
        "torch.ones(3), torch.full((3,), 2.0), 1.5",
        "torch.ones(2, 3), torch.full((3,), 2.0)",
    ]
    behaves(source, after, inputs)
    behaves(source, after, inputs, name="make_same")


def test_a_check_with_a_python_part_is_one_graph_where_that_part_leaves_it_to_the_tensor() -> None:
    source = _MIXED.replace("{test}", "self.same or not (x.shape == y.shape and (x < y).all())")
    after, _ = fixed(source)
    compiles(after, ["torch.ones(3), torch.arange(2.0, 5.0)", "torch.ones(3), torch.arange(3.0)"])


@pytest.mark.parametrize("test", ["self.ask() or (x < y).all()", "(x < y).all() or low.limit > 2"])
def test_a_python_part_with_effects_or_that_may_raise_is_not_asked_for(test: str) -> None:
    declined(_MIXED.replace("{test}", test), because="may have side effects or raise")


_HELPER = """
import os
import torch
from torch import nn


def check(ok, msg, kind=ValueError):
    \"\"\"Check it.\"\"\"
    if os.getenv("NO_CHECKS_HERE", "0") == "1":
        return
    if not callable(msg):
        def told():
            return msg
    else:
        told = msg
    if isinstance(ok, torch.Tensor):
        torch._check_tensor_all_with(kind, ok, told)
    else:
        torch._check_with(kind, ok, told)


def begin():
    counts.calls = 1


def prepares(ok, msg):
    begun = begin()
    if not ok:
        raise ValueError(msg)


def counts(ok, msg):
    counts.calls = getattr(counts, "calls", 0) + 1
    if not ok:
        raise ValueError(msg)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, features: torch.Tensor):
        mask = (x > 1)
        {body}
        return x.masked_scatter(mask, features)
"""
_ROWS = ["torch.tensor([0.0, 2.0, 3.0]), torch.ones(2)"]


def test_what_a_helper_checks_of_chosen_rows_is_counted_by_the_mask() -> None:
    source = _HELPER.replace("{body}", 'check(x[mask].numel() == features.numel(), f"{mask.sum()} places")')
    after, _ = fixed(source)
    assert 'and os.getenv("NO_CHECKS_HERE", "0") != "1"' in after
    assert 'torch._assert_async(mask.sum() == features.numel(), "... places")' in after
    behaves(source, after, [*_ROWS, "torch.ones(3), torch.ones(2)"], scenarios=_COMPILED)
    compiles(after, _ROWS, scenarios=_COMPILED)


@pytest.mark.parametrize("helper", ["counts", "prepares"])
def test_a_helper_that_does_more_than_check_is_left_alone(helper: str) -> None:
    after, _ = fixed(_HELPER.replace("{body}", f'{helper}(x[mask].numel() == 2, "two")'))
    assert "_assert_async" not in after


def test_a_check_is_found_where_there_is_nothing_else_to_find() -> None:
    source = _HELPER.replace("        mask = (x > 1)\n", "").replace("x.masked_scatter(mask, features)", "x * features")
    for asked in ("features[:, 0].sum() == 2", "torch.all(features > 0)", "not (features < 0).any()"):
        assert "torch._assert_async(" in fixed(source.replace("{body}", f'check({asked}, "two")'))[0]


@pytest.mark.parametrize(
    "call", ['check(counted == y.shape[-1], "other")', 'check(msg="other", cond=counted == y.shape[-1])']
)
def test_a_method_that_does_nothing_else_is_looked_at(call: str) -> None:
    source = f"""
import torch
from torch import nn


def check(cond, msg):
    if isinstance(cond, torch.Tensor):
        torch._check_tensor_all(cond)
    else:
        torch._check(cond)


class Model(nn.Module):
    def counted(self, x: torch.Tensor, y: torch.Tensor):
        counted = x.sum()
        {call}
        return counted

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return self.counted(x, y) * y
"""
    after, _ = fixed(source)
    inputs = ["torch.ones(3), torch.ones(3)", "torch.zeros(3), torch.ones(3)"]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=_COMPILED)
