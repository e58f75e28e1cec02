"""Writes that no name on the left shows: a fix that would copy a tensor, or read it late, sees them all."""

from __future__ import annotations

import re

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed

_MODEL = """
import torch
from torch import nn

KEPT = None


def bump_kept():
    KEPT.add_(1)


class Writes:
    def __init__(self, kept):
        self.kept = kept

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kept.add_(1)


class Carries(Exception):
    def __init__(self, kept):
        self.kept = kept


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x * 1
        z = y
        ...
        return z.sum() + y.sum()
"""
_SELECT = "if x.mean() > 0:\n    z = y * 2\n"
_COLUMN = "at = x.mean(0).argmax()\nz = y[:, at]\n"
_WRITES = [
    "type(y).add_(y, 1)",
    "getattr(y, 'add_')(1)",
    "add = y.add_\nadd(1)",
    "list(map(lambda each: each.add_(1), [y]))",
    "list(map(torch.Tensor.neg_, [y]))",
    "[each.add_(1) for each in (y,)]",
    "sum(each.add_(1).sum() for each in [y])",
    "with Writes(y):\n    pass",
    "def held():\n    return y\nheld().add_(1)",
    "held = lambda: y\nheld().add_(1)",
    "global KEPT\nKEPT = y\nbump_kept()",
    "try:\n    raise Carries(y)\nexcept Carries as error:\n    error.kept.add_(1)",
]


@pytest.mark.parametrize("write", _WRITES)
@pytest.mark.parametrize("head", [_SELECT, _COLUMN], ids=["select", "column"])
def test_a_write_is_seen(head: str, write: str) -> None:
    found = checked(embedded(head + write, _MODEL), select=("GM101", "GM411")).findings
    assert [each.edit for each in found if each.code in {"GM101", "GM411"}] == [None]
    assert "in place" in (found[0].declined or "")


@pytest.mark.parametrize("write", [re.sub(r"\by\b", "other", each) for each in _WRITES if "bump" not in each])
def test_a_write_into_something_else_is_none(write: str) -> None:
    after, _ = fixed(embedded(f"other = x * 3\n{_SELECT}{write}", _MODEL))
    assert "torch.where" in after


def test_a_function_that_only_reads_writes_nothing() -> None:
    body = f"def scaled(factor):\n    return y * factor\n{_SELECT}z = z + sum(scaled(each) for each in (1.0, 2.0))"
    after, _ = fixed(embedded(body, _MODEL))
    compiles(after, ["torch.ones(2, 3)"])
