"""The parts of a function that an operator runs: all but compile paths, for nothing is traced while it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend_codemod.analysis.patterns import is_attribute, operands_of
from graphmend_codemod.analysis.scope import FunctionNode, children, walk
from graphmend_codemod.project.index.facts import AttributeKind
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
    first = operands_of(test, ast.And)[0]
    return isinstance(first, ast.Call) and site.resolve_global(first.func) in _PREDICATES


def behind_flags(site: Site, function: FunctionNode, own: str) -> Iterator[tuple[int, str]]:
    """What runs only if a flag of the instance is set, by identity: the rest of `if self.flag and ...:`."""
    for node in (part for statement in function.body for part in walk(statement)):
        if not isinstance(node, ast.If) or node.orelse:
            continue
        flag, *rest = operands_of(node.test, ast.And)
        if is_attribute(flag, own):
            fact = site.evaluator.scope.attribute(flag.attr)
            if fact is None or fact.kind not in {AttributeKind.BUFFER, AttributeKind.PARAMETER}:
                yield from ((id(part), flag.attr) for each in (*rest, *node.body) for part in walk(each))
