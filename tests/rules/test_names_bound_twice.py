"""Local names that the top level of the file, Python's builtins or a star import have too: they are not those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed, fixed_among

_MODEL = """
{top}
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        {name} = x.view(-1)
        if x.mean() > 0:
            {name} = {name} * 2
        {name}.add_(1)
        return {name}.sum() + x.sum()
"""


@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("input", ""),
        ("y", "y = 3"),
        ("y", "def y():\n    return 1"),
        ("y", "from somewhere import *"),
        ("math", "import math"),
    ],
)
def test_a_write_into_a_local_is_seen_whatever_else_has_its_name(name: str, top: str) -> None:
    found = checked(_MODEL.format(name=name, top=top)).findings
    assert [(each.code, each.edit) for each in found] == [("GM101", None)]
    assert f"`{name}.add_(1)`" in (found[0].declined or "")


def test_a_write_of_a_lambda_into_its_own_parameter_is_seen() -> None:
    source = _MODEL.format(name="y", top="each = 3").replace("y.add_(1)", "(lambda each: each.add_(1))(y)")
    assert checked(source).findings[0].edit is None


def test_a_caller_elsewhere_that_writes_is_seen_whatever_its_names_are(tmp_path: Path) -> None:
    source = """
import torch


@torch.compile
def doubled(x):
    if x.mean() > 0:
        x = x * 2
    return x
"""
    caller = """
import torch
from model import doubled


def run(input):
    output = doubled(input)
    input.add_(1)
    return output
"""
    after, reasons = fixed_among(tmp_path, source, {"caller.py": caller})
    assert after == source
    assert "written in place later" in reasons[0]


def test_a_name_of_the_top_level_that_is_not_shadowed_is_still_known() -> None:
    source = _MODEL.format(name="y", top="import math").replace("y.add_(1)", "y = y + math.sqrt(4)")
    after, _ = fixed(source)
    assert "torch.where" in after
    compiles(after, ["torch.ones(2, 3)"])


@pytest.mark.parametrize("where", ["local", "global", "attribute"])
def test_reading_a_defaultdict_in_a_message_fills_it(where: str) -> None:
    source = """
from collections import defaultdict
import torch
from torch import nn

seen = defaultdict(int)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = defaultdict(int)

    def forward(self, x: torch.Tensor):
        here = defaultdict(int)
        print(SEEN["a"])
        return x * len(SEEN)
""".replace("SEEN", {"local": "here", "global": "seen", "attribute": "self.seen"}[where])
    found = checked(source).findings
    assert "in its arguments would not run" in (found[0].declined or "")


_IMPORTED_AGAIN = """
import functools
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


@functools.lru_cache
def zeros(size: int):
    {imported}
    logger.warning("made")
    return torch.zeros(size)


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + zeros(3)
"""


@pytest.mark.parametrize(
    ("imported", "known"),
    [
        ("import torch", True),
        ("import torch.nn", True),
        ("from stubs import torch", False),
        ("import stubs as torch", False),
    ],
)
def test_what_a_function_imports_again_means_the_same(imported: str, known: bool) -> None:
    reasons = [each.declined or "" for each in checked(_IMPORTED_AGAIN.format(imported=imported)).findings]
    assert any("asks no cache" in each for each in reasons) == known
