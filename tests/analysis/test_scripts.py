"""What TorchScript refuses by its syntax, held to what its own parser says."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from textwrap import indent

import pytest
from torch.jit.frontend import FrontendError, get_jit_def

from graphmend_codemod.analysis.scripts import is_refused
from tests.tools.fixes import fixed

_REFUSED = [
    "return [y for y in x if y > 0]",
    "return {k: v for k, v in enumerate(x) if k}",
    "return sum(y for y in x if y)",
    "return [a for y in x for a in y]",
    "return {y for y in x}",
    "return {1, 2}",
    "return (lambda a: a)(x)",
    "def f(a):\n    return a\nreturn f(x)",
    "class A:\n    pass\nreturn x",
    "try:\n    x = x + 1\nexcept ValueError:\n    pass\nreturn x",
    "if (y := x) is not None:\n    return y\nreturn x",
    "if x:\n    import os\nreturn x",
    "from os import path\nreturn x",
    "global Q\nreturn x",
    "return f(**x)",
    "yield x",
    "yield from x",
    "for y in x:\n    pass\nelse:\n    x = 1\nreturn x",
    "match x:\n    case 1:\n        pass\nreturn x",
]
_TAKEN = [
    "return {k: v for k, v in enumerate(x)}",
    "return sum(y for y in x)",
    "return f(*x, k=1)",
    "with a() as b:\n    x = x + 1\nreturn x",
    'return f"{x}"',
    'raise ValueError("x") from None',
    "del x\nreturn 1",
    "return 0 < x < 2",
    "y: int = 3\nreturn [y if y else 2]",
    "for y in x:\n    if y:\n        break\nreturn x",
]


def said_by_torch(tmp_path: Path, text: str) -> bool:
    """Whether TorchScript's own parser refuses the function `g` of a text."""
    path = tmp_path / "subject.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("subject", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        get_jit_def(module.g, "g")  # type: ignore[no-untyped-call]
    except FrontendError:
        return True
    return False


def refused(text: str) -> bool:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return is_refused(function)


@pytest.mark.parametrize(
    ("body", "expected"), [*((each, True) for each in _REFUSED), *((each, False) for each in _TAKEN)]
)
def test_bodies(body: str, expected: bool, tmp_path: Path) -> None:
    text = f"def g(x):\n{indent(body, '    ')}\n"
    assert said_by_torch(tmp_path, text) == refused(text) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [("*args", True), ("**words", True), ("x, *, y=1", True), ("x, *, y", False), ("x, /", False), ("x, y=1", False)],
)
def test_parameters(parameters: str, expected: bool, tmp_path: Path) -> None:
    text = f"def g({parameters}):\n    return 1\n"
    assert said_by_torch(tmp_path, text) == refused(text) == expected


def test_what_it_refuses_is_fixed_as_elsewhere_in_its_file() -> None:
    source = """
import torch
from torch import nn


class Scripted(nn.Module):
    @torch.jit.unused
    def show(self, x):
        print(x)

    def forward(self, x: torch.Tensor, n: int):
        n = torch.as_tensor([n], dtype=torch.float)
        n = n.clamp(min=1).item()
        return x / n


class Loss(nn.Module):
    def forward(self, outputs: dict, n: int):
        outputs = {name: each for name, each in outputs.items() if name != "other"}
        n = torch.as_tensor([n], dtype=torch.float)
        n = n.clamp(min=1).item()
        return outputs["x"] / n
"""
    after, _ = fixed(source)
    first, second = after.split("class Loss")
    assert "float(max(" not in first
    assert "float(max(number_in_n, 1))" in second
