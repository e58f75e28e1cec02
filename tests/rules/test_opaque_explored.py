"""Operators whose results tell their shapes themselves: the code runs on tensors without data while torch traces."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.tools.fixes import checked, embedded, fixed

_SOURCE = """
import torch
from torch import nn


def helper(x, scale=2.0):
    ...


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        return helper(torch.tanh(x))
"""
_CALLS = (torch.randn(4, 3), torch.rand(4, 3), -torch.rand(4, 3), torch.zeros(4, 3), 3 * torch.randn(5, 3))
_KNOWN = [
    "if (x > 0).any():\n    y = x.exp()\nelse:\n    y = torch.cat([x, x])[: x.shape[0]]\nreturn y * scale",
    "if x.sum() > 0:\n    return x.mean(0), x * scale\nreturn x.amax(0), x.relu()",
    "for row in x[:3]:\n    if row.sum() > 0:\n        x = x + row\nreturn x * 2",
    "y = x * x.abs().max().item()\nif x.sum() > 0:\n    y = torch.stack([y, y]).sum(0)\nreturn y.sin()",
    "m = x > 0\nif m.any():\n    return x[m].max() * x\nreturn x.cos()",
    "if (x != x).any():\n    raise ValueError('bad')\nif x.sum() > 0:\n    return (x @ x.T).sum(1)\nreturn x.sum(1)",
    "if x.sum() > 0:\n    n = int(x.argmax())\n    return torch.roll(x, n, 0) * 2\nreturn x.sin()",
]
_UNKNOWN = [
    "if x.sum() > 0:\n    y = torch.cat([x, x])\nelse:\n    y = x * 2\nreturn y.sin()",
    "if x.sum() > len(x[x > 0]):\n    return (x @ x.T).sin()\nreturn x[:1].sin()",
    "y = x[:1]\nfor each in x[x > 0]:\n    y = torch.cat([y, x])\nreturn y.sin()",
    "if x.sum() > 100:\n    return x.sin()\nreturn torch.zeros(int(x.abs().sum() * 10)).sin() + x.sum()",
    "if x.sum() > 100:\n    return x.sin()\nreturn torch.zeros(max(5, int(x.abs().sum() * 10))) + x.sum()",
    "if x.sum() > 0:\n    return x.sin() + 1\nreturn torch.stack([x.sin(), x]).sum(0).double()",
    # What code compares a number with is tried.
    "n = int(x.abs().sum())\nif n == 50:\n    return x[:1].sin()\nreturn (x @ x.T).sin()",
    "if x.sum() > 0 and x[x > 0].numel() == 7:\n    return x[:1].sin()\nreturn (x @ x.T).sin()",
    "n = int(x.abs().sum())\nif n == x.shape[0] + 1:\n    return x[:1].sin()\nreturn (x @ x.T).sin()",
]


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("explored_subject", None)
    torch._dynamo.reset()


def made(body: str) -> Any:
    text = fixed(embedded(body, _SOURCE), opaque=True, select=("GM801",))[0]
    assert "_shapes_of" in text
    module = sys.modules["explored_subject"] = types.ModuleType("explored_subject")
    exec(compile(text, "subject.py", "exec"), vars(module))
    return module.Model()


def like_eager(model: Any, whole: Any) -> None:
    for x in _CALLS * 2:
        found = []
        for call in (model, whole):
            given = x.clone().requires_grad_()
            results = call(given)
            results = results if isinstance(results, tuple) else (results,)
            sum(each.square().sum() for each in results).backward()
            found.append((*results, given.grad))
        for old, new in zip(*found, strict=True):
            torch.testing.assert_close(new, old, equal_nan=True)


@pytest.mark.parametrize("body", _KNOWN)
def test_where_every_way_gives_one_form_there_is_one_graph(body: str) -> None:
    model = made(body)
    like_eager(model, torch.compile(model, backend="aot_eager", fullgraph=True))


def test_under_inductor_with_sizes_that_change() -> None:
    model = made(_KNOWN[0])
    like_eager(model, torch.compile(model, backend="inductor", fullgraph=True, dynamic=True))


@pytest.mark.parametrize("body", _UNKNOWN[-3:])
def test_what_the_code_compares_a_number_with_is_tried(body: str) -> None:
    whole: Any = torch.compile(made(body), backend="eager", fullgraph=True)

    with pytest.raises(Exception, match="what it returns depends on data"):
        whole(torch.randn(4, 3))


@pytest.mark.parametrize("body", _UNKNOWN)
def test_where_ways_differ_the_graph_breaks_and_results_are_those_of_eager_mode(body: str) -> None:
    model = made(body)
    like_eager(model, torch.compile(model, backend="aot_eager"))


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("if x.sum() > 0:\n    x = torch.cat([x, x])\nreturn x[x > 0]", "depend"),
        ("if x.sum() > 0:\n    x = torch.cat([x, x])\nreturn scale", "cannot infer"),
        ("if x.sum() > 0:\n    return torch.cat([x, x]), x\nreturn x", "one or several results"),
    ],
)
def test_what_returns_plainly_something_else_is_left_alone(body: str, because: str) -> None:
    source = embedded(body, _SOURCE)
    assert fixed(source, opaque=True, select=("GM801",))[0] == source
    reasons = [each.declined or "" for each in checked(source, opaque=True).findings]
    assert any(because in reason for reason in reasons), reasons
