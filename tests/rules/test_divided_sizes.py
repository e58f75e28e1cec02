"""Sizes that are divided as tensors: an integer takes their place only where nothing tells it from a tensor."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        n = torch.div(x.size(1), 2, rounding_mode="floor")
        ...
"""


@pytest.mark.parametrize(
    "use",
    [
        "return x, n",
        "return n",
        "self.half = n\nreturn x",
        "m = n\nreturn x * m.double()",
        "return {'half': n}",
        "return x, [n]",
        "return x.double() * (n / 3)",
        "return x.double() * n**-1",
        "return x, n == 2",
        "return x, n or 1",
        "return x, n if n > 1 else 0",
        "return x, f'{n}'",
        "return (lambda: (x, n))()",
        "return self.scaled(x, half=n)",
        "yield n",
        "m = n - 1\nreturn x, m",
        "size = (1, n)\nreturn x, size",
        "size = [1, n]\nself.sizes[0] = size[1]\nreturn x",
    ],
)
def test_what_goes_elsewhere_stays_a_tensor(use: str) -> None:
    found = checked(embedded(use, _MODEL), select=("GM601",)).findings
    assert [each.edit for each in found] == [None]
    assert "may need a Tensor" in (found[0].declined or "")


@pytest.mark.parametrize(
    "use",
    [
        "return x[:, :n]",
        "return x[:, n - 1]",
        "return x.view(n, -1)",
        "return x.new_zeros(size=(n + 1, 2))",
        "return x * n + (n // 3 - 1)",
        "return x / n",
        "return x * 2 if n > 1 and not n == 3 else x",
        "return sum(x[:, i] for i in range(-n, n))",
        "size = (x.size(0), n + 1)\nreturn x.new_zeros(size)",
        "size = [x.size(0), n]\nsize[1] = size[1] * 2 - 1\nreturn x.new_ones(size=size)",
    ],
)
def test_sizes_bounds_tests_and_factors_are_integers(use: str) -> None:
    after, _ = fixed(embedded(use, _MODEL))
    assert "n = x.size(1) // 2" in after
    compiles(after, ["torch.ones(2, 4)", "torch.rand(6, 6)"])
