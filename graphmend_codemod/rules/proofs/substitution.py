"""Expressions with other parts in the place of some."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

Instead = Callable[[ast.expr], "ast.expr | None"]


def exchanged(node: ast.expr, instead: Instead) -> ast.expr:
    """A copy of an expression with what `instead` gives for a part of it in the place of that; None leaves it there."""
    found: ast.expr = _copied(node, instead)
    return found


def _copied(node: Any, instead: Instead) -> Any:
    if isinstance(node, list):
        return [_copied(each, instead) for each in node]
    if not isinstance(node, ast.AST):
        return node
    found = instead(node) if isinstance(node, ast.expr) else None
    if found is not None:
        return found
    fields = {name: _copied(value, instead) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)
