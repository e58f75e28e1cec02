"""GM601: numbers that only look like those of `math`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.levels = [2, 3]

    @property
    def counted(self):
        self.count += 1
        return [self.count, 2]

    def forward(self, x):
        {body}
"""


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("n = np.prod(x.shape[1:]).astype(np.float32)\n        return x * n", "may need a number of NumPy"),
        ("n = np.prod(x.shape[1:])\n        return x * n.astype(int)", "may need a number of NumPy"),
        ("n = np.prod(x.shape[1:])\n        return x * (1 if isinstance(n, int) else 2)", "may need a number of NumPy"),
        ("n = np.prod(x.shape[1:])\n        return x, repr(n)", "may need a number of NumPy"),
        ("n = np.prod(self.counted)\n        return x * n", "a property that may do more than read"),
    ],
)
def test_what_a_number_of_numpy_alone_knows_is_kept(body: str, because: str) -> None:
    declined(model(body), because=because, select=("GM601",))


@pytest.mark.parametrize("shape", ["x.shape[1:]", "x.shape"])
def test_a_product_of_no_sizes_is_a_float(shape: str) -> None:
    before = model(f"return torch.full((2,), np.prod({shape})) + x.sum()")
    after, _ = fixed(before)
    assert f"len({shape}) > 0" in after
    compiles(
        after,
        ["torch.ones(2, 3, dtype=torch.long)", "torch.ones(2, dtype=torch.long)", "torch.tensor(2)"],
        scenarios=[Scenario(False, "off")],
        strict=False,
    )


def test_a_list_of_nothing_is_no_product_of_integers() -> None:
    after, _ = fixed(model("n = np.prod(self.levels)\n        return x * n"))
    assert "len(self.levels) > 0" in after


@pytest.mark.parametrize(
    "body",
    [
        "n = np.prod(self.levels)\n        return x * float(n)",
        "n = torch.prod(torch.tensor(self.levels)).item()\n        return x * float(n)",
    ],
)
def test_a_product_that_64_bits_do_not_hold_is_that_of_the_array(body: str) -> None:
    before = model(body).replace("[2, 3]", "[2**40, 2**40]")
    after, _ = fixed(before)
    assert "-(2**63) <= math.prod(self.levels) < 2**63" in after
    compiles(after, ["torch.ones(2, 3)"], scenarios=[Scenario(False, "off")], strict=False)


@pytest.mark.parametrize("text", ["f'{n!r}'", "f'{n!a}'", "repr(n)", "ascii(n)"])
def test_a_number_that_is_shown_as_one_of_numpy_stays_one(text: str) -> None:
    declined(model(f"n = np.prod(x.shape)\n        return x * len({text})"), "may need a number of NumPy")


def test_what_a_star_takes_of_a_shape_are_sizes() -> None:
    after, _ = fixed(model("batch, *rest = x.shape\n        return x.reshape(batch, np.prod(rest))"), select=("GM601",))

    assert "if torch.compiler.is_compiling() and len(rest) > 0:\n" in after
    compiles(after, ["torch.ones(2, 3, 4)", "torch.ones(5, 2, 3)"])
    compiles(after, ["torch.ones(2)"], strict=False)


@pytest.mark.parametrize(
    "between",
    [
        "rest.append(x.sum())",
        "rest[0] = 1.5",
        "rest = [1.5]",
        "batch, *rest = [2, 1.5]",
        "del rest[0]",
        "other = rest",
        "change(rest)",
        "other = (rest, 1)",
        "self.fill(rest)",
    ],
)
def test_a_list_of_sizes_that_is_changed_may_hold_anything(between: str) -> None:
    body = f"batch, *rest = x.shape\n        {between}\n        return x.reshape(batch, int(np.prod(rest)))"

    after, _ = fixed(model(body), select=("GM601",))

    assert "all(type(n) is int for n in rest)" in after


def test_a_star_of_something_else_is_asked_about() -> None:
    after, _ = fixed(
        model("first, *rest = self.levels\n        return x.reshape(first, np.prod(rest))"), select=("GM601",)
    )

    assert "all(type(n) is int for n in rest)" in after


_ROUNDED = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, size, scale=1):
        low, high = int(np.floor(size - scale)), int(np.ceil(size - scale))
        near = int(np.round(size)) + int(np.abs(scale))
        half = (size - 1) / 2
        rest = int(np.ceil(half))
        return x[low:high], x[:near], x[:rest]
"""


def test_what_is_rounded_may_be_an_integer_already() -> None:
    after, _ = fixed(_ROUNDED)
    assert "math.floor(size - scale), math.ceil(size - scale)" in after
    assert after.count("is_compiling()") == 2  # a quotient is no integer
    inputs = [f"torch.arange(9.0), {given}" for given in ("5", "4.5", "-2.5, -1", "2.5, 0.5", "True")]
    others = [f"torch.arange(9.0), {given}" for given in ("torch.tensor(3.5)", "np.int64(3)", "float('inf')")]
    behaves(_ROUNDED, after, [*inputs, *others])
    for each in inputs:
        compiles(after, [each])
    compiles(after, others[:2], strict=False)


@pytest.mark.parametrize(
    "number", ["size / 2", "size * 0.5", "x.sum()", "np.sqrt(size)", "size ** 0.5", "size * scale"]
)
def test_what_is_certainly_a_float_or_a_tensor_is_left_alone(number: str) -> None:
    source = _ROUNDED.replace("size - scale", number).replace("int(np.round(size)) + int(np.abs(scale))", "1")
    assert "is_compiling()" not in fixed(source)[0]


_SIZES = "n = np.ceil(np.log1p(x.size(1))).astype('int').item()\n        return x * n"


@pytest.mark.parametrize(
    "bound", ["import math\nimport cmath as math", "math = None", "from numpy import emath as math"]
)
def test_math_that_is_something_else_is_not_computed_with(bound: str) -> None:
    source = model(_SIZES).replace("import numpy as np\n", f"import numpy as np\n{bound}\n", 1)
    declined(source, because="uses the name `math` for something else", select=("GM601",))


@pytest.mark.parametrize(("line", "asked"), [("model.math = None", False), ("model.other = None", True)])
def test_another_file_may_give_math_another_meaning(tmp_path: Path, line: str, asked: bool) -> None:
    after, told = fixed_among(tmp_path, model(_SIZES), {"other.py": f"import model\n\n{line}\n"}, select=("GM601",))
    assert ("math.ceil(" in after) is asked, told


@pytest.mark.parametrize(("number", "taken"), [("np.lcm(self.rows, 4)", True), ("np.gcd(x.size(0), 4)", False)])
def test_multiples_of_attributes_are_taken_by_themselves_and_those_of_sizes_are_not(number: str, taken: bool) -> None:
    """`math.gcd` breaks the graph for a size that varies, `np.gcd` does not."""
    source = f"""
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = 6

    def forward(self, x: torch.Tensor):
        steps = {number}
        return x if x.size(0) % steps else x * 2
"""
    assert ("math." in fixed(source)[0]) is taken
