"""A write in place and a read for a gradient in one file, around the call of a helper of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fixes import fixed_among

_HELPERS = """
import logging

import torch

logger = logging.getLogger(__name__)


def note(x):
    logger.info("here")


def further(x):
    note(x)


def choose(x: torch.Tensor):
    if x.sum() > 0:
        x = x * 2.0
    return x
"""
_CALLS = """
import torch
from torch import nn

import model
from model import choose, further, note
from model import note as told


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(3))

    def update(self):
        self.scale.mul_(0.5)

    def inner(self, x):
        note(x)

    def forward(self, x):
        {first}
        {call}
        {last}
        return x + y
"""
_WRITE, _READ = "self.scale.mul_(0.5)", "y = x * self.scale.exp()"


@pytest.mark.parametrize("call", ["note(x)", "further(x)", "told(x)", "model.note(x)", "self.inner(x)"])
def test_a_log_call_between_the_two_stays(tmp_path: Path, call: str) -> None:
    for number, (first, last) in enumerate(((_WRITE, _READ), (_READ, _WRITE), ("self.update()", _READ))):
        (tmp_path / str(number)).mkdir()
        other = _CALLS.format(first=first, call=call, last=last)
        after, told = fixed_among(tmp_path / str(number), _HELPERS, {"other.py": other}, select=("GM201",))
        assert after == _HELPERS
        assert "`self.scale` in `Whole." in told[0]


def test_another_fix_is_for_code_without_gradients(tmp_path: Path) -> None:
    other = _CALLS.format(first=_WRITE, call="x = choose(x)", last=_READ)
    after, _ = fixed_among(tmp_path, _HELPERS, {"other.py": other}, select=("GM101",))
    assert "not torch.is_grad_enabled()" in after


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("pass", _READ),
        ("made = x.exp()\n        made.mul_(0.5)", _READ),
        (_WRITE, "y = x"),
        ("y = x", f"{_WRITE}\n        {_READ}"),
    ],
)
def test_what_is_not_read_and_written_around_it_is_left_out(tmp_path: Path, first: str, last: str) -> None:
    other = _CALLS.format(first=first, call="note(x)", last=last)
    after, told = fixed_among(tmp_path, _HELPERS, {"other.py": other}, select=("GM201",))
    assert "if not torch.compiler.is_compiling():" in after, told
