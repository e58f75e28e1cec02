"""Exceptions raised in the place of others, as in `except ValueError as error: raise TooShort from error`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Iterable, Sequence

from graphmend_codemod.core.source import SourceError, parse_text
from graphmend_codemod.project.summary.context_managers import LEAVES

_PLAIN = re.compile(r"[ \t]*(?:except|raise)\b[^#]*$")
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)\(([^()]*)\)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_HEADER = re.compile(r"([ \t]*)(except\b|def |async def |class )")
_METHODS = frozenset({"forward", "__call__", "__init__"})
"""Functions that raise an exception, and whose names in a handler say little of which function is meant."""


def is_made_of_others(name: str, texts: Callable[[Collection[str]], Iterable[str]]) -> bool:
    """True where a handler or an `__exit__` in a file names this exception or calls what raises it, or one is returned.

    `texts` gives those of all files with one of some words, empty where a file cannot be read. Lines are looked
    at first, so that few files are parsed. Which functions raise it is not asked for an exception of Python: most do.
    """
    names, found = {name}, list(texts({name}))
    while new := {heir for text in found for heir in _heirs(text, names)} - names:
        names |= new
        found = list(texts(names))
    if not all(found) or any(_may_exchange(text, names) and _exchanges(text, names) for text in found):
        return True
    if hasattr(builtins, name):
        return False
    raise_it = frozenset(function for text in found for function in _raising(text, names))
    return bool(raise_it) and any(
        _may_exchange(text, raise_it) and _exchanges(text, raise_it, returned=False) for text in texts(raise_it)
    )


def _heirs(text: str, names: Collection[str]) -> Iterable[str]:
    return (found[1] for found in _CLASS.finditer(text) if any(each in names for each in _WORD.findall(found[2])))


def _may_exchange(text: str, names: Collection[str]) -> bool:
    """False only where each line with a name is a plain `except` or a `raise` with no handler above it.

    A parse of each file that names an exception of Python takes long.
    """
    spelled = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    if spelled.search(text) is None:
        return False
    lines = text.splitlines()
    return any(spelled.search(line) and not _is_plain(lines, at) for at, line in enumerate(lines))


def _is_plain(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if not _PLAIN.match(line):
        return False
    if line.lstrip().startswith("except"):
        return line.rstrip().endswith(":")
    depth = len(line) - len(line.lstrip())
    for above in reversed(lines[:at]):
        found = _HEADER.match(above)
        if found is not None and len(found[1]) < depth:
            return found[2] != "except" and not any(leaf in above for leaf in LEAVES)
    return True


def _raising(text: str, names: Collection[str]) -> Iterable[str]:
    """Functions with a statement that raises one, by their last names."""
    function = ""
    for line in text.splitlines():
        words = line.split("(")[0].split()
        if words[:1] == ["def"] or words[:2] == ["async", "def"]:
            function = words[-1]
        elif words[:1] == ["raise"] and any(name in line for name in names) and function not in _METHODS:
            yield function


def _exchanges(text: str, names: Collection[str], *, returned: bool = True) -> bool:
    """True where a handler in a file names one of these, or a function returns one. True for a file with no syntax.

    Heirs in the same file count, and so does another name that the file has for one.
    """
    try:
        tree = parse_text(text)
    except (SourceError, ValueError):  # it may hold null bytes
        return True
    names = {*names}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and _last(node.name) in names and node.asname is not None:
            names.add(node.asname)
        elif isinstance(node, ast.ClassDef) and any(_named(each) in names for each in node.bases):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and _named(node.value) in names:
            names.update(filter(None, map(_named, node.targets)))
    for node in ast.walk(tree):
        if returned and isinstance(node, ast.Return) and _named(node.value) in names:
            return True
        others = names - {getattr(node, "name", None)}  # a handler's own variable is what it has caught
        if _handles(node, names) and any(_named(part) in others for part in _expressions(node.body)):  # type: ignore[attr-defined]
            return True
    return False


def _handles(node: ast.AST, names: Collection[str]) -> bool:
    """True for what gets an exception that has none of these names."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name in LEAVES
    if not isinstance(node, ast.ExceptHandler):
        return False
    handled = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(_named(each) not in names for each in handled)


def _expressions(body: Iterable[ast.stmt]) -> Iterable[ast.expr]:
    return (part for each in body for part in ast.walk(each) if isinstance(part, ast.expr))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _named(node: ast.expr | None) -> str:
    """The last name of an exception class, or of what is called to make one."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
