"""What one look at a function tells: the names that it binds, the calls in it, and which rarer forms it uses."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphmend_codemod.analysis.scope import (
    INSIDE,
    NODE_FIELDS,
    SCOPES,
    FunctionNode,
    children,
    parameters,
    put_children,
)

INDEXED = "[]"
"""Stands among the words of an outline for `x[index]`, where the index is not a constant."""


class Outline(NamedTuple):
    """What one look at a function tells: names that it binds, functions inside, and which rarer forms it uses.

    `conditional_lines` are the lines of conditional expressions, in order; `words` the names read or behind a dot, with
    the lines where these expressions begin, and under `INDEXED` those of subscripts whose index is no constant. `notes`
    are for what rules look for here, once. `decisions` are `and`, `or`, `not` and chained comparisons, `asked` are
    attributes that arrays of NumPy have, too, and `grad_fn`.
    """

    names: frozenset[str]
    nested: tuple[FunctionNode, ...]
    has_walrus: bool
    comprehensions: tuple[ast.comprehension, ...]
    conditional_lines: tuple[int, ...]
    words: Mapping[str, Sequence[int]]
    notes: dict[str, Any]
    calls: Sequence[ast.Call] = ()
    subscripts: Sequence[ast.Subscript] = ()
    assignments: Sequence[ast.Assign] = ()
    decisions: Sequence[ast.BoolOp | ast.Compare | ast.UnaryOp] = ()
    asked: Sequence[ast.Attribute] = ()


_BINDING = frozenset(
    {
        ast.IfExp, ast.NamedExpr, ast.comprehension, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom,
        ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    }
)  # fmt: skip
"""Nodes other than names that say something for the outline."""
_ASKED = frozenset({"dtype", "flags", "nbytes", "strides", "grad_fn"})


def outline(function: FunctionNode) -> Outline:
    """Parameters, assignments, imports and nested definitions are bound; `global` and `nonlocal` names are not."""
    names = {argument.arg for argument in parameters(function)}
    rare: list[Any] = []
    words: dict[str, list[int]] = {}
    kept: dict[type[ast.AST], list[Any]] = {
        ast.Subscript: [], ast.Assign: [], ast.BoolOp: [], ast.Compare: [], ast.Attribute: [], ast.UnaryOp: []
    }  # fmt: skip
    calls: list[ast.Call] = []
    inside: list[ast.AST] = []
    function.__dict__[INSIDE] = inside  # all that `walk_scope` yields, in its order
    stack: list[Any] = children(function)
    while stack:
        node = stack.pop()
        inside.append(node)
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is ast.Load:
                words.setdefault(node.id, []).append(node.lineno)
            else:
                names.add(node.id)
            continue
        if kind is ast.Constant:
            continue
        if kind is ast.Attribute:
            words.setdefault(node.attr, []).append(node.lineno)
            if node.attr in _ASKED:
                kept[kind].append(node)
            stack.append(node.value)
            continue
        if kind is ast.Call:
            calls.append(node)
            stack.append(node.func)
            stack += node.args
            stack += node.keywords
            continue
        fields = NODE_FIELDS[kind]
        if kind in kept:
            kept[kind].append(node)
            if kind is ast.Subscript and node.slice.__class__ is not ast.Constant:
                words.setdefault(INDEXED, []).append(node.lineno)
        elif kind in _BINDING:
            rare.append(node)
            if kind in SCOPES:
                continue
        if fields and kind is not ast.Lambda:
            put_children(node, fields, stack)
    return _outlined(rare, names, words, calls, kept)


def _outlined(
    rare: list[Any],
    names: set[str],
    words: dict[str, list[int]],
    calls: list[ast.Call],
    kept: dict[type[ast.AST], list[Any]],
) -> Outline:
    kinds = {node.__class__ for node in rare}
    nested = [node for node in rare if node.__class__ is ast.FunctionDef or node.__class__ is ast.AsyncFunctionDef]
    return Outline(
        _bound_by(rare, names),
        tuple(sorted(nested, key=lambda node: (node.lineno, node.col_offset))),
        ast.NamedExpr in kinds,
        tuple(node for node in rare if node.__class__ is ast.comprehension),
        tuple(sorted(node.lineno for node in rare if node.__class__ is ast.IfExp)),
        words,
        {},
        calls,
        kept[ast.Subscript],
        kept[ast.Assign],
        _decisions(kept),
        kept[ast.Attribute],
    )


def _decisions(kept: dict[type[ast.AST], list[Any]]) -> list[Any]:
    chained = [node for node in kept[ast.Compare] if len(node.ops) > 1]
    return [*kept[ast.BoolOp], *chained, *(node for node in kept[ast.UnaryOp] if node.op.__class__ is ast.Not)]


def _bound_by(rare: list[Any], names: set[str]) -> frozenset[str]:
    """The local names of a function: those that are assigned, and what its rarer nodes say."""
    outer: set[str] = set()
    for node in rare:
        kind = node.__class__
        if kind is ast.Global or kind is ast.Nonlocal:
            outer.update(node.names)
        elif kind is ast.Import or kind is ast.ImportFrom:
            names.update((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        elif kind is not ast.IfExp and kind is not ast.NamedExpr and kind is not ast.comprehension and node.name:
            names.add(node.name)
    return frozenset(names - outer)
