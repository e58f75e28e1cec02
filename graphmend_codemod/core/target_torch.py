"""The oldest torch that a project says it runs on, read from its dependency files without running any of them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.source import MOST_CONFIGURED, SourceError, parse_text, read_bytes

Version = tuple[int, int]

_TORCH = re.compile(r"\s*torch\s*(?:\[[^\]]*\])?\s*(?=$|[\s(<>=!~;,#])([^;#@]*)")
# `packaging` knows all of this, but importing it takes as long as everything else that the commit hook does.
_CLAUSE = r"(~=|===?|>=?|\^|~)\s*v?([0-9]{1,4})(?![0-9])(?:\.([0-9]{1,4})(?![0-9]))?"
_EXCLUDED = r"!=\s*v?([0-9]{1,4})\.([0-9]{1,4})\.\*"
_LONGEST = 1000  # characters of a requirement; what comes after them is hashes and comments
# `pytorch=1.11.0=py3_cuda` in a conda environment: one `=` is exact, up to the parts that it names.
_CONDA = r"\s*-\s*[\"']?(?:[\w./-]+::)?(?:pytorch|torch)(?:-gpu|-cpu)?(?=$|[\s(<>=!~,\"'])\s*([^#\"']*)"
_KEY = re.compile(r"^\w+\s*=\s*(?!=)")
_REQUIREMENT_LISTS = frozenset({"install_requires", "extras_require", "setup_requires", "tests_require"})


def lowest_torch(root: Path, pyproject: Mapping[str, Any]) -> Version | None:
    """The lowest (major, minor) that any of the project's requirements on torch admits; None without a lower bound.

    Conda environments are asked where nothing else has one: they say what the authors run, not all that they support.
    `pyproject` is the parsed `pyproject.toml` of `root`, or empty. SettingsError if a requirements file cannot be read.
    """
    return _lowest(_specifiers(root, pyproject)) or _lowest(_in_environments(root))


def _lowest(specifiers: Iterable[str]) -> Version | None:
    return min((bound for bound in map(lower_bound, specifiers) if bound is not None), default=None)


def lower_bound(specifier: str) -> Version | None:
    """The lowest (major, minor) that version clauses admit, as in `>=2.1,!=2.1.*`; None without a lower bound."""
    bounds = [(int(major), int(minor or 0)) for _, major, minor in re.findall(_CLAUSE, specifier)]
    if not bounds:
        return None
    lowest = max(bounds)
    excluded = {(int(major), int(minor)) for major, minor in re.findall(_EXCLUDED, specifier)}
    while lowest in excluded:
        lowest = (lowest[0], lowest[1] + 1)
    return lowest


def _specifiers(root: Path, pyproject: Mapping[str, Any]) -> Iterator[str]:
    yield from _in_lines(_strings_in(_part(pyproject, "project", "dependencies")))
    yield from _in_lines(_strings_in(_part(pyproject, "project", "optional-dependencies")))
    yield from _in_lines(_strings_in(_part(pyproject, "dependency-groups")))
    yield from _poetry(_part(pyproject, "tool", "poetry"))
    files = sorted((*root.glob("requirements*.txt"), *root.glob("requirements/*.txt")))
    for file in files:
        yield from _in_lines(_text(file).splitlines())
    yield from _in_lines([_KEY.sub("", line) for line in _text(root / "setup.cfg").splitlines()])
    yield from _in_lines(_setup_strings(_text(root / "setup.py")))


def _in_environments(root: Path) -> Iterator[str]:
    for file in sorted(root.glob("environment*.y*ml")):
        for line in _text(file).splitlines():
            if match := re.match(_CONDA, line[:_LONGEST]):
                yield re.sub(r"^=?(?=\d)", "==", match[1].strip())


def _in_lines(lines: Iterator[str] | list[str]) -> Iterator[str]:
    for line in lines:
        match = _TORCH.match(line[:_LONGEST])
        if match:
            yield match[1]


def _part(data: object, *keys: str) -> object:
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings_in(item)


def _poetry(table: object) -> Iterator[str]:
    groups = _part(table, "group")
    tables = [table, *(groups.values() if isinstance(groups, Mapping) else ())]
    for one in tables:
        torch = _part(one, "dependencies", "torch")
        for choice in torch if isinstance(torch, list) else [torch]:
            version = choice if isinstance(choice, str) else _part(choice, "version")
            if isinstance(version, str):
                yield f"=={version}" if version[:1].isdigit() else version


def _text(path: Path) -> str:
    """The text of a file that mentions torch, else nothing."""
    if not os.path.isfile(path):
        return ""
    try:
        data = read_bytes(path, MOST_CONFIGURED, "")
    except SourceError as error:
        raise SettingsError(f"{path}: {error}; or set target-torch") from error
    return data.decode("utf-8", "replace") if b"torch" in data else ""


def _setup_strings(text: str) -> Iterator[str]:
    """Strings of `setup.py` that stand in a list, or in an argument that holds requirements."""
    if not text:
        return
    try:
        tree = parse_text(text)
    except SourceError:  # said where the project's files are checked
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            holders: list[ast.expr] = node.elts
        elif isinstance(node, ast.keyword) and node.arg in _REQUIREMENT_LISTS:
            holders = [node.value, *(node.value.values if isinstance(node.value, ast.Dict) else ())]
        else:
            continue
        for item in holders:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield from item.value.splitlines()
