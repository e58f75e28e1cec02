"""Functions that give back a logger of the standard library, by one look at their text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from graphmend_codemod.project.summary.spelling import dotted

_FACTORIES = frozenset({"logging.getLogger", "getLogger"})
_HARMLESS = frozenset({"staticmethod", "classmethod", "cache", "lru_cache", "lru_cache()"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def makes_logger(
    node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: Sequence[str], calls: Collection[str]
) -> bool:
    """True for a function that returns nothing but `logging.getLogger(...)`, or names that hold nothing else.

    `calls` is what it calls, as spelled.
    """
    if _FACTORIES.isdisjoint(calls):
        return False
    if isinstance(node, ast.AsyncFunctionDef) or not {each.rpartition(".")[2] for each in decorators} <= _HARMLESS:
        return False
    own = list(_own(node))
    returned = [each.value for each in own if isinstance(each, ast.Return)]
    if not returned or any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) for each in own):
        return False
    return all(_is_made(each) or (isinstance(each, ast.Name) and _holds(own, each.id)) for each in returned)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _INNER):
            yield child
            yield from _own(child)


def _holds(own: list[ast.AST], name: str) -> bool:
    stores = [each for each in own if isinstance(each, ast.Name) and each.id == name and type(each.ctx) is ast.Store]
    made = [
        target
        for each in own
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and _is_made(each.value)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    ]
    return bool(stores) and all(any(store is target for target in made) for store in stores)


def _is_made(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _FACTORIES
