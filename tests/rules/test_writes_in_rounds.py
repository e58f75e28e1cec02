"""What a loop writes around a fix that makes one graph of two: which round writes what."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fixes import fixed, fixed_among

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        {body}
"""
_SELECT = ("if x.sum() > 0:", "    x = x * 2.0")
_ASKED = "not torch.is_grad_enabled()"


def _fixed(*lines: str) -> str:
    after, _ = fixed(_MODEL.format(body="\n        ".join(lines)))
    assert "torch.where(" in after
    return after


def _padded(loop: str, write: str) -> tuple[str, ...]:
    above = ("y = x * scale.exp()", "made, masks = torch.zeros(2, 3), torch.ones(2, 3)", "given = [scale, scale]")
    return (*above, *_SELECT, loop, f"    {write}", "return x + y + made.sum(0) + masks.sum(0)")


@pytest.mark.parametrize(
    ("loop", "write", "asked"),
    [
        ("for row, each in zip(made, given):", "row.copy_(each)", False),
        ("for row, each, mask in zip(made, given, masks):", "mask[: each.shape[0]] = 0.0", False),
        ("for i, (row, each) in enumerate(zip(made, given)):", "row.copy_(each * i)", False),
        ("for row, each in zip(given, made):", "row.mul_(0.5)", True),
        ("for row, each in zip(made, given):", "each.mul_(0.5)", True),
        ("for i, (row, each) in enumerate(zip(made, given)):", "each.mul_(0.5)", True),
        ("for pair in zip(made, given):", "pair[1].mul_(0.5)", True),
        ("for row, *others in zip(made, given):", "others[0].mul_(0.5)", True),
        ("for row, each in map(list, zip(made, given)):", "each.mul_(0.5)", True),
    ],
)
def test_each_variable_of_a_loop_comes_from_its_own_list(loop: str, write: str, asked: bool) -> None:
    assert (_ASKED in _fixed(*_padded(loop, write))) is asked


def test_a_variable_that_is_bound_to_another_one_leads_to_its_list() -> None:
    lines = _padded("for row, each in zip(made, given):", "row = each\n            row.mul_(0.5)")
    assert _ASKED in _fixed(*lines)


@pytest.mark.parametrize(("place", "asked"), [("0", False), ("-1", False), (":1", True)])
def test_an_element_of_a_list_is_no_part_of_a_tensor(place: str, asked: bool) -> None:
    above = ("found = [scale]", "y = x * found[0].exp()")
    assert (_ASKED in _fixed(*above, *_SELECT, f"found[{place}] = x", "return y + found[0]")) is asked


def _rescaled(test: str) -> tuple[str, ...]:
    loop = ("for part in self.parts:", f"    if {test}:", *(f"        {each}" for each in _SELECT), "    else:")
    write = ("        with torch.no_grad():", "            part.weight.mul_(0.5)")
    return (*loop, *write, "return x @ self.parts[0].weight + scale")


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ('hasattr(part.weight, "scales")', False),
        ('not hasattr(part.weight, "scales")', False),
        ("self.training", False),
        ("not self.training", False),
        ("part.bias is not None", True),
        ("isinstance(part, nn.Linear)", True),
        ("part.in_features > 3", True),
        ('hasattr(part.weight, "scales") or part.in_features > 3', True),
    ],
)
def test_parts_of_one_loop_are_of_one_kind(test: str, asked: bool) -> None:
    assert (_ASKED in _fixed(*_rescaled(test))) is asked


_PROBE = """
import logging

import torch

logger = logging.getLogger(__name__)


def is_available() -> bool:
    logger.debug("looked for %s", "it")
    return True


class Probed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if is_available() else x
"""
_CALLER = """
import torch
from torch import nn

from model import is_available


class Rescaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3, bias=False)])
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(x) * self.scale.exp()
            if {test}:
                is_available()
            else:
                {written}.mul_(0.5)
        return x
"""


@pytest.mark.parametrize(
    ("test", "written", "declined"),
    [
        ('hasattr(part.weight, "scales")', "part.weight", False),
        ('hasattr(part.weight, "scales")', "self.scale", True),  # parts may be of two kinds
        ("self.training", "self.scale", False),
        ("part.in_features > 3", "self.scale", True),
    ],
)
def test_a_message_of_a_function_that_other_files_call(tmp_path: Path, test: str, written: str, declined: bool) -> None:
    caller = _CALLER.format(test=test, written=written)
    after, reasons = fixed_among(tmp_path, _PROBE, {"other.py": caller}, select=("GM201",))
    assert ("is_compiling()" not in after) is declined
    assert any("would compute the gradients" in each for each in reasons) is declined
