"""Statements that break the graph in a `forward` without annotations: each has a fix, or a reason why there is none."""

from __future__ import annotations

import types
import warnings

import pytest
import torch

from graphmend_evaluation.counting import Call, strict_error
from tests.tools.fixes import checked
from tests.tools.versions import TRACED_BY_NEWER_TORCH

_MODULE = """
import functools
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def is_large(v):
    mask = v > 0
    return mask.any()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = [1.0, 2.0, 3.0, 4.0]
        self.table = [torch.sin, torch.cos]
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.note = None
        self.register_buffer("flag", torch.tensor(True))
        self.register_buffer("step", torch.tensor(0))

    def check(self, v):
        return (v > 0).all()

    def forward(self, x):
        {body}
        return x
"""
_FORMS = [
    "f = lambda y: y.sin() if (x > 0).any() else y\nx = f(x)",
    "steps = [lambda y: y, lambda y: y.cos() if x.sum() > 1 else y]\nx = steps[1](x)",
    "if any(x[0] > 0):\n    x = x + 1",
    "x = x if all(x[:, 0] > 9) else x * 2",
    "batch = {'x': x, 'n': (x[:, 0] > 0).long()}\nx = batch['x'].repeat_interleave(batch['n'], dim=0)",
    "match x.shape:\n    case (a, b) if x.sum() > 0:\n        x = x + a",
    "match x.argmax().item():\n    case 0:\n        x = x + 1",
    "found = [0] * 4\nfound[x[0].argmax()] = 1",
    "found = [0] * 4\nkept = found[x[0].argmax()]",
    "kept = x[:, x[0] > 0]",
    "kept = x[..., ~(x[0] > 0)]",
    "kept = x[:, (x[0] > 0) & (x[0] < 1)]",
    "text = str(x)",
    "text = repr(x.mean())",
    "if x.sum() in [1.0, 2.0]:\n    x = x + 1",
    "if x[0, 0] in self.values:\n    x = x + 1",
    "order = sorted(range(4), key=lambda i: x[i, 0])\nx = x[order]",
    "kept = [v for v in x if v.sum() > 0]",
    "kept = {i: v for i, v in enumerate(x) if v.max() > 0}",
    "first = next(v for v in x if v.sum() > 0)",
    "found = any(v.sum() > 0 for v in x)",
    "while x.norm() > 1:\n    x = x / 2",
    "while True:\n    x = x / 2\n    if x.norm() < 1:\n        break",
    "for row in x:\n    if row.sum() < 0:\n        continue\n    x = x + row",
    "n = 0\nwhile n < x.sum().abs():\n    n += 1",
    "best = -1e9\nfor row in x:\n    total = row.sum().item()\n    if total > best:\n        best = total",
    "if torch.equal(x, x):\n    x = x + 1",
    "if x.equal(x):\n    x = x + 1",
    "if torch.allclose(x, x):\n    x = x + 1",
    "x = x + self.values[int(x.argmax()) % 3]",
    "x = self.table[int(x.sum() > 0)](x)",
    "x = x[x > 0]",
    "x = x[:, : int(x[0, 0].abs()) + 1]",
    "k = (x > 0).sum()\nx = x[0][:k]",
    "lengths = (x > 0).sum(1).tolist()\nx = torch.stack([x[i, :n].sum() for i, n in enumerate(lengths)])",
    "keep = x.max(1)[0] > 0\nif not keep.any():\n    return torch.zeros(())\nx = x[keep].mean()",
    "v, i = x.topk(2)\nif v[0, 0] > 0:\n    x = x + 1",
    "v, i = torch.sort(x)\nif i[0, 0] == 0:\n    x = x + 1",
    "q, r = torch.linalg.qr(x)\nif (torch.diag(r) < 0).any():\n    q = -q",
    "x = torch.full((2,), x.max().item())",
    "x = x * min(1.0, (1.0 / x.norm()).item())",
    "n = (x > 0).sum()\nx = x.sum() / n if n > 0 else x.sum()",
    "x = torch.tensor([v.item() for v in x[0]])",
    "x = x + math.sqrt(x.sum().abs())",
    "if random.random() > 0.5:\n    x = x + 1",
    "i = np.random.randint(4)\nx = x[i]",
    "g = torch.Generator().manual_seed(1)\nx = x + torch.rand(4, 4, generator=g)",
    "if self.flag:\n    x = x + 1",
    "if self.step % 2 == 0:\n    x = x + 1",
    "if len(x.nonzero()) > 2:\n    x = x + 1",
    "if is_large(x):\n    x = x + 1",
    "if self.check(x):\n    x = x + 1",
    "pair = {'sum': x.sum()}\nif pair['sum'] > 0:\n    x = x + 1",
    "x = functools.reduce(lambda a, b: a if a.sum() > b.sum() else b, list(x))",
    "x = sum(map(int, x[0])) + x",
    "exec('y = 1')",
    "x = torch.jit.script(F.relu)(x)",
    "x.set_(torch.ones(2, 2))",
    "x = torch.tensor_split(x, x[0].long().abs())[0]",
    "x = torch.roll(x, x[0, 0].long().item(), 0)",
    "layer = self.first if x.mean() > 0 else self.second\nx = layer(x)",
    "kinds = set(x.argmax(-1).tolist())\nx = x + len(kinds)",
    pytest.param("torch._assert(x.sum() < 1e9, 'large')", marks=TRACED_BY_NEWER_TORCH),
    "assert x.min() >= -1e9 and x.max() <= 1e9, 'range'",
    "ok = 0 < x.sum() < 10",
    "ok = not x.any()",
    "with torch.autocast('cpu', enabled=bool(x.sum() > 0)):\n    x = x + 1",
    "x = F.one_hot(x.long().abs())",
]


@pytest.mark.parametrize("form", _FORMS)
def test_it_breaks_the_graph_and_has_a_finding(form: str) -> None:
    source = _MODULE.format(body=form.replace("\n", "\n        "))
    first = source[: source.index("def forward")].count("\n") + 1
    assert [each for each in checked(source, opaque=False).findings if each.span.start_line > first], "no finding"
    module = types.ModuleType("subject")
    exec(compile(source, "subject.py", "exec"), vars(module))
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert strict_error(vars(module)["Model"]().eval(), [Call((torch.randn(4, 4),))]), "it is one graph"


@pytest.mark.parametrize("made", ["torch.isfinite(x).all(dim=1)", "(x > 0).any(dim=-1, keepdim=False)"])
def test_a_mask_that_names_the_dimension_it_is_reduced_by_is_one(made: str) -> None:
    source = f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        kept = {made}
        return y[kept]
"""
    (found,) = checked(source, opaque=True).findings
    assert "boolean-mask indexing" in found.message


def test_rows_repeated_by_an_element_of_something_unknown_are_found() -> None:
    source = """
import torch
from torch import nn

from elsewhere import read


class Model(nn.Module):
    def forward(self, x):
        batch = read(x)
        return batch["rows"].repeat_interleave(batch["counts"], dim=0)
"""
    (finding,) = checked(source, opaque=False).findings
    assert "output has a data-dependent shape" in finding.message
    assert not checked(source.replace('batch["counts"]', "3"), opaque=False).findings


def test_a_test_of_what_a_lambda_is_given_is_none_of_the_function() -> None:
    source = _MODULE.format(body="f = lambda x: 1 if x > 0 else 2\n        x = x * f(3)")
    assert not checked(source, opaque=False).findings
