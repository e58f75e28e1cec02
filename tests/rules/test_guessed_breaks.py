"""Breaks in code without annotations are named by what the rest of the file says; Python values stay unnamed."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked

_MODEL = """
import copy
import dataclasses
import random
from collections import namedtuple

import numpy as np
import pywt
import torch
import torchvision.transforms as T
from torch import nn

Pair = namedtuple("Pair", "loss value")


@dataclasses.dataclass
class Output:
    loss: object = None
    size: object = None


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))


class Doubled(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x):
        return x * 2


def default(value, other):
    return value if value is not None else other


def computed(x):
    return Output(loss=x.mean(), size=x.shape[0])


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
        self.last = None
        self.counter = Counter()
        flips = nn.Sequential(T.RandomHorizontalFlip(p=0.2), T.Normalize([0.5], [0.5]))
        self.augment = default(None, flips)
        self.register_buffer("rate", torch.tensor(0.5))

    @property
    def scale(self):
        return self.rate * 2

    def note(self, x):
        self.last = x.mean()
        return x, x.sum(-1).max()

    @torch._dynamo.disable
    def aside(self, x):
        return x

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
    assert any("data-dependent" in each for each in found(helper=helper))


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
        (
            "drops = torch.rand(3) < 0.5\nrows = [\n    row\n    for row, drop in zip(x, drops)\n    if not drop\n]",
            "data-dependent branch",
        ),
        ("x = self.augment(x)", "random transform"),
        ("x = self.aside(x)", "kept out of the graph"),
        ("self.choose(x)\nx = x[self.kept['mask']]", "boolean-mask indexing"),
        ("if random.randint(0, 3) > 1:\n    x = x + 1", "branches on a random number"),
        (
            "rand = random.Random(3)\nlast = rand.randrange(2)\nif len(x) > 1 and 1 > last:\n    x = x + 1",
            "branches on a random number",
        ),
        ("many = random.randint(1, 3)\nx = x[:many]", "uses a random number as a size"),
        ("for rnn in self.rnns:\n    x = rnn(x)[0]", "calls a recurrent layer"),
        ("x = self.rnns[0](x)[0]", "calls a recurrent layer"),
        ("x = self.gru(x)[0]", "calls a recurrent layer"),
        ("layer = copy.deepcopy(self.linear)\nx = layer(x)", "copies a module or a tensor"),
        ("x = torch.stack([x[i, :n].sum() for i, n in enumerate(lengths)])", "uses a tensor as a size"),
        ("if all(n == lengths[0] for n in lengths):\n    x = x + 1", "to a Python bool"),
        ("x = torch.add(x, x, alpha=self.rate)", "as a number"),
        ("sizes = np.array(x.shape) // 2\nx = x + torch.from_numpy(np.arange(0, sizes[1])).sum()", "as a size"),
        ("wave = pywt.Wavelet('haar')\nx = x * wave.dec_len", "not written with torch"),
        ("with torch.random.fork_rng():\n    x = x + torch.rand(3)", "random number generator"),
        ("x = torch.distributions.Uniform(x, x + 1, validate_args=True).rsample()", "checks the arguments"),
        ("if computed(x).loss > 3 or computed(x).size > 3:\n    x = x + 1", "may be a data-dependent branch"),
        ("out = computed(x)\nif out.loss > 3:\n    x = x + 1", "may be a data-dependent branch"),
        ("out = Pair(x.mean(), 3)\nif out.loss > 3:\n    x = x + 1", "may be a data-dependent branch"),
        ("y, n = self.note(x)\nx = y[:, :n]", "uses a tensor as a size"),
        ("self.note(x)\nif self.last > 0:\n    x = x + 1", "data-dependent branch"),
        ("if self.scale > 0:\n    x = x + 1", "data-dependent branch"),
        ("if self.counter.steps > 3:\n    x = x + 1", "may be a data-dependent branch"),
        (
            "low = x.mean()\ndef cut(v):\n    return v if v > low else low\nx = x + cut(x.sum())",
            "data-dependent branch",
        ),
        ("least = lambda v: v > 0\nif least(x.sum()):\n    x = x + 1", "may be a data-dependent branch"),
        ("sums = [v.sum() for v in x]\nx = x[:, : max(sums)]", "uses a tensor as a size"),
        ("if sum(p.norm() for p in self.parameters()) > 1:\n    x = x + 1", "may be a data-dependent branch"),
        ("sizes = {'n': x.max()}\nx = x[:, : sizes.get('n')]", "uses a tensor as a size"),
        ("outs = [x, x + 1]\nx = outs[x.sum(-1).argmax()]", "indexes a list with a tensor"),
        ("x = torch.stack(sorted(x.sum(-1)))", "compares tensors"),
        ("x = max([x, x + 1], key=lambda v: v.sum())", "compares tensors"),
        ("x = max([x, x + 1], key=lambda v: v.shape[0])", "Dynamo does not trace this call"),
        ("x = x * sum(map(int, lengths))", "converts a tensor to Python scalars"),
        ("keep = (x.sum(-1) > 0).to(x.device)\nx = x[keep]", "boolean-mask indexing"),
        ("x = nn.Linear(3, 3)(x)", "constructs a module"),
        ("x = x + torch.zeros(1, requires_grad=self.training)", "may require gradients"),
        ("x = Doubled.apply(x)", "class method"),
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
        "out = computed(x)\nif out.size > 3:\n    x = x + 1",
        "out = Pair(x.mean(), 3)\nif out.value > 2:\n    x = x + 1",
        "n = default(None, x.shape[0])\ny = default(x.mean(), x.max())\nx = x[:n] * y",
        "n = x.sum()\nx = x * n\nn = len(x)\nx = x[:n]",
        "sizes = [v.shape[0] for v in x]\nx = x[:, : max(sizes)]",
        "outs = [x, x + 1]\nx = outs[len(x) - 1]",
        "x = x + torch.zeros(1, requires_grad=False)",
        "order = x.sum(-1).argsort()\nx = x[order]",
    ],
)
def test_python_values_are_not_named(body: str) -> None:
    assert found(body) == []


def test_an_assignment_in_another_block_does_not_replace_the_one_before() -> None:
    body = "n = x.max()\nif self.training:\n    n = len(x)\nx = x[:, :n]"
    assert any("uses a tensor as a size" in each for each in found(body))


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
