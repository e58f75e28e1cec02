"""Writes by functions that are handed around, and by names of attributes, around what a fix makes one graph."""

from __future__ import annotations

import types

import pytest
import torch

from tests.tools.fixes import fixed

MODEL = """
import functools
import operator
from operator import iadd

import torch
from torch import nn


def halve(given):
    given.mul_(0.5)
    return given


def update(given, factor):
    given.mul_(factor)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))
        self.then = lambda each: each.mul_(0.5)
        self.later = functools.partial(torch.Tensor.mul_, self.scale, 0.5)
        self.only = lambda each: each.mul(0.5)

    def halve(self, given):
        given.mul_(0.5)
        return given

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        {above}
        if x.sum() > 0:
            x = x * 2.0
        {below}
        return x + y
"""

WRITES = {
    "map and lambda": "list(map(lambda each: each.mul_(0.5), [self.scale]))",
    "map and a method of tensors": "list(map(torch.Tensor.exp_, [self.scale]))",
    "map and an own method": "list(map(self.halve, [self.scale]))",
    "map and a function": "list(map(halve, [self.scale]))",
    "a lambda that is called": "(lambda each: each.mul_(0.5))(self.scale)",
    "a lambda with a name": "step = lambda each: each.mul_(0.5)\n        step(self.scale)",
    "a lambda that closes over it": "step = lambda: self.scale.mul_(0.5)\n        step()",
    "a function inside": "def step(given):\n            given.mul_(0.5)\n        step(self.scale)",
    "operator.imul": "operator.imul(self.scale, 0.5)",
    "iadd": "iadd(self.scale, 0.5)",
    "__imul__": "self.scale.__imul__(0.5)",
    "__setitem__": "self.scale.__setitem__(0, 0.5)",
    "a partial that is called": "functools.partial(torch.Tensor.mul_, self.scale, 0.5)()",
    "a partial with a name": "step = functools.partial(torch.Tensor.mul_, self.scale)\n        step(0.5)",
    "a partial of a method": "step = functools.partial(self.scale.mul_, 0.5)\n        step()",
    "a partial of a function": "functools.partial(update, self.scale)(0.5)",
    "a method with a name": "step = self.scale.mul_\n        step(0.5)",
    "methodcaller": 'operator.methodcaller("mul_", 0.5)(self.scale)',
    "reduce": "functools.reduce(lambda one, other: one.mul_(other), [self.scale, 0.5])",
    "a key": "sorted([self.scale], key=lambda each: each.mul_(0.5) is None)",
    "functions of a list": "for step in (halve, self.halve):\n            step(self.scale)",
    "an attribute that holds a lambda": "self.then(self.scale)",
    "an attribute that holds a partial": "self.later()",
    "a comprehension": "[each.mul_(0.5) for each in [self.scale]]",
    "a comprehension over a list of its variable's name": (
        "each = [self.scale]\n        [each.mul_(0.5) for each in each]"
    ),
    "a generator": "any(each.mul_(0.5) is None for each in (self.scale,))",
    "_buffers": 'self._buffers["scale"].mul_(0.5)',
    "_buffers, augmented": 'self._buffers["scale"] *= 0.5',
    "the values of _buffers": "for each in self._buffers.values():\n            each.mul_(0.5)",
    "get_buffer": 'self.get_buffer("scale").mul_(0.5)',
    "__dict__": 'self.__dict__["_buffers"]["scale"].mul_(0.5)',
    "state_dict": 'self.state_dict()["scale"].mul_(0.5)',
    "a method by its name": 'getattr(self.scale, "mul_")(0.5)',
    "an attribute by a computed name": 'name = "scale"\n        getattr(self, name).mul_(0.5)',
    "_foreach_add_": "torch._foreach_add_([self.scale], 1.0)",
}
READ = "y = x * self.scale.exp()"


def _source(above: str, below: str) -> str:
    return MODEL.format(above=above, below=below)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_joins_such_a_write_with_a_read_is_for_code_without_gradients(write: str) -> None:
    for above, below in ((write, READ), (READ, write)):
        after, _ = fixed(_source(above, below))
        assert "not torch.is_grad_enabled()" in after, after


@pytest.mark.parametrize(
    "read",
    [
        "y = x * (lambda: self.scale.exp())()",
        "y = x * getattr(self, 'scale').exp()",
        "y = x * self._buffers['scale'].exp()",
    ],
)
def test_what_such_functions_and_names_read_is_read(read: str) -> None:
    after, _ = fixed(_source("self.scale.mul_(0.5)", read))
    assert "not torch.is_grad_enabled()" in after


@pytest.mark.parametrize(
    "other",
    [
        "list(map(lambda each: each.mul(0.5), [self.scale]))",
        "list(map(lambda each: each.mul_(0.5), [self.scale.exp()]))",
        "made = x.exp()\n        [each.mul_(0.5) for each in [made]]",
        "step = self.scale.mul_",
        "names = dict(step=halve)",
        "list(map(update, [x.exp()], [self.scale]))",
        "self.only(self.scale)",
        "getattr(self.scale, 'mul')(0.5)",
        "operator.mul(self.scale, 0.5)",
    ],
)
def test_what_writes_nothing_from_outside_is_for_all_code(other: str) -> None:
    after, _ = fixed(_source(other, READ))
    assert "torch.where(" in after
    assert "is_grad_enabled" not in after


@pytest.mark.parametrize("name", ["map and lambda", "a comprehension", "operator.imul", "_buffers"])
def test_gradients_are_those_of_eager_mode_where_the_backward_pass_is_traced(name: str) -> None:
    after, _ = fixed(_source(WRITES[name], READ))
    found = []
    for compiled in (False, True):
        module = types.ModuleType("handed_subject")
        exec(compile(after, "subject.py", "exec"), vars(module))
        model = module.Model()
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        torch._dynamo.reset()
        (torch.compile(model, backend="aot_eager") if compiled else model)(x).sum().backward()
        assert x.grad is not None
        found.append(x.grad)
    torch._dynamo.reset()
    assert torch.equal(*found)
