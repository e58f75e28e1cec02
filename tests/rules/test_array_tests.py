"""Tests of NumPy arrays that are computed from sizes: the integers decide them (GM111)."""

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

SELECT = ("GM111",)
MODEL = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, patch=2, sizes=(4, 6)):
        super().__init__()
        self.patch = patch
        self.sizes = sizes
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        shape = x.shape
{body}
        return self.linear(x)
"""
CHECK = """
size = np.array(shape)
remainder = (size % np.power(self.patch, 1)) > 0
if remainder.any():
    raise ValueError(f"wrong: {np.where(remainder)[0].tolist()}")
"""
INPUTS = ["torch.randn(4, 6)", "torch.randn(2, 6)", "torch.randn(8, 6)"]
WRONG = ["torch.randn(3, 6)", "torch.randn(4, 6)"]


def model(body: str) -> str:
    return MODEL.format(body="\n".join(f"        {line}" for line in body.strip("\n").split("\n")))


@pytest.mark.parametrize(
    "body",
    [
        CHECK,
        "if not np.all(np.asarray(self.sizes) * 2 // self.patch == np.asarray(self.sizes)):\n    x = x + 1",
        "if np.any(np.array(x.shape[1:]) + 1 - self.patch < 5) or x.dim() > 2:\n    x = x * 2",
        "bad = np.array(shape) % 2 != 0\nif bad.any() and self.training:\n    raise ValueError(bad.sum())",
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_integers_decide_the_test(body: str, dynamic: bool) -> None:
    before = model(body)
    after, _ = fixed(before, select=SELECT)
    assert "torch.compiler.is_compiling()" in after
    assert fixed(after, select=SELECT)[0] == after
    behaves(before, after, [*INPUTS, *WRONG], scenarios=[Scenario()])
    compiles(after, INPUTS, dynamic=dynamic)
    compiles(after, WRONG, strict=False, dynamic=dynamic)


@pytest.mark.parametrize("patch", ["-2", "2.0", "np.int64(2)", "True", "200"])
def test_other_numbers_are_tested_as_before(patch: str) -> None:
    before = model(CHECK).replace("patch=2", f"patch={patch}")
    after, _ = fixed(before, select=SELECT)
    behaves(before, after, INPUTS, scenarios=[Scenario()])
    compiles(after, INPUTS, strict=False)


@pytest.mark.parametrize("sizes", ["()", "[2, 4]", "[[2, 4], [6, 8]]", "(2.5, 4)", "np.array([2, 4])", "7"])
def test_other_arrays_are_tested_as_before(sizes: str) -> None:
    before = model(CHECK.replace("np.array(shape)", "np.array(self.sizes)")).replace("sizes=(4, 6)", f"sizes={sizes}")
    after, _ = fixed(before, select=SELECT)
    behaves(before, after, INPUTS, scenarios=[Scenario()])
    compiles(after, INPUTS, strict=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("remainder = (size % np.power(self.patch, 1)) > 0", "remainder = 7 % size > 0", "divides by the numbers"),
        ("np.power(self.patch, 1)", "np.power(self.patch, self.patch)", "no small power"),
        ("size % np.power(self.patch, 1)", "size * self.patch", "too large"),
        ("size % np.power(self.patch, 1)", "size * 3 * 5", "too large"),
        ("size % np.power(self.patch, 1)", "size * 40000", "too large"),
        (" > 0\n", "\n", "something else than a comparison"),
        ("np.array(shape)", "np.array(shape, dtype=np.uint8)", "not made of numbers"),
        ("np.array(shape)", "np.array([each + 1 for each in shape])", "not made of numbers"),
    ],
)
def test_other_tests_are_left_alone(old: str, new: str, because: str) -> None:
    assert CHECK.replace(old, new) != CHECK
    declined(model(CHECK.replace(old, new)), because=because, select=SELECT)


@pytest.mark.parametrize(
    "between", ["self.patch = 3", "size += 1", "size[0] = 3", "y = np.copyto(size, 3)", "shape = shape[1:]"]
)
def test_what_stands_in_between_leaves_the_test_alone(between: str) -> None:
    body = CHECK.replace("remainder =", f"{between}\nremainder =")
    after, _ = fixed(model(body), select=SELECT)
    assert after == model(body)


@pytest.mark.parametrize(
    "body",
    [
        "k = self.patch\nbad = np.array(shape) % k > 0\nk = 3\nif bad.any():\n    raise ValueError(bad.sum())",
        "shape = np.array(shape)\nif (shape % 2 > 0).any():\n    raise ValueError(1)",
        "bad = np.array(shape) % 2 > 0\nshape = shape[1:]\nif bad.any():\n    raise ValueError(bad.sum())",
    ],
)
def test_a_name_that_is_bound_again_leaves_the_test_alone(body: str) -> None:
    after, _ = fixed(model(body), select=SELECT)
    assert after == model(body)


def test_bools_are_no_integers() -> None:
    before = model("if np.any(np.array(self.sizes) + True < 2):\n    x = x + 1").replace("(4, 6)", "(True, True)")
    after, _ = fixed(before, select=SELECT)
    behaves(before, after, INPUTS, scenarios=[Scenario()])
    compiles(after, INPUTS, strict=False)
