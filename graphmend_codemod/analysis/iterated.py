"""What a loop gets in each round."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.values import UNKNOWN, Origin, Value, ValueKind, python

_LOCKSTEP = frozenset({"builtins.enumerate", "builtins.zip"})


def element_of(evaluator: Evaluator, node: ast.expr, env: Env) -> Value:
    """An element of what a `for` loop iterates over."""
    iterated = evaluator.value(node, env)
    if iterated.kind is ValueKind.TENSOR:
        return evaluator.names.tensor(iterated.dtype, grad=iterated.grad, hint=iterated.hint)
    called = evaluator.resolve(node.func, env) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and called in _LOCKSTEP:
        return _in_step(evaluator, node, env)
    if iterated.is_python and called == "builtins.range" and iterated.elements is None:
        return python(iterated.origin)
    return UNKNOWN


def spread(evaluator: Evaluator, node: ast.expr, target: ast.expr, env: Env) -> Value | None:
    """What names of a tuple get of `*x.shape, x.device`: sizes, and the rest one by one. None for any other value."""
    if not isinstance(node, ast.Tuple) or not isinstance(target, (ast.Tuple, ast.List)):
        return None
    stars = [each for each in node.elts if isinstance(each, ast.Starred)]
    sizes = len(target.elts) - len(node.elts) + 1
    if len(stars) != 1 or sizes < 0 or any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    size = evaluator.value(stars[0].value, env)
    if not size.is_python or size.origin is not Origin.SHAPE:
        return None
    parts: list[Value] = []
    for each in node.elts:
        parts += [python(Origin.SHAPE)] * sizes if each is stars[0] else [evaluator.value(each, env)]
    return Value(ValueKind.PYTHON, elements=tuple(parts))


def _in_step(evaluator: Evaluator, call: ast.Call, env: Env) -> Value:
    """What `enumerate(x)` and `zip(x, y)` give in each round."""
    parts: list[Value] = []
    for each in call.args:
        value = evaluator.value(each, env)
        if isinstance(each, ast.Call) and evaluator.resolve(each.func, env) in _LOCKSTEP:
            parts.append(_in_step(evaluator, each, env))
        elif value.kind is ValueKind.TENSOR:
            parts.append(evaluator.names.tensor(value.dtype, grad=value.grad, hint=value.hint))
        else:
            parts.append(UNKNOWN)
    if evaluator.resolve(call.func, env) == "builtins.enumerate":
        parts = [python(), *parts[:1]]
    return Value(ValueKind.PYTHON, elements=tuple(parts))


def in_step(
    target: ast.expr, iterated: ast.expr, resolve: Callable[[ast.expr], str | None]
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of a loop with what each of them goes through: `i, (a, b) in enumerate(zip(x, y))` gives `a` and `x`.

    A counter goes with a number. `resolve` tells the full name of what is called.
    """
    given = iterated.args if isinstance(iterated, ast.Call) else []
    called = resolve(iterated.func) if isinstance(iterated, ast.Call) else None
    targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    plain = not any(isinstance(each, ast.Starred) for each in (*targets, *given))
    if called == "builtins.enumerate" and plain and len(targets) == 2 and given:
        yield targets[0], ast.Constant(0)
        yield from in_step(targets[1], given[0], resolve)
    elif called == "builtins.zip" and plain and len(targets) == len(given):
        for each, value in zip(targets, given, strict=True):
            yield from in_step(each, value, resolve)
    else:
        yield target, iterated
