"""Breaks in code without annotations are named by what the rest of the file says; Python values stay unnamed."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked

_MODEL = """
import copy
import random

import numpy as np
import pywt
import torch
from torch import nn


def step(value, limit, x):
    {helper}
    return x


class Layers(nn.GRU):
    pass


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnns = nn.ModuleList([nn.LSTM(3, 3)])
        self.rnn = getattr(nn, kind)(3, 3)
        self.gru = Layers(3, 3)
        self.linear = nn.Linear(3, 3)
        self.kept = {{}}
        self.register_buffer("rate", torch.tensor(0.5))

    def choose(self, x):
        self.kept["mask"] = (x.sum(-1) > 0).to(torch.bool)

    def forward(self, x, lengths, flags=None):
        {body}
        return x
"""


def found(body: str = "pass", helper: str = "pass") -> list[str]:
    """The messages about a model with this in its `forward`, or in a function that it calls with tensors."""
    called = body if helper == "pass" else "x = step(x.sum(), x.max(), x)"
    text = _MODEL.format(body=called.replace("\n", "\n        "), helper=helper.replace("\n", "\n    "))
    return [each.message for each in checked(text).findings]


@pytest.mark.parametrize(
    "helper",
    [
        "if value:\n    x = x + 1",
        "if value > limit:\n    x = x + 1",
        "assert 0 <= value <= limit, f'wrong {value}'",
        "while value < limit:\n    value = value + 1",
        "x = x + 1 if value > 0 else x",
    ],
)
def test_a_branch_on_what_callers_give_is_named(helper: str) -> None:
    assert any("may be a data-dependent branch" in each for each in found(helper=helper))


@pytest.mark.parametrize("helper", ["x = x * float(value)", "for i in range(value):\n    x = x + i"])
def test_a_cast_of_what_callers_give_is_named(helper: str) -> None:
    assert any("converts a tensor to a Python scalar" in each for each in found(helper=helper))


def test_callers_that_give_numbers_leave_the_function_alone() -> None:
    text = _MODEL.format(body="x = step(x.shape[0], 3, x)", helper="if value > limit:\n        x = x * float(value)")
    assert checked(text).findings == ()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def gap(a, b):\n    return (a - b).abs().max()\nif gap(x, 2 * x) < 1:\n    x = x + 1", "may be a data-dep"),
        ("state = {'done': x.sum() > 0}\nif state['done']:\n    x = x + 1", "may be a data-dependent branch"),
        ("rows = [row for row, drop in zip(x, torch.rand(3) < 0.5) if not drop]\nx = rows[0]", "data-dependent branch"),
        ("self.choose(x)\nx = x[self.kept['mask']]", "boolean-mask indexing"),
        ("if random.randint(0, 3) > 1:\n    x = x + 1", "branches on a random number"),
        (
            "rand = random.Random(3)\nlast = rand.randrange(2)\nif len(x) > 1 and 1 > last:\n    x = x + 1",
            "branches on a random number",
        ),
        ("many = random.randint(1, 3)\nx = x[:many]", "uses a random number as a size"),
        ("for rnn in self.rnns:\n    x = rnn(x)[0]", "calls a recurrent layer"),
        ("x = self.rnn(x)[0]", "calls a recurrent layer"),
        ("x = self.gru(x)[0]", "calls a recurrent layer"),
        ("layer = copy.deepcopy(self.linear)\nx = layer(x)", "copies a module or a tensor"),
        ("x = torch.stack([x[i, :n].sum() for i, n in enumerate(lengths)])", "uses a tensor as a size"),
        ("if all(n == lengths[0] for n in lengths):\n    x = x + 1", "to a Python bool"),
        ("x = torch.add(x, x, alpha=self.rate)", "as a number"),
        ("sizes = np.array(x.shape) // 2\nx = x + torch.from_numpy(np.arange(0, sizes[1])).sum()", "as a size"),
        ("wave = pywt.Wavelet('haar')\nx = x * wave.dec_len", "not written with torch"),
        ("with torch.random.fork_rng():\n    x = x + torch.rand(3)", "random number generator"),
        ("x = torch.distributions.Uniform(x, x + 1, validate_args=True).rsample()", "checks the arguments"),
    ],
)
def test_what_a_file_says_is_enough_for_advice(body: str, message: str) -> None:
    assert any(message in each for each in found(body)), found(body)


@pytest.mark.parametrize(
    "body",
    [
        "state = {'deep': 3}\nif state['deep'] > 2:\n    x = x + 1",
        "def size(a):\n    return a.shape[0]\nif size(x) > 2:\n    x = x[: size(x)]",
        "rows = [i for i in range(3) if i > 1]\nx = x[rows]",
        "many = len(lengths)\nx = x[:many]",
        "if self.linear.in_features > 2:\n    x = self.linear(x)",
        "kept = copy.deepcopy({'a': 1})\nx = x * kept['a']",
    ],
)
def test_python_values_are_not_named(body: str) -> None:
    assert found(body) == []


def test_no_guess_becomes_an_edit() -> None:
    text = _MODEL.format(body="x = step(x.sum(), x.max(), x)", helper="x = x * float(value)")
    assert all(each.edit is None for each in checked(text).findings)


_DEFAULT = """
import torch
from torch import nn


def default(value, otherwise):
    return value if value is not None else otherwise


class Model(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.causal = causal

    def forward(self, x, mask=None, causal=None):
        mask = default(mask, torch.ones(3))
        chosen = default({given}, self.causal)
        if chosen:
            x = x * mask
        return x
"""


def test_what_other_calls_give_a_function_is_not_what_this_one_returns() -> None:
    assert [each.message for each in checked(_DEFAULT.format(given="causal")).findings] == []
    assert "chosen" in checked(_DEFAULT.format(given="mask")).findings[0].message
