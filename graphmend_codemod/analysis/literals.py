"""The number that an expression is for certain."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.project.index.facts import AttributeKind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Evaluator


def number_of(evaluator: Evaluator, node: ast.expr) -> float | None:
    """The number that `node` spells, or that is the only value of a constant of the module."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return number_of(evaluator, node.operand)
    if isinstance(node, ast.Constant):
        return _as_float(node.value) if isinstance(node.value, (int, float)) else None
    if not isinstance(node, ast.Name) or evaluator.scope.is_local(node.id):
        return None
    fact = evaluator.scope.index.global_fact(evaluator.scope.module, node.id)
    if fact is None or fact.kind is not AttributeKind.CONSTANT:
        return None
    try:
        value = ast.literal_eval(fact.text)
    except (ValueError, SyntaxError):
        return None
    return _as_float(value) if isinstance(value, (int, float)) else None


def _as_float(value: float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
