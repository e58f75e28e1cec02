"""The parts of a function that an operator runs: all but compile paths, for nothing is traced while it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend_codemod.analysis.scope import children
from graphmend_codemod.rules.framework.site import Site

_PREDICATES = frozenset({"torch.compiler.is_compiling", "torch.compiler.is_dynamo_compiling"})


def eager_nodes(site: Site, statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Every node of statements but for those of compile paths and of the tests in front of them."""
    todo: list[ast.AST] = [*statements]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and is_compile_path(site, node.test):
            todo += node.orelse
        elif isinstance(node, ast.IfExp) and is_compile_path(site, node.test):
            todo.append(node.orelse)
        else:
            yield node
            todo += children(node)


def is_compile_path(site: Site, test: ast.expr) -> bool:
    """True for `torch.compiler.is_compiling()`, and for `torch.compiler.is_compiling() and ...`."""
    first = test.values[0] if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else test
    return isinstance(first, ast.Call) and site.resolve_global(first.func) in _PREDICATES
