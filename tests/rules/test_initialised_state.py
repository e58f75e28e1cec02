"""GM105: state that a branch initialises once, under a flag that is kept in a buffer."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.over = [0]
        self.scale = nn.Parameter(torch.ones(1, 3))
        self.shift = nn.Parameter(torch.zeros(1, 3))
        self.register_buffer("done", torch.tensor(0.0))

    def forward(self, x: torch.Tensor):
        if {test}:
{body}
        return (x + self.shift) * self.scale
"""
_REPLACED = [
    "assert self.scale is not None and self.shift is not None",
    "found = -torch.log(x.std(dim=self.over, keepdim=True) + 1e-6)",
    "self.scale.data = found.data",
    "self.shift.data = (-x.mean(dim=self.over, keepdim=True) * torch.exp(self.scale)).data",
    "self.done = torch.tensor(1.0)",
]
_FILLED = [
    "with torch.no_grad():",
    "    self.shift.copy_(-x.mean(dim=0, keepdim=True))",
    "self.done.fill_(1)",
]
_INPUTS = ["torch.rand(4, 3)", "torch.rand(4, 3) + 1", "torch.rand(2, 3)"]


def _model(test: str, body: list[str]) -> str:
    return _MODEL.replace("{test}", test).replace("{body}", "\n".join(f"            {line}" for line in body))


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("not self.done > 0.0", _REPLACED),
        ("not self.done", _FILLED),
        ("not self.training and self.done.item() == 0", _FILLED),
    ],
)
def test_what_the_first_call_writes_is_selected(test: str, body: list[str]) -> None:
    after, _ = fixed(_model(test, body))
    # torch.compile notes among the globals what it asked of the memory; what is written is compared below.
    compiles(after, _INPUTS, state=body is not _REPLACED)


def test_what_is_replaced_is_selected_without_gradients() -> None:
    after, _ = fixed(_model("not self.done > 0.0", _REPLACED))
    compiles(after, _INPUTS, scenarios=[Scenario(gradients="off")])


def test_memory_that_another_tensor_of_the_module_shares_is_not_written_into() -> None:
    """Eager mode leaves the old memory to the other one."""
    source = _model("not self.done > 0.0", _REPLACED)
    source = source.replace(
        "        self.register_buffer(",
        "        self.before = self.scale.detach()\n" + " " * 8 + "self.register_buffer(",
    )
    after, _ = fixed(
        source.replace("return (x + self.shift) * self.scale", "return (x + self.shift) * self.scale + self.before")
    )
    assert "_may_replace_data" in after
    compiles(after, _INPUTS, strict=False, state=False)


def trained(text: str, name: str) -> list[list[torch.Tensor]]:
    """Results, gradients, and at last the state of a model that was run twice: in eager mode, and compiled."""
    space: dict[str, Any] = {}
    exec(text, space)
    results = []
    for compile_it in (False, True):
        torch.compiler.reset()
        model = space[name]()
        run: Any = torch.compile(model, backend="aot_eager", fullgraph=True) if compile_it else model
        found = []
        for seed in (1, 2):
            x = torch.rand(4, 3, generator=torch.Generator().manual_seed(seed), requires_grad=True)
            result: torch.Tensor = run(x)
            total: Any = result.square().sum()
            total.backward()
            found += [result.detach(), x.grad, *(each.grad.clone() for each in model.parameters())]
        results.append([*found, *(each.detach().clone() for each in (*model.parameters(), *model.buffers()))])
    return results


def test_a_second_use_in_one_graph_takes_the_first_values() -> None:
    """The tensor was used, and saved for the gradient, before the branch comes by again."""
    source = _model("not self.done > 0.0", _REPLACED)
    source += """

class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, x: torch.Tensor):
        return self.model(self.model(x) * 2)
"""
    eager, compiled = trained(fixed(source)[0], "Twice")
    torch.testing.assert_close(eager, compiled)


@pytest.mark.parametrize(
    "body",
    [
        ["self.shift.data.copy_(-x.mean(dim=0, keepdim=True))", "self.done.fill_(1)"],
        _FILLED,
    ],
)
def test_a_parameter_is_initialised_and_calls_are_counted(body: list[str]) -> None:
    """AOTAutograd of torch 2.13 returned the counter in the place of the result."""
    source = _model("not self.done > 0.0", body)
    source = source.replace("        return (x", "        self.calls += 1\n        return (x")
    source = source.replace(
        '        self.register_buffer("done"',
        '        self.register_buffer("calls", torch.tensor(0))\n        self.register_buffer("done"',
    )
    after, _ = fixed(source)
    assert "elif not self.done" in after
    eager, compiled = trained(after, "Model")
    torch.testing.assert_close(eager, compiled)


