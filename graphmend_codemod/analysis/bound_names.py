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


def is_bound_around(text: str, node: ast.expr, name: str, means: str | None = None) -> bool:
    """True where a function of the file around `node`, a part of its tree, binds `name` itself.

    Not by an import of what the name `means` anyway: `import torch` in the function that needs it.
    """
    line = getattr(node, "lineno", 0)  # nothing that graphmend made has one
    return any(first <= line <= last and bound.get(name, means) != means for first, last, bound in _functions(text))


@lru_cache(maxsize=16)
def _functions(text: str) -> list[tuple[int, int, dict[str, str]]]:
    """The first and last line of each function, at any depth, with the names that are local to it.

    Each with what it is imported from, where nothing else binds it, and else with an empty string.
    """
    nodes = (node for node in walk(tree_of(text)) if isinstance(node, _FUNCTIONS))
    return [(node.lineno, node.end_lineno or 0, _bound_by(node)) for node in nodes]


def _bound_by(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, str]:
    found, outer, imported = set(parameter_names(function)), set[str](), dict[str, str]()
    for part in walk_scope(function):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, _NAMED):
            found.add(part.name or "")
        elif isinstance(part, ast.MatchMapping):
            found.add(part.rest or "")
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            for each in part.names:
                name, target = name_imported(each), _target(part, each)
                imported[name] = target if imported.get(name, target) == target else ""
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            outer.update(part.names)
    bound = {**imported, **dict.fromkeys(found, "")}
    return {name: target for name, target in bound.items() if name not in outer}


def _target(statement: ast.Import | ast.ImportFrom, name: ast.alias) -> str:
    """What an import binds its name to; empty for one that begins at the package around the file."""
    if isinstance(statement, ast.Import):
        return name.name if name.asname else name.name.partition(".")[0]
    return f"{statement.module}.{name.name}" if statement.module and not statement.level else ""
