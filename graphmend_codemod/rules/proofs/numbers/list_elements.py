"""Numbers that may be elements of tensors by way of a list: `left = [longest - v for v in lengths]` and then a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.site import Site

_AS_THEIR_ARGUMENTS = frozenset({"builtins.min", "builtins.max", "builtins.abs", "builtins.sum"})
_STEPS = 5


def may_be_tensor(site: Site, node: ast.expr, steps: int = _STEPS) -> bool:
    """True when one of the ways in which `node` gets its value makes it a tensor."""
    if site.value(node).is_tensor:
        return True
    if not steps:
        return False
    if isinstance(node, ast.BinOp):
        return may_be_tensor(site, node.left, steps - 1) or may_be_tensor(site, node.right, steps - 1)
    if isinstance(node, ast.Call):
        passes = site.resolve(node.func) in _AS_THEIR_ARGUMENTS
        return passes and any(may_be_tensor(site, argument, steps - 1) for argument in node.args)
    if not isinstance(node, ast.Name) or site.value(node).kind is not ValueKind.UNKNOWN:
        return False
    sources = [*_assigned(site, node.id), *(_elements(site, node.id) if steps == _STEPS else ())]
    return any(may_be_tensor(site, source, steps - 1) for source in sources)


def _assigned(site: Site, name: str) -> Iterator[ast.expr]:
    for part in site.evaluator.scope.outline.assignments:
        if any(is_name(target, name) for target in part.targets):
            yield part.value


def _elements(site: Site, name: str) -> Iterator[ast.expr]:
    """What the elements are of lists that a loop goes through for `name`."""
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, ast.For):
            for target, iterated in _in_step(site, node.target, node.iter):
                if is_name(target, name) and isinstance(iterated, ast.Name):
                    lists = _assigned(site, iterated.id)
                    yield from (each.elt for each in lists if isinstance(each, (ast.ListComp, ast.GeneratorExp)))


def _in_step(site: Site, target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of a loop with what each of them goes through."""
    together = site.resolve(iterated.func) if isinstance(iterated, ast.Call) else None
    if not isinstance(iterated, ast.Call) or together is None or not isinstance(target, ast.Tuple):
        yield target, iterated
    elif together == "builtins.zip":
        for each, given in zip(target.elts, iterated.args, strict=False):
            yield from _in_step(site, each, given)
    elif together == "builtins.enumerate" and iterated.args:
        yield from _in_step(site, target.elts[-1], iterated.args[0])
