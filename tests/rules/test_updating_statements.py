"""Statements of a method that change tensors of its instance, as one operator."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.rules.stateful_models import forgotten, loaded, run  # noqa: F401
from tests.tools.fixes import checked, fixed

_NORM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(3))
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("ready", torch.tensor(0, dtype=torch.uint8))
        self.held = []

    def start(self, x):
        with torch.no_grad():
            self.loc.data.copy_(-x.mean(0))
            self.scale.copy_(1 / (x.std(0) + 1e-6))

    def forward(self, x: torch.Tensor, factor: float = 2.0):
        y = torch.tanh(x)
        if self.training and self.ready.item() == 0:
            self.start(x * factor)
            self.ready.fill_(1)
        return (self.scale * (y + self.loc) * factor).sum()


class Other(Model):
    def start(self, x):
        self.loc.data.fill_(5.0)
"""
_NEW_DATA = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.loc = nn.Parameter(torch.zeros(3))
        self.scale = nn.Parameter(torch.ones(3))

    def start(self, x):
        with torch.no_grad():
            std = x.std(0)
            self.loc.data = -(x / std).mean(0)
            self.scale.data = 1 / (std + 1e-6)
            self.ready.data = torch.tensor(True)

    def forward(self, x: torch.Tensor, factor: float = 2.0):
        if self.training and not self.ready:
            self.start(x * factor)
        return (self.scale * (torch.tanh(x) + self.loc) * factor).sum()
"""
_QUEUE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bank", torch.zeros(5, 3))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x: torch.Tensor):
        y = torch.tanh(x)
        old = self.bank.clone()
        with torch.no_grad():
            for row in y.detach():
                self.bank[int(self.place)] = row
                self.place[0] = (self.place[0] + 1) % 5
        return (y @ old.t()).sum()
"""


@pytest.mark.parametrize("source", [_NORM, _NEW_DATA, _QUEUE], ids=["norm", "new data", "queue"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_state_that_a_statement_changes_changes_in_one_graph(source: str) -> None:
    eager = loaded(source).Model()
    models = [copy.deepcopy(eager) for _ in range(2)]
    compiled: list[Any] = [
        torch.compile(model, backend=backend, fullgraph=True)
        for model, backend in zip(models, ("inductor", "aot_eager"), strict=True)
    ]
    for number in range(3):
        x = torch.randn(2, 3, generator=torch.Generator().manual_seed(number))
        expected = run(eager, eager, x)
        for model, whole in zip(models, compiled, strict=True):
            for old, new in zip(expected, run(model, whole, x), strict=True):
                torch.testing.assert_close(new, old)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_subclass_breaks_the_graph_as_before() -> None:
    eager = loaded(_NORM).Other()
    model = copy.deepcopy(eager)
    whole: Any = torch.compile(model, backend="eager")
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(9))
    for old, new in zip(run(eager, eager, x), run(model, whole, x), strict=True):
        torch.testing.assert_close(new, old)


def test_what_is_read_above_and_changed_keeps_the_operator_out_of_gradients() -> None:
    source = _NORM.replace("torch.tanh(x)", "torch.tanh(x) * self.scale.exp()")
    after, _ = fixed(source, opaque=True)
    assert "not torch.is_grad_enabled()" in after
    assert "not torch.is_grad_enabled()" not in fixed(_NORM, opaque=True)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.ready.fill_(1)", "y = x"),  # is read below
        ("self.ready.fill_(1)", "return x"),
        ("self.ready.fill_(1)", "x.add_(1)"),
        ("self.ready.fill_(1)", "self.count = x"),
        ("self.ready.fill_(1)", "open(factor)"),
        ("self.ready.fill_(1)", "super().train()"),
        ("self.ready.fill_(1)", "self.ready.resize_(x.size())"),
        ("self.ready.fill_(1)", "self.scale.data.t_()"),
        ("self.ready.fill_(1)", "self.held.append(x)"),
        ("self.ready.fill_(1)", "self.held[0] = x"),
    ],
)
def test_a_statement_that_does_more_is_left_alone(old: str, new: str) -> None:
    source = _NORM.replace(old, new, 1)
    assert source != _NORM
    assert fixed(source, opaque=True)[0] == source
    assert any(each.declined for each in checked(source, opaque=True).findings)


def test_the_fill_of_a_parameter_may_be_recorded() -> None:
    source = _NORM.replace("self.ready.fill_(1)", "self.ready.fill_(1)\n            self.loc.zero_()", 1)
    assert "not torch.is_grad_enabled()" in fixed(source, opaque=True)[0]


def test_what_turns_gradients_on_inside_may_be_recorded() -> None:
    for source in (
        _NORM.replace(
            "            self.scale.copy_(", "            with torch.enable_grad():\n                self.scale.copy_("
        ),
        _NORM.replace("    def start", "    @torch.no_grad()\n    def start").replace(
            "with torch.no_grad():", "with torch.enable_grad():"
        ),
    ):
        assert "enable_grad" in source
        assert "not torch.is_grad_enabled()" in fixed(source, opaque=True)[0]


@pytest.mark.parametrize(
    "line",
    [
        "self.loc.data = x",  # the parameter would be memory of the input from then on
        "self.loc.data = std",  # two parameters, or a parameter and a name, would share memory
        "self.loc.data = x[0]",
        "x.data = -std",
    ],
)
def test_data_that_something_else_refers_to_is_left_alone(line: str) -> None:
    source = _NEW_DATA.replace("self.loc.data = -(x / std).mean(0)", line)
    assert fixed(source, opaque=True)[0] == source


def test_a_tensor_that_shares_memory_with_another_one_breaks_the_graph_as_before() -> None:
    eager = loaded(_NEW_DATA).Model()
    eager.other = eager.scale.data  # new data ends that in eager mode
    model = copy.deepcopy(eager)
    whole: Any = torch.compile(model, backend="eager")
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(9))
    run(eager, eager, x), run(model, whole, x)
    torch.testing.assert_close(model.other, eager.other)


def test_new_data_of_another_shape_is_an_error_in_compiled_code() -> None:
    model = loaded(_NEW_DATA.replace("torch.zeros(3)", "torch.zeros(1)")).Model()
    whole: Any = torch.compile(model, backend="eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="another shape or dtype"):
        whole(torch.randn(2, 3))
