"""Layers that a module holds: which classes a constructor makes, and where names for them are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import (
    stores_name,
)
from graphmend_codemod.analysis.scope import dotted, walk_scope
from graphmend_codemod.analysis.value_flow import stores_of


def classes_of(calls: ModuleCalls, owner: str, attribute: str) -> Iterator[str]:
    """What a class calls for an attribute; where it is None, nothing can be called."""
    for value in (each.value for each in stores_of(calls, owner, attribute)):
        if not isinstance(value, ast.Constant):
            yield (dotted(value.func) if isinstance(value, ast.Call) else None) or "..."


def is_changed(node: ast.AST, attribute: str) -> bool:
    """True for `x.attribute.append(layer)` and `x.attribute[i] = layer`."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and getattr(node.value, "attr", "") == attribute
    changing = isinstance(node, ast.Attribute) and node.attr in {"append", "extend", "insert"}
    return changing and isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == attribute


def bindings(function: Definition, name: str) -> list[ast.Name]:
    """Where a function binds a name."""
    return [node for node in walk_scope(function.node) if stores_name(node, name)]


def start_of(function: Definition, node: ast.AST) -> int:
    """The line of a node, or of the outermost loop around it."""
    line: int = node.lineno  # type: ignore[attr-defined]
    loops = [each for each in walk_scope(function.node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
    return min([line, *(each.lineno for each in loops if each.lineno <= line <= (each.end_lineno or 0))])
