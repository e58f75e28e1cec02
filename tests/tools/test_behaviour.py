"""The harness itself: equal pairs pass, and every planted kind of difference is seen."""

from __future__ import annotations

import pytest
import torch

from tests.tools.behaviour import EVERY_SCENARIO, FEW_SCENARIOS, behaves, differences
from tests.tools.observe import Scenario
from tests.tools.snapshot import Snapshots

HEADER = """
import logging
import random
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)
calls = []


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.count = 0

    def forward(self, x):
"""
INPUTS = ("torch.ones(2, 4)", "-torch.ones(2, 4)")


def model(body: str) -> str:
    return HEADER + "".join(f"        {line}\n" for line in body.strip().splitlines())


EQUAL = {
    "select instead of branch": (
        "y = x + 1\nif y.sum() > 0:\n    y = y + 1\nreturn y.clone()",
        "y = x + 1\ny = torch.where(y.sum() > 0, y + 1, y)\nreturn y.clone()",
    ),
    "two paths": (
        "if x.sum() > 0:\n    raise ValueError('positive')\nreturn self.linear(x)",
        "if torch.compiler.is_compiling():\n    torch._assert_async(~(x.sum() > 0), 'positive')\n"
        "elif x.sum() > 0:\n    raise ValueError('positive')\nreturn self.linear(x)",
    ),
    "log call under a guard": (
        "logger.warning('now')\nwarnings.warn('then')\nreturn x",
        "if not torch.compiler.is_compiling():\n    logger.warning('now')\n"
        "(None if torch.compiler.is_compiling() else warnings.warn)('then')\nreturn x",
    ),
    "masked write": (
        "y = x + 0\nm = y > 0\nif m.any():\n    y = y.masked_fill(m, 0.0)\nreturn y.clone()",
        "y = x + 0\nm = y > 0\ny = y.masked_fill(m, 0.0)\nreturn y.clone()",
    ),
}

