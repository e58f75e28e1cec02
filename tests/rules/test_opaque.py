"""Opaque operators: what they run, what their gradients are, and what is told apart while tracing."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graphmend_codemod.core.findings import Safety
from tests.tools.fixes import checked, embedded, fixed

_RECURRENT = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5)

    def forward(self, x: torch.Tensor, *more):
        ...
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("opaque_subject", None)
    torch._dynamo.reset()


def loaded(source: str) -> types.ModuleType:
    module = sys.modules["opaque_subject"] = types.ModuleType("opaque_subject")
    exec(compile(fixed(source, opaque=True)[0], "subject.py", "exec"), vars(module))
    return module


def made(source: str) -> Any:
    torch.manual_seed(0)
    return vars(loaded(source))["Model"]()


def recurrent(layer: str, body: str) -> str:
    return embedded(body, _RECURRENT.replace("nn.LSTM(4, 5)", layer))


def outputs_and_gradients(model: Any, call: Any, *given: Any) -> list[torch.Tensor | None]:
    model.zero_grad()
    copies = [each.detach().clone().requires_grad_(each.is_floating_point()) for each in given]
    torch.manual_seed(1)
    returned = call(*copies)
    found = returned if isinstance(returned, tuple) else (returned,)
    sum(each.float().square().sum() for each in found if each.requires_grad).backward()
    grads = [each.grad for each in (*copies, *model.parameters())]
    return [*(each.detach() for each in found), *grads]


def compiled_like_eager(model: Any, *given: Any, backend: str = "aot_eager", within: float = 1e-6) -> None:
    whole: Any = torch.compile(model, backend=backend, fullgraph=True)
    expected = outputs_and_gradients(model, model, *given)
    for old, new in zip(expected, outputs_and_gradients(model, whole, *given), strict=True):
        if old is None:
            assert new is None or not new.any()
        else:
            torch.testing.assert_close(new, old, rtol=within, atol=within)
    with torch.no_grad():
        torch.testing.assert_close(whole(*given), model(*given), rtol=within, atol=within)


X = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))


def test_opaque_operators_are_offered_and_written_only_when_asked_for() -> None:
    source = recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]")
    finding = checked(source).findings[0]
    assert (finding.code, finding.safety) == ("GM801", Safety.OPAQUE)
    assert fixed(source)[0] == source
    assert fixed(source, unsafe_fixes=True)[0] == source
    assert "_rnn_operator" in fixed(source, opaque=True)[0]


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("nn.LSTM(4, 5, num_layers=2, bidirectional=True)", "out, (h, c) = self.rnn(x)\nreturn out, h, c"),
        (
            "nn.GRU(4, 5, batch_first=True)",
            "h = x.new_zeros(self.rnn.num_layers, x.shape[0], 5)\nout, h = self.rnn(x, h)\nreturn out, h",
        ),
        ("nn.RNN(4, 5)", "for _ in range(2):\n    last = self.rnn(x[:, 0], None)[1]\nreturn last"),
    ],
)
def test_recurrent_layers_are_one_graph_with_the_gradients_of_eager_mode(layer: str, body: str) -> None:
    compiled_like_eager(made(recurrent(layer, body)), X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_recurrent_layer_under_inductor() -> None:
    body = "self.rnn.flatten_parameters()\nx = torch.tanh(x)\nx, (h, c) = self.rnn(x)\nreturn x.relu() + h"
    compiled_like_eager(made(recurrent("nn.LSTM(4, 5)", body)), X.transpose(0, 1), backend="inductor", within=1e-5)


def test_parameters_that_change_in_place_are_used() -> None:
    model = made(recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]"))
    whole: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    whole(X)
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(2)
    model.load_state_dict({name: each + 1 for name, each in model.state_dict().items()})
    torch.testing.assert_close(whole(X), model(X))


@pytest.mark.parametrize("given", ["packed", "autocast", "other layer"])
def test_what_the_operator_cannot_take_breaks_the_graph_as_before(given: str) -> None:
    model = made(recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]"))
    whole: Any = torch.compile(model, backend="eager")
    x: Any = X
    if given == "packed":
        x = torch.nn.utils.rnn.pack_padded_sequence(X, torch.tensor([3, 2]))
    if given == "other layer":
        model.rnn = torch.nn.RNN(4, 5)
    with torch.autocast("cpu", torch.bfloat16, enabled=given == "autocast"):
        old, new = model(x), whole(x)
    torch.testing.assert_close(new.data if given == "packed" else new, old.data if given == "packed" else old)


def test_a_layer_that_is_looked_into_is_left_alone() -> None:
    source = recurrent("nn.LSTM(4, 5)", "return self.rnn.weight_hh_l0.sum() + x.sum()")
    assert fixed(source, opaque=True)[0] == source
