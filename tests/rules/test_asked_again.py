"""What a test asks in front of its tensors is asked once in compiled code, too, or the statement is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """
import random

import torch
from torch import nn


class Answer:
    def __bool__(self):
        return random.random() < 0.5


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.asked = 0
        self.todo = [1]
        self.answer = Answer()
        self.kind = "a"

    @property
    def counted(self):
        self.asked += 1
        return self.asked

    @property
    def wide(self):
        return self.asked > 0

    def ask(self):
        self.asked += 1
        return self.asked > 1

    def forward(self, x: torch.Tensor):
        {body}
        return x
"""
_BODIES = {
    "GM101": "if {test} and x.sum() > 0:\n            x = x + 1",
    "GM102": "if {test} and x.sum() > 0:\n            return x + 1",
    "GM103": "if {test} and torch.isinf(x).any():\n            x = torch.clamp(x, min=-1.0, max=1.0)",
    "GM104": "if {test} and (x < 0).any():\n            x[x < 0] = 0",
}


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize("code", _BODIES)
@pytest.mark.parametrize(
    "test",
    [
        "self.ask()",
        "not self.ask()",
        "self.counted > 1",
        "random.random() < 0.5",
        "self.todo.pop()",
        "self.answer",
        "getattr(self, 'counted') > 1",
        "(k := self.asked) > 1",
    ],
)
def test_what_may_do_more_than_read_is_not_asked_twice(code: str, test: str) -> None:
    declined(
        model(_BODIES[code].format(test=test)),
        because="binds a name in the test" if "k :=" in test and code != "GM104" else "twice",
    )


@pytest.mark.parametrize(
    "test",
    [
        "self.training",
        "x.dim() == 2",
        "x.dtype == torch.float32",
        "isinstance(x, torch.Tensor)",
        "len(self.todo) > 0",
        "self.kind.startswith('a')",
        "torch.is_grad_enabled()",
        "not (self.training or self.asked)",
    ],
)
def test_what_only_reads_stands_in_the_header(test: str) -> None:
    after, _ = fixed(model(_BODIES["GM101"].format(test=test)))
    assert "is_compiling()" in after


def test_a_guard_asks_below_its_header() -> None:
    after, _ = fixed(model("if self.ask() and (x < -9).any():\n            raise ValueError('low')"))
    assert "            if self.ask():\n                torch._assert_async" in after
    compiles(after, ["torch.ones(2, 3)"] * 3, scenarios=[Scenario(gradients="off")])


@pytest.mark.parametrize("body", ["x = x + 1", "raise ValueError('low')"])
def test_what_stands_behind_a_tensor_is_not_asked_where_eager_mode_skips_it(body: str) -> None:
    declined(model(f"if (x < -9).any() and self.answer:\n            {body}"), because="its class says how it compares")


@pytest.mark.parametrize("test", ["x.sum() > 0 or {0}", "not ({0} or x.isnan().any() or x.isinf().any())"])
def test_what_stands_between_tensors_is_not_asked_twice(test: str) -> None:
    declined(model(f"if {test.format('self.answer')}:\n            x = x + 1"), because="would be asked twice")


_HEIR = """
import functools

import torch

import model


class Other(model.Model):
    asks = 0

    {decorator}
    def kind(self):
        {body}
"""


@pytest.mark.parametrize(
    ("decorator", "body", "kept"),
    [
        ("@property", "Other.asks += 1\n        return Other.asks", False),
        ("@functools.cached_property", "return print(self)", False),
        ("@property", "return self.asked", True),
        ("", "Other.asks += 1\n        return Other.asks", True),
    ],
)
def test_a_property_of_a_subclass_elsewhere_is_not_asked_once_more(
    tmp_path: Path, decorator: str, body: str, kept: bool
) -> None:
    source = model("if x.sum() > 0 or self.kind == 'b':\n            x = x + 1")
    heir = _HEIR.format(decorator=decorator, body=body)
    after, reasons = fixed_among(tmp_path, source, {"heir.py": heir})
    assert (after != source) is kept
    assert any("is a property of `heir.Other` that may do more than read" in each for each in reasons) is not kept
