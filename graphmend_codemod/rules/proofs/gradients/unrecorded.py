"""Which writes autograd records: not those through `.data`, under `no_grad`, and of constants into buffers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from graphmend_codemod.analysis.gradients import certainly_off
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import FunctionNode
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.site import Site

_SETS = frozenset({"torch.enable_grad", "torch.set_grad_enabled"})
_FILLS = frozenset({"fill_", "zero_"})


def is_detached(node: ast.expr) -> bool:
    """True for `self.a.data[0]` and `self.a.detach()`: what autograd does not see written."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        called = isinstance(node, ast.Call)
        inner = node.func if isinstance(node, ast.Call) else node
        if isinstance(inner, ast.Attribute) and inner.attr == ("detach" if called else "data"):
            return True
        if called:
            return False
        node = node.value  # type: ignore[union-attr]
    return False


def fills_buffer(site: Site, node: ast.AST, own: str) -> bool:
    """True for `self.done.fill_(1)`: a constant in a buffer needs no gradient."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _FILLS:
        return False
    held = node.func.value
    fact = site.evaluator.scope.attribute(held.attr) if is_attribute(held, own) else None
    constant = all(isinstance(each, ast.Constant) for each in node.args) and not node.keywords
    return constant and fact is not None and fact.kind is AttributeKind.BUFFER


def is_off(site: Site, function: FunctionNode) -> bool:
    """True for a function under `@torch.no_grad()` in which nothing turns gradients on."""
    off = any(certainly_off([each], site.resolve_global) for each in function.decorator_list)
    return off and not any(_turns_on(part, site.resolve_global) for part in ast.walk(function))


def is_around(site: Site) -> bool:
    """True where `no_grad` is written around a statement or its function, whatever else sets the mode."""
    node, around = site.place.statement, site.place.parents
    return is_off(site, site.evaluator.scope.node) or id(node) in under_no_grad(around, site.resolve_global)


def under_no_grad(nodes: Iterable[ast.AST], resolve: Callable[[ast.expr], str | None]) -> set[int]:
    """The ids of what runs under `with torch.no_grad():`, but for blocks in which something turns gradients on."""
    found = set[int]()
    for node in nodes:
        if isinstance(node, ast.With) and any(certainly_off([each.context_expr], resolve) for each in node.items):
            inner = [part for statement in node.body for part in ast.walk(statement)]
            if not any(_turns_on(part, resolve) for part in inner):
                found.update(map(id, inner))
    return found


def _turns_on(node: ast.AST, resolve: Callable[[ast.expr], str | None]) -> bool:
    contexts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    return any(isinstance(each, ast.Call) and resolve(each.func) in _SETS for each in contexts)
