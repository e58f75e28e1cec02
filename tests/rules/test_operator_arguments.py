"""What operators of functions and methods get of their parameters: those by name only as well, and none by stars."""

from __future__ import annotations

import pytest
import torch

from tests.rules.operators import compiled_like_eager, forgotten, made  # noqa: F401
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, fixed

_SOURCE = """
import torch
from torch import nn


def fill(*given, **named):
    {filled}


def ranks({takes}):
    {before}
    _, places, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
    sizes = torch.zeros_like(counts, dtype=torch.float32)
    sizes.scatter_add_(0, places.flatten(), x.flatten())
    return (sizes * scale)[places] + eps


class Model(nn.Module):
    def count(self, x, *, eps):
        _, places, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
        return (counts * self.scale)[places] + eps

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor):
        return ranks(torch.tanh(x), {gives}) + self.count(x, eps=0.5)
"""
_X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def source(takes: str, gives: str, before: str = "pass", filled: str = "pass") -> str:
    return _SOURCE.format(takes=takes, gives=gives, before=before, filled=filled)


@pytest.mark.parametrize(
    ("takes", "gives"),
    [
        ("x, *, eps=0.25, scale=2.0", "scale=3.0"),
        ("x, scale, *rest, eps=0.25, **options", "3.0, 4, eps=1.5, other=2"),
        ("x, scale=2.0, /, *, eps", "eps=torch.ones(4)"),
    ],
)
def test_arguments_by_name_reach_the_operator(takes: str, gives: str) -> None:
    text = source(takes, gives)
    after, _ = fixed(text, opaque=True)
    behaves(text, after, ["torch.randn(3, 4)"], scenarios=FEW_SCENARIOS[:2])
    compiled_like_eager(made(text), _X)


@pytest.mark.parametrize("before", ["x = x + rest[0]", "x = x + options['other']", "fill(*rest)"])
def test_a_function_that_reads_its_starred_arguments_is_no_operator(before: str) -> None:
    text = source("x, *rest, eps=0.25, scale=2.0, **options", "torch.ones(4), other=2", before)
    assert "return _ranks_operator(" not in fixed(text, opaque=True)[0]


@pytest.mark.parametrize(
    ("before", "filled"),
    [
        ("fill(x)", "given[0].zero_()"),
        ("fill(counts=x)", "named['counts'].zero_()"),
        ("fill(torch.ones(1), x)", "for each in given:\n        each.add_(1)"),
    ],
)
def test_what_a_function_writes_that_stars_hand_over_is_written(before: str, filled: str) -> None:
    text = source("x, eps=0.25, scale=2.0", "0.25", before, filled)
    assert "return _ranks_operator(" not in fixed(text, opaque=True)[0]


def test_a_loop_that_fills_a_dict_is_no_loop_that_fills_a_tensor() -> None:
    text = source("x, eps=0.25, scale=2.0", "0.25").replace(
        "        return ranks(",
        "        found = {}\n        for i in range(2):\n            found[i] = int(x[i].sum())\n        return ranks(",
    )
    found = checked(text).findings
    assert all(each.code != "GM504" for each in found)
    assert any("int(x[i].sum())" in each.message for each in found)
