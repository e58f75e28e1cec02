"""Operators that draw random numbers: two equal calls in the graph of a training step draw twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed
from tests.tools.subject import forget, load, register

_FUNCTION = """
import torch
from torch import nn


def noisy(x):
    values, places, counts = torch.unique(x.detach().round(), return_inverse=True, return_counts=True)
    weights = torch.zeros_like(values)
    weights.scatter_add_(0, places, x)
    return (weights / counts)[places] * torch.rand(x.shape)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(7))

    def forward(self, x: torch.Tensor):
        x = x * self.weight
        return noisy(x), noisy(x)
"""
_LAYER = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(7, 5, num_layers=2, dropout=0.5)

    def forward(self, x: torch.Tensor):
        one = self.lstm(x[None])[0]
        other = self.lstm(x[None])[0]
        return one, other
"""


@pytest.mark.parametrize("source", [_FUNCTION, _LAYER])
def test_two_equal_calls_draw_twice(source: str) -> None:
    after, _ = fixed(source, opaque=True)
    assert after.count("_operator(") > 1
    written = register(after)
    try:
        module: Any = load(written)
        run: Any = torch.compile(module.Model(), backend="aot_eager", fullgraph=True)
        x = torch.randn(7) if source is _FUNCTION else torch.randn(3, 7)
        one, other = run(x)
        assert not torch.equal(one, other)
        (one.sum() + other.sum()).backward()
    finally:
        forget(written)
