"""Operands of elementwise operations: whether they broadcast, as far as their shapes are known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import shape_needs
from graphmend_codemod.analysis.argument_limits import has_builtins
from graphmend_codemod.analysis.hazards import FREE, Hazards
from graphmend_codemod.analysis.values import ValueKind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator


def elementwise(evaluator: Evaluator, operands: list[ast.expr], env: Env, text: str) -> Hazards:
    """Operands of one elementwise operation: cannot fail when all are one tensor's shape, 0-dim, or numbers."""
    values = [evaluator.value(operand, env) for operand in operands]
    tensors = [value for value in values if value.kind is ValueKind.TENSOR]
    if any(value.kind is ValueKind.UNKNOWN for value in values):
        return Hazards(raises=f"cannot infer the types of all operands of `{_clip(text)}`")
    if any(value.optional for value in tensors):
        return Hazards(raises=f"an operand of `{_clip(text)}` may be None")
    shapes = {value.shape for value in tensors}
    if len(shapes) > 1 and evaluator.broadcast(tensors) is None:
        named = [each for each, value in zip(operands, values, strict=True) if value.kind is ValueKind.TENSOR]
        needs = shape_needs.of_operands(*named) if len(named) == 2 and has_builtins(evaluator) else None
        return Hazards(needs_shapes=needs) if needs else Hazards(raises=_may_not_broadcast(text))
    return FREE


def _may_not_broadcast(text: str) -> str:
    return f"the operands of `{_clip(text)}` may not broadcast"


def _clip(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
