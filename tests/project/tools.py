"""Small projects on disk, and what the index says about them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.loading import load
from graphmend_codemod.project.reach import reached_functions
from graphmend_codemod.project.summary.records import FunctionSummary, ModuleSummary
from graphmend_codemod.project.summary.scan import summarise


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write dedented texts below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return root


def summary_of(source: str) -> ModuleSummary:
    """The summary of one dedented text."""
    text = dedent(source)
    return summarise(ast.parse(text), text)


def function_in(source: str, qualname: str) -> FunctionSummary:
    """One function of a dedented text."""
    return next(each for each in summary_of(source).functions if each.qualname == qualname)


def index_of(root: Path, *module_bases: str) -> ProjectIndex:
    """The index over all Python files below `root`."""
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    layout = PackageLayout(root, files)
    return ProjectIndex(layout, lambda path: load(path, str(root), wanted=True).placed(layout), module_bases)


def reach_of(root: Path, *module_bases: str) -> list[tuple[str, ReachedFunction]]:
    """Everything reached, with its path."""
    index = index_of(root, *module_bases)
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    modules = [
        module for path in files if load(path, str(root)).matters and (module := index.module_at(path)) is not None
    ]
    return [(path, each) for path, every in sorted(reached_functions(index, modules).items()) for each in every]


def reached_names(root: Path, files: Mapping[str, str], *module_bases: str) -> set[str]:
    """Qualnames reached in a project of these files."""
    return {each.qualname for _, each in reach_of(write(root, files), *module_bases)}


HEAD = "import torch\nfrom torch import nn\n"


def in_module(tmp_path: Path, text: str) -> set[str]:
    """The names of the functions that are reached in one module."""

    return reached_names(tmp_path, {"m.py": HEAD + dedent(text)})
