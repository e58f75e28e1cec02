"""Which names the functions of a file bind themselves, by the lines on which these stand.

`input.add_(1)` writes into the parameter `input`; it calls no function of the builtin. The same goes for a local `x`
of a file whose top level has an `x`, or a star import that may bind one.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import name_imported
from graphmend_codemod.analysis.scope import parameter_names, walk, walk_scope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def is_bound_around(text: str, node: ast.expr, name: str) -> bool:
    """True where a function of the file around `node`, a part of its tree, binds `name` itself."""
    line = getattr(node, "lineno", 0)  # nothing that graphmend made has one
    return any(first <= line <= last and name in bound for first, last, bound in _functions(text))


@lru_cache(maxsize=16)
def _functions(text: str) -> list[tuple[int, int, frozenset[str]]]:
    """The first and last line of each function, at any depth, with the names that are local to it."""
    nodes = (node for node in walk(tree_of(text)) if isinstance(node, _FUNCTIONS))
    return [(node.lineno, node.end_lineno or 0, _bound_by(node)) for node in nodes]


def _bound_by(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    found, outer = set(parameter_names(function)), set[str]()
    for part in walk_scope(function):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, _NAMED):
            found.add(part.name or "")
        elif isinstance(part, ast.MatchMapping):
            found.add(part.rest or "")
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            found.update(map(name_imported, part.names))
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            outer.update(part.names)
    return frozenset(found - outer)
