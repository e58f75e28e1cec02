"""What a loop gets in each round."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.values import UNKNOWN, Value, ValueKind, python

_LOCKSTEP = frozenset({"builtins.enumerate", "builtins.zip"})


def element_of(evaluator: Evaluator, node: ast.expr, env: Env) -> Value:
    """An element of what a `for` loop iterates over."""
    iterated = evaluator.value(node, env)
    if iterated.kind is ValueKind.TENSOR:
        return evaluator.names.tensor(iterated.dtype, grad=iterated.grad)
    called = evaluator.resolve(node.func, env) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and called in _LOCKSTEP:
        return _in_step(evaluator, node, env)
    if iterated.is_python and called == "builtins.range" and iterated.elements is None:
        return python(iterated.origin)
    return UNKNOWN


def _in_step(evaluator: Evaluator, call: ast.Call, env: Env) -> Value:
    """What `enumerate(x)` and `zip(x, y)` give in each round."""
    parts: list[Value] = []
    for each in call.args:
        value = evaluator.value(each, env)
        if isinstance(each, ast.Call) and evaluator.resolve(each.func, env) in _LOCKSTEP:
            parts.append(_in_step(evaluator, each, env))
        elif value.kind is ValueKind.TENSOR:
            parts.append(evaluator.names.tensor(value.dtype, grad=value.grad))
        else:
            parts.append(UNKNOWN)
    if evaluator.resolve(call.func, env) == "builtins.enumerate":
        parts = [python(), *parts[:1]]
    return Value(ValueKind.PYTHON, elements=tuple(parts))