DIFFERENT = {
    "value": ("return x + 1", "return x + 1.0000001", "outcome"),
    "sign of zero": ("return x * 0 + 0", "return x * 0", "outcome"),
    "dtype": ("return x", "return x.double()", "outcome"),
    "shape": ("return x", "return x[None]", "outcome"),
    "structure": ("return x, 1", "return [x, 1]", "outcome"),
    "python value": ("return 1", "return 1.0", "outcome"),
    "tensor for a number": ("return x.sum().item()", "return x.sum()", "outcome"),
    "result requires gradients": ("return self.linear(x)", "return self.linear(x).detach()", "outcome"),
    "result is a copy": ("return x", "return x.clone()", "outcome"),
    "result is another view": ("return x", "return x.view(x.shape)", "identity"),
    "results share storage": ("y = x + 1\nreturn y, y", "y = x + 1\nreturn y, y.clone()", "storage"),
    "input written": ("return x + 1", "x += 1\nreturn x + 0", "inputs after the call"),
    "exception type": ("raise ValueError('a')", "raise RuntimeError('a')", "outcome"),
    "exception message": ("raise ValueError('a')", "raise ValueError('b')", "outcome"),
    "exception lost": ("if x.sum() > 0:\n    raise ValueError\nreturn x", "return x", "outcome"),
    "several elements": ("if x > 0:\n    pass\nreturn x", "return x", "outcome"),
    "gradient value": ("return x * x.detach()", "return x * x", "gradients"),
    "gradient nan": (
        "return torch.ones_like(x) if x.sum() <= 0 else x.sqrt()",
        "return torch.where(x.sum() <= 0, torch.ones_like(x), x.sqrt())",
        "gradients|requires_grad",
    ),
    "zero gradient instead of none": (
        "return x if x.sum() > 0 else self.linear(x)",
        "return torch.where(x.sum() > 0, x, self.linear(x))",
        "gradients",
    ),
    "backward fails": ("y = x.exp()\nreturn y", "y = x.exp()\ny += 0\nreturn y", "gradients"),
    "log lost": ("logger.info('a')\nreturn x", "return x", "messages"),
    "log text": ("logger.info('a %s', 1)\nreturn x", "logger.info('a %s', 2)\nreturn x", "messages"),
    "log level": ("logger.info('a')\nreturn x", "logger.warning('a')\nreturn x", "messages"),
    "logger": ("logger.info('a')\nreturn x", "logger.getChild('b').info('a')\nreturn x", "messages"),
    "log function": (
        "logger.info('a')\nreturn x",
        "def tell():\n    logger.info('a')\ntell()\nreturn x",
        "messages",
    ),
    "log order": ("logger.info('a')\nprint('b')\nreturn x", "print('b')\nlogger.info('a')\nreturn x", "messages"),
    "log repeated": ("logger.info('a')\nreturn x", "logger.info('a')\nlogger.info('a')\nreturn x", "messages"),
    "log from another statement": (
        "logger.info('a')\nlogger.info('b')\nreturn x",
        "for text in ('a', 'b'):\n    logger.info(text)\nreturn x",
        "merged",
    ),
    "print": ("print('a')\nreturn x", "print('a', end='')\nreturn x", "messages"),
    "warning category": (
        "warnings.warn('a', FutureWarning)\nreturn x",
        "warnings.warn('a', DeprecationWarning)\nreturn x",
        "messages",
    ),
    "warnings merged into one place": (
        "warnings.warn('a')\nwarnings.warn('a')\nreturn x",
        "for _ in range(2):\n    warnings.warn('a')\nreturn x",
        "messages",
    ),
    "warning reported elsewhere": (
        "warnings.warn('a')\nreturn x",
        "warnings.warn('a', stacklevel=2)\nreturn x",
        "messages",
    ),
    "attribute": ("self.count += 1\nreturn x", "return x", "state"),
    "buffer": ("self.seen.add_(1)\nreturn x", "return x", "state"),
    "buffer alias": (
        "self.kept = self.seen\nreturn x",
        "self.kept = self.seen.clone()\nreturn x",
        "state",
    ),
    "buffer for an attribute": (
        "self.register_buffer('kept', x.detach().sum())\nreturn x",
        "self.kept = x.detach().sum()\nreturn x",
        "state",
    ),
    "global": ("calls.append(1)\nreturn x", "return x", "state"),
    "random numbers drawn": ("return x", "torch.rand(1)\nreturn x", "random"),
    "python random numbers drawn": ("return x", "random.random()\nreturn x", "random"),
    "training flag": ("return x", "self.train(False)\nreturn x", "state"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_an_equal_pair_passes(name: str) -> None:
    before, after = EQUAL[name]
    behaves(model(before), model(after), INPUTS)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_planted_difference_is_seen(name: str) -> None:
    before, after, expected = DIFFERENT[name]
    found = list(differences(model(before), model(after), INPUTS, scenarios=FEW_SCENARIOS))
    assert any(part in line for line in found for part in expected.split("|")), found


def test_a_module_equals_itself_in_every_scenario() -> None:
    body = "logger.info('%s', x.shape)\nself.count += 1\nreturn nn.functional.dropout(self.linear(x)), torch.rand(2)"
    behaves(model(body), model(body), INPUTS)


def test_a_write_into_expanded_memory_is_tried() -> None:
    before = "if (x > 9).any():\n    x.masked_fill_(x > 9, 0.0)\nreturn x"
    after = "x.masked_fill_(x > 9, 0.0)\nreturn x"
    found = list(differences(model(before), model(after), INPUTS, scenarios=[Scenario(variant="expanded")]))
    assert found
    assert "expanded" in found[0]


def test_inputs_that_are_one_tensor_are_tried() -> None:
    header = HEADER.replace("forward(self, x)", "forward(self, x, y)")
    before = header + "        z = x + y\n        x.add_(1)\n        return z\n"
    after = header + "        x.add_(1)\n        z = x - 1 + y\n        return z\n"
    inputs = ["torch.ones(2), torch.ones(2)"]
    assert not list(differences(before, after, inputs, scenarios=[Scenario(gradients="off")]))
    assert list(differences(before, after, inputs, scenarios=[Scenario(gradients="off", shared=True)]))


def test_a_module_that_fails_to_load_is_an_error_not_a_difference() -> None:
    with pytest.raises(NameError):
        behaves("missing\n", "missing\n", INPUTS, scenarios=EVERY_SCENARIO[:1])


@pytest.mark.parametrize("size", [(0,), (1,), (1, 0), (3,)])
def test_a_snapshot_takes_tensors_of_any_strides(size: tuple[int, ...]) -> None:
    spread = torch.zeros(1, dtype=torch.int64).as_strided(size, (0,) * len(size))
    assert Snapshots().of(spread).data == Snapshots().of(torch.zeros(size, dtype=torch.int64)).data