def test_data_that_is_replaced_keeps_its_gradient() -> None:
    """A graph that assigns `data` gives no gradient: none may be used where eager mode assigns nothing."""
    after, _ = fixed(_model("x.sum() > 5", ["self.scale.data = self.scale.data * 2.0"]))
    assert "is_compiling()" in after
    space: dict[str, Any] = {}
    exec(after, space)
    model = space["Model"]()
    compiled: Any = torch.compile(model, backend="aot_eager")
    for number in (-1.0, -2.0):
        result: torch.Tensor = compiled(torch.full((2, 3), number)).sum()
        (gradient,) = torch.autograd.grad(result, [model.scale], allow_unused=True)
        assert gradient is not None


def test_what_does_not_fit_is_left_to_the_branch() -> None:
    after, _ = fixed(_model("not self.done", [_FILLED[1].strip().replace("self.shift", "self.shift.data"), _FILLED[2]]))
    assert "new_shift.shape" in after
    # The mean of three dimensions has another shape than the parameter, which `copy_` would make fit.
    compiles(after, ["torch.rand(2, 1, 3)", "torch.rand(2, 1, 3)"], strict=False)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (["self.shift.data.copy_(torch.randn(1, 3))", "self.done.fill_(1)"], "draws random numbers"),
        (["self.shift.data.copy_(x.view(7, -1).mean(0, keepdim=True))", "self.done.fill_(1)"], "may raise"),
        (["self.shift.data = x.data", "self.done.fill_(1)"], "may share memory"),
        (["self.scale.data.fill_(2)", "self.shift.data.copy_(-self.shift)"], "may share memory"),
        (["x = x * 2", "self.done.fill_(1)"], "is read after the branch"),
        (["print(x)", "self.done.fill_(1)"], "may have side effects"),
        (["self.done.fill_(self.scale.sum())"], "fills with something"),
        (["self.shift.fill_(1)"], "requires a gradient"),
        (["self.done = self.scale.sum()", "self.shift.data.fill_(1)"], "would keep the graph"),
    ],
)
def test_what_more_is_done_is_the_reason(body: list[str], because: str) -> None:
    declined(_model("not self.done", body), because)


def test_a_fraction_that_a_flag_may_not_hold_exactly_is_no_test_of_a_tensor() -> None:
    source = _model("self.done.item() < 0.1", _FILLED)
    after, _ = fixed(source)
    assert after == source


def test_a_flag_that_somebody_made_a_parameter_raises_in_compiled_code_too() -> None:
    source = _model("not self.done", _FILLED) + _FLAG
    after, _ = fixed(source)
    assert "and not (torch.is_grad_enabled() and self.done.requires_grad)" in after
    compiles(after, ["torch.rand(4, 3)"], name="make", strict=False, scenarios=[Scenario(), Scenario(True, "off")])


_FLAG = """

def make():
    made = Model()
    del made._buffers["done"]
    made._parameters["done"] = nn.Parameter(torch.tensor(0.0))
    return made
"""


_COUNTING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            self.seen = x
        return self.seen + 1
"""
_COUNTS = """
    def __setattr__(self, name, value):
        self.__dict__["writes"] = self.__dict__.get("writes", 0) + 1
        super().__setattr__(name, value)
"""


@pytest.mark.parametrize("heir", [False, True], ids=["its own", "of an heir"])
def test_a_class_that_is_told_of_writes_gets_none_that_a_branch_skips(heir: bool) -> None:
    assert "torch.where(" in fixed(_COUNTING)[0]
    counting = f"{_COUNTING}\n\nclass Counting(Model):{_COUNTS}" if heir else _COUNTING + _COUNTS
    declined(counting, because="`__setattr__` of its class may do more than write")


def test_an_instance_by_another_name_is_left() -> None:
    source = _model("not self.done > 0.0", _FILLED)
    assert fixed(source)[0] != source
    declined(source.replace("self", "this"), because="the instance is not called `self`")


def test_an_assertion_that_may_act_is_left() -> None:
    source = _model("not self.done > 0.0", ["assert self.ready(x) is not None", *_FILLED])
    declined(source, because="`self.ready(x) is not None` may have effects")
