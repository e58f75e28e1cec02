"""Which names' objects something else may hold on to after an expression was evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.scope import NODE_FIELDS, children, walk
from graphmend_codemod.analysis.values import Kind

if TYPE_CHECKING:
    from graphmend_codemod.analysis.evaluate import Env, Evaluator

_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def escaping_names(evaluator: Evaluator, statement: ast.stmt, env: Env) -> set[str]:
    """Local names whose object `statement`'s own expressions store, capture, return or hand to unknown code."""
    found: set[str] = set()
    compound = isinstance(statement, _COMPOUND)
    for name in NODE_FIELDS[statement.__class__]:
        if compound and name in _BLOCKS:
            continue
        field = getattr(statement, name)
        for node in field if field.__class__ is list else [field]:
            if isinstance(node, ast.withitem):
                found.update(_escaping(evaluator, node.context_expr, env, True))
            elif isinstance(node, ast.expr):
                found.update(_escaping(evaluator, node, env, True))
            elif isinstance(node, ast.AST):
                found.update(inner.id for inner in walk(node) if isinstance(inner, ast.Name))
    return found


def _escaping(evaluator: Evaluator, node: ast.expr, env: Env, kept: bool) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if kept and isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr, ast.FormattedValue)):
        for child in children(node):
            if isinstance(child, ast.expr):
                yield from _escaping(evaluator, child, env, False)
    elif isinstance(node, ast.Attribute):
        yield from _escaping(evaluator, node.value, env, kept and node.attr not in torch_api.PYTHON_ATTRIBUTES)
    elif isinstance(node, ast.Call):
        yield from _call(evaluator, node, env, kept)
    elif isinstance(node, (ast.BoolOp, ast.IfExp, ast.Tuple, ast.List, ast.Subscript, ast.Starred)):
        for child in children(node):
            if isinstance(child, ast.expr):
                yield from _escaping(evaluator, child, env, kept)
    elif not isinstance(node, ast.Constant):
        yield from (inner.id for inner in walk(node) if isinstance(inner, ast.Name))


def _call(evaluator: Evaluator, node: ast.Call, env: Env, kept: bool) -> Iterator[str]:
    arguments = [*node.args, *(word.value for word in node.keywords)]
    name = torch_api.torch_function(evaluator.resolve(node.func, env))
    if name is None and isinstance(node.func, ast.Attribute):
        if evaluator.value(node.func.value, env).kind is Kind.TENSOR:
            name = node.func.attr
            arguments.insert(0, node.func.value)
        else:
            layer = torch_api.torch_module_class(evaluator.value(node.func, env).instance_of)
            name = "linear" if layer in torch_api.TENSOR_MODULES_FRESH else None
    pure = name is not None and (
        name in torch_api.PYTHON_METHODS
        or name in {"finfo", "iinfo", "is_tensor"}
        or (
            name in torch_api.RETURNS_TENSOR
            and name not in torch_api.VIEWS | {"contiguous", "detach", "as_tensor", "from_numpy", "positive"}
        )
    )
    if name is None and isinstance(node.func, ast.Attribute):
        yield from _escaping(evaluator, node.func.value, env, True)
    resolved = evaluator.resolve(node.func, env)
    if resolved in {"builtins.isinstance", "builtins.len", "builtins.hasattr", "builtins.type"}:
        pure = True
    for argument in arguments:
        yield from _escaping(evaluator, argument, env, kept if name in torch_api.VIEWS else not pure)
