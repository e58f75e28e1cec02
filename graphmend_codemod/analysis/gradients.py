"""Where the gradient of an expression flows: both values of a select must send it to the same tensors.

A select is part of the graph whenever one of its arms is. If eager returned an arm without a gradient, or one that
leads to other leaves, a select would add zero gradients where there were none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import rearrangements, torch_api
from graphmend_codemod.analysis.patterns import all_given, is_name
from graphmend_codemod.analysis.scope import children
from graphmend_codemod.analysis.values import ValueKind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

_STOPS = (
    torch_api.TO_BOOL
    | torch_api.CREATION
    | frozenset(torch_api.PYTHON_METHODS)
    | torch_api.name_set("detach any all argmax argmin argsort count_nonzero long int bool")
)
_CHOOSES = {"masked_fill": 1, "where": 0}
"""Functions with an argument of bools, and its place; it is the first one of a method. No gradient flows into it."""


def roots(evaluator: Evaluator, node: ast.expr, env: Env) -> frozenset[str]:
    """Names of the tensors, attributes and calls that a gradient of `node` may reach."""
    if isinstance(node, (ast.Constant, ast.Compare)):
        return frozenset()
    if isinstance(node, ast.Name):
        value = env.get(node.id)
        if value is None or value.kind is ValueKind.PYTHON:
            return frozenset()
        if value.kind is ValueKind.UNKNOWN or value.token is None:
            return frozenset({node.id})
        return value.roots if value.roots is not None else frozenset({value.token} if value.grad else ())
    if isinstance(node, ast.Attribute):
        if node.attr in torch_api.PYTHON_ATTRIBUTES or node.attr == "data":
            return frozenset()
        if is_name(node.value, evaluator.scope.self_name):
            return frozenset() if evaluator.value(node, env).is_python else frozenset({f"self.{node.attr}"})
        return roots(evaluator, node.value, env)
    if isinstance(node, ast.Call):
        return _call(evaluator, node, env)
    if isinstance(node, ast.Subscript):
        return roots(evaluator, node.value, env)  # an index is of integers or bools
    found: frozenset[str] = frozenset()
    for child in children(node):
        if isinstance(child, ast.expr):
            found |= roots(evaluator, child, env)
    return found


def _call(evaluator: Evaluator, node: ast.Call, env: Env) -> frozenset[str]:
    operands: list[ast.expr] = all_given(node)
    qualified = evaluator.resolve(node.func, env)
    name = torch_api.torch_function(qualified)
    position = _CHOOSES.get(name or "", 0)
    if name is None and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if evaluator.value(owner, env).kind is ValueKind.TENSOR:
            name = node.func.attr
            position = 0
            operands.append(owner)
    if name in _STOPS:
        return frozenset()
    if name in _CHOOSES and len(node.args) > position:
        operands = [each for each in operands if each is not node.args[position]]
    known = name is not None or qualified in rearrangements.FUNCTIONS
    found = frozenset() if known else frozenset({ast.unparse(node.func)})
    for operand in operands:
        found |= roots(evaluator, operand, env)
    return found


_OFF = frozenset(f"{owner}.{name}" for owner in ("torch", "torch.autograd", "torch.autograd.grad_mode")
                 for name in ("no_grad", "inference_mode"))  # fmt: skip
_NEUTRAL = torch_api.name_set(
    """torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast contextlib.nullcontext
    contextlib.suppress torch.profiler.record_function torch.autograd.profiler.record_function torch.device
    warnings.catch_warnings torch.cuda.device torch.cuda.stream torch.nn.attention.sdpa_kernel"""
)
_BY_STATEMENT = re.compile(r"set_grad_enabled|__enter__|__exit__|enter_context")


@lru_cache(maxsize=4)
def set_by_statement(text: str) -> bool:
    """True for a file that may turn gradients on or off by a statement, so that no `with` around says what holds."""
    return _BY_STATEMENT.search(text) is not None


def sets_inference(context: ast.expr, resolve: Callable[[ast.expr], str | None]) -> bool:
    """True for `torch.inference_mode()` and `torch.inference_mode`, but not for `torch.inference_mode(False)`."""
    given = [*context.args, *(word.value for word in context.keywords)] if isinstance(context, ast.Call) else []
    name = resolve(context.func if isinstance(context, ast.Call) else context) or ""
    off = len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
    return name in _OFF and name.endswith(".inference_mode") and not off


def certainly_off(around: Iterable[ast.expr], resolve: Callable[[ast.expr], str | None]) -> bool:
    """True when gradients are off in what these contexts and decorators, innermost first, stand around."""
    for node in around:
        called = node.func if isinstance(node, ast.Call) else node
        name = resolve(called)
        if name in _OFF:
            return not isinstance(node, ast.Call) or not (node.args or node.keywords)
        if name not in _NEUTRAL:
            return False
    return False
