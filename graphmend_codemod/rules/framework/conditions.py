"""Conditions as rules hand them on, as text: their parts, and the names that they read."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from graphmend_codemod.analysis.scope import walk


def expression(condition: str) -> ast.expr:
    """The tree of a condition, whose first line begins one column further to the right than the text."""
    return ast.parse(f"({condition})", mode="eval").body


def names_in(conditions: Iterable[str]) -> set[str]:
    """The names that conditions read, calls included."""
    return {part.id for each in conditions for part in walk(expression(each)) if isinstance(part, ast.Name)}


def renamed(condition: str, names: Mapping[str, str]) -> str:
    """The condition with other names for what it reads."""
    lines = f"({condition})".split("\n")
    reads = [part for part in walk(expression(condition)) if isinstance(part, ast.Name) and part.id in names]
    for part in sorted(reads, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        line = lines[part.lineno - 1].encode()
        lines[part.lineno - 1] = (
            line[: part.col_offset] + names[part.id].encode() + line[part.end_col_offset :]
        ).decode()
    return "\n".join(lines)[1:-1]


def conjuncts(condition: str) -> list[str]:
    """The parts of a condition on one line that `and` joins; the condition itself where they have brackets."""
    if " and " not in condition or "\n" in condition:
        return [condition]
    node = ast.parse(condition, mode="eval").body
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.And):
        return [condition]
    if any(isinstance(each, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) for each in node.values):
        return [condition]
    return [ast.get_source_segment(condition, each) or "" for each in node.values]


def once(conditions: Iterable[str]) -> Iterator[str]:
    """The conditions without what one before them asks already."""
    asked: set[str] = set()
    for each in conditions:
        parts = conjuncts(each)
        new = [part for part in dict.fromkeys(parts) if part not in asked]
        asked |= {each, *parts}
        if new:
            yield each if len(new) == len(parts) else " and ".join(new)
