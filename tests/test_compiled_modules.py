"""The modules that wheels hold compiled keep to what mypyc compiles: building a wheel takes too long for a test."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
ROOT = Path(__file__).parents[1]


def compiled() -> list[Path]:
    """The files that pyproject.toml gives to mypyc."""
    settings: dict[str, Any] = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
    found = {path for pattern in hook["include"] for path in ROOT.glob(pattern)}
    left_out = {path for pattern in hook["exclude"] for path in ROOT.glob(pattern)}
    return sorted(found - left_out)


FILES = {str(path.relative_to(ROOT)): path for path in compiled()}


def generators(tree: ast.Module) -> set[str]:
    return {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(function))
    }


def mistakes(tree: ast.Module) -> Iterator[str]:
    made = generators(tree)
    for part in ast.walk(tree):
        if isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part).endswith("cached_property"):
            yield f"line {part.lineno}: a compiled class has no place for a cached property"
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn)):
            asked = part.comparators[0]
            name = ast.unparse(asked.func).rpartition(".")[2] if isinstance(asked, ast.Call) else ""
            if name in made:
                yield f"line {part.lineno}: a compiled generator knows no membership test: `{ast.unparse(part)}`"


def test_files_are_compiled() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("name", FILES)
def test_nothing_in_a_file_stands_in_the_way_of_compiling_it(name: str) -> None:
    assert not list(mistakes(ast.parse(FILES[name].read_bytes())))


@pytest.mark.parametrize("name", FILES)
def test_tables_are_of_the_type_that_mypy_infers(name: str) -> None:
    # `frozenset | dict.keys()` is a set, for mypy a frozenset: the compiled module ends with a TypeError at its import.
    module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    assert not [table for table, value in vars(module).items() if type(value) is set]


@pytest.mark.parametrize(
    "text",
    [
        "from functools import cached_property\nclass A:\n    @cached_property\n    def f(self): return 1\n",
        "class A:\n    def f(self):\n        yield 1\n    def g(self):\n        return 1 in self.f()\n",
    ],
)
def test_mistakes_are_seen(text: str) -> None:
    assert list(mistakes(ast.parse(text)))
