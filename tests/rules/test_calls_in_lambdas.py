"""A method that a lambda, a default or a decorator calls: no rule ends with an error there."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.tools.fixes import checked

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def one(self, v):
{}

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
{}
"""
_BODIES = [
    "if torch.isinf(v).any():\n    v = v.clamp(-9, 9)\nreturn v",
    "m = v > 0\nif m.any():\n    v = v.masked_fill(m, 0.0)\nreturn v",
    "if v.sum() > 1:\n    return v * 2\nreturn v",
    "if v.sum() > 1:\n    v = v.t()\nreturn v",
    "w = v\nw[v > 0] = torch.tanh(w[v > 0])\nreturn w",
    "w = v * 1\nw[0] = v.max().item()\nreturn w.t()",
    "n = torch.tensor([2, 3])\nreturn v.view(int(n[0]), -1)",
]
_CALLS = [
    "return torch.func.grad(lambda v: self.one(v).sum())(x)",
    "f = lambda v: [self.one(each) for each in v]\nreturn f(x)[0]",
    "y = self.one(x)\nf = lambda: self.one(y)\nreturn f() * 2",
    "def inner(v=self.one(x)):\n    return v\nreturn inner()",
    "def inner(v):\n    return self.one(v)\nreturn inner(x)",
    "return sorted(x, key=lambda v: self.one(v).sum())[0]",
]


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("body", _BODIES)
def test_a_call_in_an_inner_function_is_no_error(body: str, call: str) -> None:
    checked(_SOURCE.format(indent(body, " " * 8), indent(call, " " * 8)), opaque=True)
