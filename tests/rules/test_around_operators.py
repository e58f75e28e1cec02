"""Operators whose layers are replaced after compiling, under `torch.func`, and in several threads (GM502, GM801)."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.fixes import fixed

_SOURCE = """
import torch
from torch import nn
import torch.nn.functional as F


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return y.tanh() + h.sum() + c.sum()


class Rounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y = self.linear(x)
        while y.abs().max() > 0.5:
            y = y * 0.5
        return y


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(3)])

    def forward(self, x: torch.Tensor):
        x = x.reshape(-1, 4)
        weights, chosen = torch.topk(F.softmax(self.gate(x), dim=1), 2, dim=-1)
        final = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        for index in range(3):
            expert = self.experts[index]
            place, row = torch.where(mask[index])
            current = expert(x[None, row].reshape(-1, 4)) * weights[row, place, None]
            final.index_add_(0, row, current.to(x.dtype))
        return final
"""
_X = torch.linspace(-1, 1, 3 * 5 * 4).reshape(3, 5, 4)


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    made: Any = types.ModuleType("operators_subject")
    sys.modules["operators_subject"] = made
    text = fixed(_SOURCE, opaque=True)[0]
    assert text.count("operator(") > 4
    exec(compile(text, "operators_subject.py", "exec"), vars(made))
    yield made
    del sys.modules["operators_subject"]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _compiled(called: Any, *, whole: bool = True) -> Any:
    return torch.compile(called, backend="aot_eager", fullgraph=whole)


@pytest.mark.parametrize("replace", ["layer", "parameter", "assign"])
def test_a_recurrent_layer_that_is_replaced_after_compiling_is_told(module: Any, replace: str) -> None:
    subject, other = module.Recurrent(), module.Recurrent()
    called = _compiled(subject)
    called(_X).sum().backward()
    if replace == "layer":
        subject.rnn = other.rnn
    elif replace == "parameter":
        subject.rnn.weight_hh_l0 = nn.Parameter(torch.ones(20, 5))
    else:
        subject.load_state_dict(other.state_dict(), assign=True)
    with pytest.raises(RuntimeError, match=r"`rnn` of `Recurrent` was replaced .*`torch.compiler.reset\(\)`"):
        called(_X)
    torch.compiler.reset()
    torch.testing.assert_close(called(_X), subject(_X))


def test_without_gradients_the_layer_that_took_its_place_runs(module: Any) -> None:
    subject = module.Recurrent()
    called = _compiled(subject)
    with torch.no_grad():
        called(_X)
        subject.rnn = module.Recurrent().rnn
        torch.testing.assert_close(called(_X), subject(_X))


def test_what_changes_in_place_is_no_other_layer(module: Any) -> None:
    subject = module.Recurrent()
    called = _compiled(subject)
    called(_X)
    subject.load_state_dict(module.Recurrent().state_dict())
    subject.rnn.weight_hh_l0.data = torch.ones(20, 5)
    torch.testing.assert_close(called(_X), subject(_X))


@pytest.mark.parametrize("kind", ["Recurrent", "Rounds", "Experts"])
def test_a_gradient_by_functions_breaks_the_graph_as_before(module: Any, kind: str) -> None:
    subject = getattr(module, kind)()
    values = {name: each.detach() for name, each in subject.named_parameters()}

    def loss(values: Any, x: torch.Tensor) -> Any:
        return torch.func.functional_call(subject, values, (x,)).square().sum()

    expected = torch.func.grad(loss)(values, _X)
    torch.testing.assert_close(_compiled(torch.func.grad(loss), whole=False)(values, _X), expected)


@pytest.mark.parametrize("kind", ["Recurrent", "Experts"])
def test_several_threads_train_one_module(module: Any, kind: str) -> None:
    subject = getattr(module, kind)()
    called, found = _compiled(subject), list[str]()

    def gradients(call: Any, x: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(call(x).square().sum(), list(subject.parameters())))

    given = [_X * (1 + place) for place in range(4)]
    expected = [gradients(subject, each) for each in given]
    called(_X)

    def train(place: int) -> None:
        try:
            for _ in range(15):
                torch.testing.assert_close(gradients(called, given[place]), expected[place], rtol=1e-4, atol=1e-4)
        except Exception as error:
            found.append(repr(error))

    threads = [threading.Thread(target=train, args=(place,)) for place in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not found
    assert all(type(each) is nn.Parameter for each in subject.parameters())
