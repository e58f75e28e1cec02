"""Parsing one function out of a file, with the positions that it has in the file.

A file's tree costs more than all questions about its few interesting functions, so only these are parsed again.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from graphmend_codemod.analysis.scope import FunctionNode, with_plain_assignments
from graphmend_codemod.core.source import SourceFile, with_known_statements
from graphmend_codemod.project.summary.records import FunctionSummary, ModuleSummary

_LONGEST_DECORATORS = 60
"""Lines that the decorators of a function take, with comments between them."""


def outermost(summary: ModuleSummary, wanted: Iterable[tuple[str, int]]) -> list[FunctionSummary]:
    """The functions that stand in no other function and hold the wanted ones, in order of position.

    A wanted function is named by qualname and line.
    """
    lines = sorted({line for _, line in wanted})
    return [each for each in summary.functions if not each.outer and _holds(each, lines)]


def _holds(function: FunctionSummary, lines: Sequence[int]) -> bool:
    following = bisect_left(lines, function.line)
    return following < len(lines) and lines[following] <= function.end_line


def parse_function(source: SourceFile, function: FunctionSummary) -> FunctionNode | None:
    """The tree of one function of the file; None when its text does not parse on its own.

    Raises nothing for odd text: the caller falls back on the whole file.
    """
    first = _first_line(source, function)
    starts = source.line_starts
    end = starts[function.end_line] if function.end_line < len(starts) else len(source.text)
    text = source.text[starts[first - 1] : end]
    indented = text[:1] in {" ", "\t"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Blank lines in front give every node the line that it has in the file.
            blank = "\n" * (first - (2 if indented else 1))
            tree = ast.parse(f"{blank}if 1:\n{text}" if indented else blank + text)
            tree = with_known_statements(tree, text)
    except (SyntaxError, ValueError):
        return None
    body = tree.body[0].body if indented and isinstance(tree.body[0], ast.If) else tree.body
    found = body[0] if len(body) == 1 else None
    if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) or found.lineno != function.line:
        return None
    if found.name != function.name or len(found.decorator_list) != len(function.decorators):
        return None
    with_plain_assignments(found)
    return found


def _first_line(source: SourceFile, function: FunctionSummary) -> int:
    """The line where the first decorator seems to begin: `parse_function` looks whether they are all there."""
    head = source.line(function.line)
    mark = f"{head[: len(head) - len(head.lstrip())]}@"
    line, missing = function.line, len(function.decorators)
    for above in range(line - 1, max(0, line - _LONGEST_DECORATORS), -1):
        if not missing:
            break
        if source.line(above).startswith(mark):
            line, missing = above, missing - 1
    return line


def functions_of(source: SourceFile) -> Iterator[tuple[FunctionNode, str]]:
    """Every function of the file that stands in no other, with the qualified prefix in front of its name."""

    def visit(body: list[ast.stmt], prefix: str) -> Iterator[tuple[FunctionNode, str]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node, prefix
            else:
                for field in ("body", "orelse", "finalbody"):
                    yield from visit(getattr(node, field, []), prefix)
                for handler in getattr(node, "handlers", []):
                    yield from visit(handler.body, prefix)

    tree = source.parse()
    with_plain_assignments(tree, inside=False)
    return visit(tree.body, "")
