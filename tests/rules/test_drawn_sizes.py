"""Integers of Python's `random` that sizes depend on stay in the graph, and are drawn as eager mode draws them."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed

_SOURCE = """
import random
from random import randrange

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.most = 6
        self.linear = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(7)])

    def forward(self, x: torch.Tensor, n=None):
        x = self.linear(x)
        {body}
"""
_MIXED = """
if n is None:
    n = random.randint(1, self.most - 1)
first = x.unsqueeze(1).repeat(1, n, 1)
second = (x * 2).unsqueeze(1).repeat(1, self.most - n, 1)
both = torch.cat([first, second], 1)
return both[:, 0] + both[:, 5], both"""


def source(body: str) -> str:
    return _SOURCE.format(body=body.strip("\n").replace("\n", "\n        "))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("drawn_subject", None)
    torch._dynamo.reset()


def model(body: str) -> Any:
    text = fixed(source(body), opaque=True)[0]
    assert "_number_in_graph(torch.as_tensor(" in text
    again, found = fixed(text, opaque=True)
    assert again == text
    assert not found.remaining
    module: Any = types.ModuleType("drawn_subject")
    sys.modules["drawn_subject"] = module
    exec(compile(text, "drawn_subject.py", "exec"), vars(module))
    torch.manual_seed(0)
    return module.Model()


def compiled_like_eager(subject: Any, *given: Any, backend: str = "aot_eager") -> None:
    whole: Any = torch.compile(subject, backend=backend, fullgraph=True)
    for seed in range(4):
        found = []
        for call in (subject, whole):
            subject.zero_grad()
            random.seed(seed)
            results = call(*given)
            loss: Any = torch.stack([each.square().sum() for each in results]).sum()
            if loss.requires_grad:
                loss.backward()
            gradients = [each.grad for each in subject.parameters() if each.grad is not None]
            found.append(([*results, *gradients], random.getstate()))
        torch.testing.assert_close(
            found[1][0], found[0][0], rtol=1e-2 if given[0].dtype.itemsize < 4 else 1e-5, atol=1e-2
        )
        assert found[1][1] == found[0][1], "the generator is where eager mode leaves it"


X = torch.linspace(-1, 1, 12).reshape(4, 3)


@pytest.mark.parametrize("x", [X, X[:0], X.bfloat16()], ids=["float32", "empty", "bfloat16"])
def test_a_tensor_is_repeated_as_often_as_was_drawn(x: torch.Tensor) -> None:
    with torch.no_grad():
        compiled_like_eager(model(_MIXED).to(x.dtype), x)


@pytest.mark.filterwarnings("ignore")
def test_inductor_keeps_what_was_drawn() -> None:
    with torch.no_grad():
        compiled_like_eager(model(_MIXED), X, backend="inductor")


def test_a_number_that_is_given_is_not_drawn() -> None:
    compiled_like_eager(model(_MIXED), X, 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draw", ["random.randint(1, 3)", "int(n.max())"], ids=["drawn", "read back"])
@pytest.mark.parametrize(
    "call", ["x.repeat(n, 1)", "x.tile((n, 1))", "torch.tile(x, (5 - n, 1))", "(x[:n] ** n)", "x[:n].pow(n)"]
)
def test_the_gradient_of_a_repetition_or_power_breaks_the_graph_and_raises_no_error(draw: str, call: str) -> None:
    text = fixed(source(f"n = {draw}\nreturn {call}.square().sum()"), opaque=True)[0]
    assert "not torch.is_grad_enabled()" in text
    names: dict[str, Any] = {"__name__": "drawn_subject"}
    exec(text, names)
    subject = names["Model"]()
    given = (X, torch.tensor([2, 3]))
    found = []
    for call_it in (subject, torch.compile(subject, backend="aot_eager")):
        subject.zero_grad()
        random.seed(1)
        call_it(*given).backward()
        found.append(subject.linear.weight.grad.clone())
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    "body",
    [
        "n = random.randint(1, 3)\nreturn x[:n].sum(0), x[n:].sum()",
        "n = randrange(1, 4)\nreturn x[:n].mean(), x * n",
        "k = random.randrange(3)\nreturn torch.zeros(k + 1, 3) + x[0], x",
        "with torch.no_grad():\n    s = random.randint(0, 2)\n    y = x[s : s + 2]\nreturn y.sum(), x",
    ],
)
def test_a_tensor_is_cut_where_was_drawn(body: str) -> None:
    compiled_like_eager(model(body), X)
    with torch.no_grad():
        compiled_like_eager(model(body), X)


@pytest.mark.parametrize(
    "body",
    [
        "n = random.randint(1, 3)\nif n > 2:\n    x = x * 2\nreturn x[:n]",
        "n = random.randint(1, 3)\nfor _ in range(n):\n    x = x * 2\nreturn x[:n]",
        "n = random.randint(1, 3)\nreturn self.layers[n](x)[:n]",
        "a = random.randint(0, 2)\nb = random.randint(0, 1)\nreturn x[a : a + 2, b : b + 2]",
        "n = random.randint(1, 3)\ny = x * 1\ny[:n] = 0\nreturn y",
        "self.drawn = random.randint(1, 3)\nreturn x[: self.drawn]",
        "n = random.randint(1, 3)\nreturn x * n",
        "n = [1, 2, 3][random.randint(0, 2)]\nreturn x[:n]",
        "n = random.randint(1, 3)\nreturn [1, 2, 3][n - 1] + x[:n].sum()",
        "n = random.uniform(1, 3)\nreturn x.repeat(int(n), 1)",
    ],
    ids=["branch", "loop", "layer", "several starts", "written", "attribute", "no size", "index", "list", "real"],
)
def test_a_number_that_python_needs_or_no_size_depends_on_stays(body: str) -> None:
    assert "torch.as_tensor(" not in fixed(source(body), opaque=True)[0]


def test_a_generator_of_another_object_stays() -> None:
    body = "n = random.Random(0).randint(1, 3)\nreturn x[:n]"
    assert "torch.as_tensor(" not in fixed(source(body), opaque=True)[0]
