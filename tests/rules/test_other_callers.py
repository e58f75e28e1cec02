"""Who calls a layer or function that returns what it got, by ways that do not name it: a fix that copies must know."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from tests.tools.fixes import checked, fixed, fixed_among

_PART = """
import functools
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.mean() > 0:
            x = x * 2
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"first": Part()})

    def forward(self, x):
        y = x * 1
"""


def _model(body: str) -> str:
    return _PART + indent(body, " " * 8) + "\n        return y\n"


@pytest.mark.parametrize(
    "body",
    [
        "for name, part in self.parts.items():\n    z = part(y)\n    z.add_(1)",
        "for part in self.parts.values():\n    z = part(y)\n    z.add_(1)",
        "for part in self.parts.children():\n    z = part(y)\n    z.add_(1)",
        "for name, part in self.named_modules():\n    z = part(y)\n    z.add_(1)",
        "for n, part in enumerate(self.parts.children()):\n    z = part(y)\n    z.add_(1)",
        "for z in [part(y) for part in self.parts.values()]:\n    z.add_(1)",
    ],
)
def test_a_layer_of_a_loop_over_layers_is_found(body: str) -> None:
    found = checked(_model(body), select=("GM101",)).findings
    assert [each.edit for each in found] == [None]
    assert "written in place later" in (found[0].declined or "")


def test_loops_over_layers_that_call_none_do_not_matter() -> None:
    source = _model("z = self.parts['first'](y)\ny = z + 1") + (
        "\n    def reset(self):\n        for part in self.modules():\n            if isinstance(part, nn.Linear):\n"
        "                nn.init.zeros_(part.weight)\n"
    )
    after, _ = fixed(source)
    assert "torch.where" in after


_DECORATED = """
import functools
import torch


def bumped(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given)WRITE

    return inner


@torch.compile
@bumped
def doubled(x: torch.Tensor):
    if x.mean() > 0:
        x = x * 2
    return x
"""


def test_a_decorator_that_writes_into_what_a_function_returns() -> None:
    found = checked(_DECORATED.replace("WRITE", ".add_(1)"), select=("GM101",)).findings
    assert "`bumped` around `doubled` may write in place" in (found[0].declined or "")
    after, _ = fixed(_DECORATED.replace("WRITE", " + 1"))
    assert "torch.where" in after


def test_a_decorator_of_another_file_that_writes(tmp_path: Path) -> None:
    other, own = _DECORATED.replace("WRITE", ".add_(1)").split("@torch.compile")
    source = f"import torch\nfrom bumping import bumped\n\n\n@torch.compile{own}"
    after, reasons = fixed_among(tmp_path, source, {"bumping.py": other})
    assert after == source
    assert "may write in place" in reasons[0]


@pytest.mark.parametrize(
    ("middle", "imported", "name"),
    [
        ("", "from model import *", "Part"),
        ("from model import Part\n", "from middle import *", "Part"),
        ("from model import Part as Renamed\n__all__ = ['Renamed']\n", "from middle import *", "Renamed"),
    ],
)
def test_who_gets_a_layer_by_a_star_import_calls_it(tmp_path: Path, middle: str, imported: str, name: str) -> None:
    source = _PART.partition("class Model")[0]
    user = f"""
import torch
from torch import nn
{imported}


class User(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = {name}()

    def forward(self, x):
        y = x * 1
        z = self.part(y)
        z.add_(1)
        return y
"""
    after, reasons = fixed_among(tmp_path, source, {"middle.py": f"import torch\n{middle}", "user.py": user})
    assert after == source
    assert "written in place later" in reasons[0]
