"""GM601: arrays of sizes become tuples only where nothing can tell."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_MODEL = """
import numpy as np
import torch
from torch import nn


def grid(shape, stride):
    rows, columns = np.meshgrid(np.arange(0, shape[1]) * stride, np.arange(shape[0]))
    return torch.from_numpy(rows + columns)


class Model(nn.Module):
    def __init__(self, levels=(1, 2)):
        super().__init__()
        self.levels = levels

    def forward(self, x):
        shape = x.shape[-2:]
        shape = np.array(shape)
        shapes = [(shape + 2**k - 1) // 2**k % 7 for k in self.levels]
        total = 0
        for k in range(2):
            total = total + grid(shapes[k], k + 1).sum()
        return x * total


def make_fractions():
    return Model((0.5, 1))
"""


def test_sizes_may_be_dynamic() -> None:
    after, _ = fixed(_MODEL)
    assert "tuple(shape)" in after
    compiles(after, ["torch.ones(2, 9, 5)", "torch.ones(2, 12, 6)"], dynamic=True)
    compiles(after, ["torch.ones(2, 9, 5)"], name="make_fractions", strict=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("np.arange(shape[0])", "shape[0]", "may need an array"),
        ("np.arange(shape[0])", "np.arange(shape[0]) + shape.sum()", "may need an array"),
        ("total = 0", "total = shapes[0].sum()", "may need arrays"),
        ("total = 0", "total = shape.sum()", "may be used as an array"),
        ("// 2**k % 7", "/ 2**k", "may give other numbers"),
        ("// 2**k % 7", "// k", "may give other numbers"),
        ("+ 2**k - 1", "* shape", "may give other numbers"),
    ],
)
def test_what_could_tell_is_left_alone(old: str, new: str, because: str) -> None:
    declined(_MODEL.replace(old, new), because, select=("GM601",))


def test_a_statement_of_several_lines_stays_within_the_limit_in_its_compile_path() -> None:
    statement = """patches = x.new_zeros(
            np.prod(x.shape[1:]),
            np.prod(x.shape[2:]) + np.prod(x.shape[3:]),
        )"""
    head = "import numpy as np\nimport torch\nfrom torch import nn\n\n\n"
    head += "class Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    source = f"{head}        {statement}\n        return patches + 1\n"
    text = fixed(source, select=("GM601",))[0]
    assert text.count("patches = x.new_zeros(\n") == 2
    assert max(map(len, text.splitlines())) <= 79
