"""Integers in a tensor that bound slices: who may get the number itself."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

_MODEL = """
import torch
from torch import nn


@torch.jit.script
def gated(a, b, sizes):
    size = sizes[0]
    both = a + b
    return torch.tanh(both[:, :size]) * torch.sigmoid(both[:, size:])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

    def cut(self, x, first, last):
        return x[:, first:last]

    def forward(self, x):
        sizes = torch.IntTensor([self.size // 2, self.size])
        for _ in range(2):
            x = torch.cat([x, gated(x, x, sizes)], 1)
            x = self.cut(x, sizes[0], last=sizes[-1]) + x[:, sizes[0] : sizes[1]]
            x = torch.cat([x, x], 1)
        return x
"""


def reasons(source: str) -> list[str | None]:
    return [each.declined for each in checked(source).findings if each.code == "GM402"]


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_every_use_gets_the_number_where_it_stands() -> None:
    after, _ = fixed(_MODEL, select=("GM402",))
    assert "gated(x, x, numbers_in_sizes)" in after
    assert "self.cut(x, numbers_in_sizes[0], last=numbers_in_sizes[-1])" in after
    behaves(_MODEL, after, ["torch.ones(2, 4)"])
    compiles(after, ["torch.ones(2, 4)", "torch.ones(3, 4)"])
    assert fixed(after, select=("GM402",))[0] == after


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("size = sizes[0]", "size = sizes[0]\n    a = a + sizes", "`a + sizes` in `gated` may need a Tensor"),
        ("size = sizes[0]", "size = sizes[0]\n    a = a * size", "`gated` binds `a` again"),
        ("both = a + b", "both = other(a + b)", "`gated(x, x, sizes)` in `Model.forward` may need a Tensor"),
        ("@torch.jit.script", "@torch.no_grad()", "`gated(x, x, sizes)` in `Model.forward` may need a Tensor"),
        ("return x[:, first:last]", "first.mul_(1)\n        return self.forward(x[:, :last])", "may write in place"),
        ("self.size // 2, self.size]", "self.size / 2, self.size]", "cannot infer that `self.size / 2` is an integer"),
    ],
)
def test_numbers_that_may_be_needed_as_a_tensor_stay_there(old: str, new: str, reason: str) -> None:
    assert old in _MODEL
    found = reasons(_MODEL.replace(old, new))
    assert any(reason in (each or "") for each in found), found


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for _ in range(2):", "self.size = 2\n        for _ in range(2):"),
        ("        return x\n", "        return x + sizes.sum()\n"),
        ("self.size // 2, self.size]", "x.size(0), x.size(1)]"),
    ],
)
def test_the_numbers_are_those_of_the_moment_and_the_tensor_is_still_one(old: str, new: str) -> None:
    assert old in _MODEL
    before = _MODEL.replace(old, new)
    after, _ = fixed(before, select=("GM402",))
    behaves(before, after, ["torch.ones(2, 4)"])
    compiles(after, ["torch.ones(2, 4)", "torch.ones(3, 4)"])


def test_a_tensor_of_numbers_that_bounds_no_slice_is_no_business_of_the_rule() -> None:
    source = _MODEL.replace("gated(x, x, sizes)", "x").replace("sizes[-1]", "4").replace("sizes[0]", "2")
    assert reasons(source.replace("sizes[1]", "4")) == []


_ARRAY = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.ranges = {"a": (0, 2), "b": [-3, 6], "c": (True, 4)}

    def forward(self, x, given):
        for key in ("a", "b", "c"):
            bounds = np.array(self.ranges[key])
            x = x + x[:, bounds[0] : bounds[1]].sum()
        bounds_given = np.asarray(given)
        given[0] = 0
        return x + x[:, bounds_given[0] :].sum()
"""


def test_bounds_in_an_array_of_integers_are_a_tuple_that_stays() -> None:
    before = _ARRAY.replace("(True, 4)", "(1, 4)")
    after, _ = fixed(before)
    assert "numbers_in_bounds = [*self.ranges[key]]" in after
    assert "numbers_in_bounds_given = [*given]" in after
    behaves(before, after, ["torch.randn(2, 7), [3, 5]"])
    compiles(after, ["torch.randn(2, 7), [3, 5]", "torch.randn(3, 9), [2, 5]"])


@pytest.mark.parametrize("given", ["[3.0, 5]", "torch.tensor([3, 5])", "[torch.tensor(3), 5]"])
def test_what_is_no_list_of_integers_stays_an_array(given: str) -> None:
    after, _ = fixed(_ARRAY.replace("(True, 4)", "(1, 4)"))
    compiles(after, [f"torch.randn(2, 7), {given}"], strict=False)


def test_calls_in_a_circle_that_write_nothing_leave_the_numbers_alone() -> None:
    after, _ = fixed(_MODEL.replace("return x[:, first:last]", "return self.forward(x[:, first:last])"))
    assert "x[:, numbers_in_sizes[0] : numbers_in_sizes[1]]" in after
