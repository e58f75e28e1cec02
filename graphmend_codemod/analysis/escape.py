"""Escape analysis: objects that something else may reference after an expression ran."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.patterns import owner_of
from graphmend_codemod.analysis.scope import NODE_FIELDS, children, walk

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

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
    effect = effect_of(evaluator, node, env)
    keeps = {id(each) for each in effect.keeps}
    shares = {id(each) for each in effect.shares} if kept else set()
    given = aliasing.operands(node, owner_of(node))
    for argument in given:
        yield from _escaping(evaluator, argument, env, id(argument) in keeps or id(argument) in shares)
