"""A tensor that a function has just made, and that only one name leads to, may be copied: nobody can write into it."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

_MODEL = """
import torch
from torch import nn


def attend(module, x, **kwargs):
    return x.softmax(-1)


TABLE = {"plain": attend}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.last = None
        self.kind = "plain"

    def forward(self, x: torch.Tensor, mask=None, **kwargs):
        attend_to = TABLE[self.kind]
        before = x
        x = attend_to(self, self.proj(x), **kwargs)
        x = before + x
        ...
        if self.training:
            if not torch.isfinite(x).all():
                limit = torch.finfo(x.dtype).max - 1000
                x = torch.clamp(x, min=-limit, max=limit)
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x: torch.Tensor, **kwargs):
        x = x * 2
        found = [x]
        for layer in self.layers:
            x = layer(x, mask=None, **kwargs)
        found[0] = self.layers[0](found[0], **kwargs)
        return x, found[0]
"""
_INPUTS = ["torch.ones(2, 4)", "torch.tensor([[float('inf'), 1.0, 2.0, 3.0]])"]


def test_a_sum_that_only_one_name_holds_is_clamped_by_a_select() -> None:
    before = _MODEL.replace("        ...\n", "        x = self.norm(x)\n")
    after, result = fixed(before)
    assert "torch.compiler.is_compiling()" in after
    assert result.fixes
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS[:1])


@pytest.mark.parametrize(
    "kept",
    [
        "self.last = x",
        "self.last = [x]",
        "other = x\nother = other.view(-1)",
        "kwargs['seen'].append(x)",
        "attend_to(self, x)",
        "seen = lambda: x",
        "seen = lambda kept=x: kept.add_(1)",
        "def seen(kept=x):\n    return kept.add_(1)",
        "def seen(*, kept=x):\n    return kept.add_(1)",
        "for _ in range(2):\n    x = x * 2\n    self.last = x",
        "x = x.view(-1, 4)",
        "x, y = x * 2, x",
    ],
)
def test_what_something_else_leads_to_is_not_copied(kept: str) -> None:
    before = _MODEL.replace("...", kept.replace("\n", "\n        "))
    found = [each for each in checked(before).findings if each.code == "GM103"]
    assert [each.edit for each in found] == [None]
    assert "written in place later" in (found[0].declined or "")


_KEPT = """
import torch
from torch import nn


def noted(y, seen):
    seen.append(y)


class Part(nn.Module):
    def forward(self, h):
        y = h * 2
        self.last = y
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.parts = nn.ModuleList([Part()])

    def keep(self, y):
        self.last = y

    def made(self, h):
        y = h * 2
        ...
        return y

    def forward(self, x: torch.Tensor, seen=None):
        seen = []
        part = self.part
        h = MADE
        if not torch.isfinite(h).all():
            limit = torch.finfo(h.dtype).max - 1000
            h = torch.clamp(h, min=-limit, max=limit)
        WRITTEN
        return h
"""


@pytest.mark.parametrize(
    ("kept", "made", "written"),
    [
        ("self.last = y", "self.made(x)", "self.last.add_(1)"),
        ("self.last = y.view(-1)", "self.made(x)", "self.last.add_(1)"),
        ("self.keep(y)", "self.made(x)", "self.last.add_(1)"),
        ("pass", "self.part(x)", "self.part.last.add_(1)"),
        ("pass", "part(x)", "part.last.add_(1)"),
        ("x.seen = y", "self.made(x)", "x.seen.add_(1)"),
    ],
)
def test_a_result_that_its_function_kept_may_be_written_elsewhere(kept: str, made: str, written: str) -> None:
    before = _KEPT.replace("...", kept.replace("x.", "h.")).replace("MADE", made).replace("WRITTEN", written)
    found = [each for each in checked(before).findings if each.code == "GM103"]
    assert [each.edit for each in found] == [None], found
    assert "written in place later" in (found[0].declined or "")


@pytest.mark.parametrize("kept", ["seen.append(y)", "noted(y, seen)"])
def test_a_result_that_a_function_appends_is_in_the_list(kept: str) -> None:
    before = _KEPT.replace("def made(self, h):", "def made(self, h, seen):").replace("...", kept)
    before = before.replace("MADE", "self.made(x, seen)").replace("WRITTEN", "seen[0].add_(1)")
    assert [each.edit for each in checked(before).findings if each.code == "GM103"] == [None]


def test_a_result_that_nothing_kept_is_selected() -> None:
    before = _KEPT.replace("...", "pass").replace("MADE", "self.made(x)").replace("WRITTEN", "h = h + 1")
    after, _ = fixed(before)
    assert "is_compiling()" in after
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS[:1])
