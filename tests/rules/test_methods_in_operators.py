"""Methods of the instance that a region runs: they are followed, and what they read goes into the operator."""

from __future__ import annotations

import pytest
import torch

from tests.rules.expert_loops import X, forgotten, made, one_graph, results, same  # noqa: F401
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import fixed

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.weight = nn.Parameter(torch.randn(3, 4, 4) * 0.3)
        self.scale = nn.Parameter(torch.ones(4))
        self.act = nn.Tanh()
        self.inner = nn.Linear(4, 4)
        self.limit = 0.5
        self.count = 0

{method}

    def scaled(self, x):
        return x * self.scale

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1), 2, dim=-1)
        result = torch.zeros_like(x)
        for i in range(3):
            row, slot = torch.where(chosen == i)
            y = self.run(x[row] @ self.weight[i])
            result.index_add_(0, row, y * weights[row, slot, None])
        return result * 2
"""


def _with(*lines: str, head: str = "def run(self, h):") -> str:
    body = "\n        ".join(lines)
    return _SOURCE.format(method=f"    {head}\n        {body}")


_METHODS = {
    "a parameter": ("return h * self.scale",),
    "a layer": ("return self.act(h).clamp(max=self.limit) + self.inner(h)",),
    "another method": ("return self.scaled(self.act(h))",),
    "its own tensors": ("y = torch.zeros_like(h)", "y[:] = h", "y = y + self.scale", "return y"),
    "a branch": ("if self.training:", "    h = h * self.scale", "return torch.relu(h)"),
}


@pytest.mark.parametrize("lines", _METHODS.values(), ids=_METHODS)
def test_a_method_that_only_computes_is_part_of_the_operator(lines: tuple[str, ...]) -> None:
    source = _with(*lines)
    after, found = fixed(source, select=("GM502",))
    assert [each.declined for each in found.remaining] == []
    assert "type(self) is Model" in after
    behaves(source, after, ["torch.randn(6, 4)"], scenarios=FEW_SCENARIOS[:2])
    model = made(source)
    for training in (True, False):
        same(results(model.train(training), model, X), results(model, one_graph(model), X), 1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_under_inductor_are_those_of_eager_mode() -> None:
    model = made(_with(*_METHODS["a layer"]))
    same(results(model, model, X), results(model, one_graph(model, "inductor"), X), 1e-5)


_DECLINED = {
    "an attribute": (("self.count = self.count + 1", "return h"), "def run(self, h):"),
    "what it is given": (("h.mul_(2.0)", "return h"), "def run(self, h):"),
    "an element of it": (("h[0:1] = 0.0", "return h"), "def run(self, h):"),
    "a parameter": (("self.scale.data.mul_(0.5)", "return h"), "def run(self, h):"),
    "a message": (("print(h.shape)", "return h"), "def run(self, h):"),
    "a property": (("return self.act",), "@property\n    def run(self):"),
    "a decorator": (("return h * self.scale",), "@torch.compiler.disable\n    def run(self, h):"),
    "the instance": (("return torch.relu(h) * len(list(vars(self)))",), "def run(self, h):"),
}


@pytest.mark.parametrize(("lines", "head"), _DECLINED.values(), ids=_DECLINED)
def test_a_method_that_does_more_is_left_alone(lines: tuple[str, ...], head: str) -> None:
    source = _with(*lines, head=head)
    after, found = fixed(source, select=("GM502",))
    assert after == source
    assert [bool(each.declined) for each in found.remaining] == [True]


def test_a_layer_of_the_method_is_looked_at() -> None:
    source = _with("return self.act(h)").replace("self.act = nn.Tanh()", "self.act = Counting()")
    counting = """class Counting(nn.Module):
    def forward(self, x):
        self.calls = x.shape[0]
        return x


class Model"""
    source = source.replace("class Model", counting)
    assert fixed(source, select=("GM502",))[0] == source


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_subclass_with_a_method_of_its_own_runs_the_loop() -> None:
    source = _with(*_METHODS["a parameter"])
    source += """

class Other(Model):
    def __init__(self):
        super().__init__()
        self.more = nn.Parameter(torch.ones(4))

    def run(self, h):
        return h * self.more
"""
    source = (
        source.replace("class Model(", "class Base(").replace("(Model)", "(Base)").replace("class Other", "class Model")
    )
    model = made(source)
    compiled = torch.compile(model, backend="aot_eager")
    same(results(model, model, X), results(model, compiled, X), 1e-6)
    assert model.more.grad is not None


def test_a_method_that_is_assigned_elsewhere_is_left_alone() -> None:
    source = _with("return h").replace(
        "        self.count = 0\n", "        self.count = 0\n        self.run = self.scaled\n"
    )
    assert fixed(source, select=("GM502",))[0] == source


@pytest.mark.parametrize("call", ["self.run(x * 2.0)[row]", "self.act(x * 2.0)[row]"])
@pytest.mark.parametrize("act", ["nn.ReLU(inplace=True)", "nn.Sequential(nn.SiLU(True), nn.Tanh())"])
def test_a_layer_that_writes_into_what_it_is_given_is_left_alone(act: str, call: str) -> None:
    source = _with("return self.act(h)").replace("self.run(x[row] @ self.weight[i])", call)
    assert fixed(source, select=("GM502",))[0] != source
    source = source.replace("nn.Tanh()", act, 1)
    assert fixed(source, select=("GM502",))[0] == source
