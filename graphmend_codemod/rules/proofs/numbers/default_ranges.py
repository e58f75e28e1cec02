"""`if positions is None: positions = torch.arange(n)`: what is known of the numbers below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_none, same, stores_name
from graphmend_codemod.analysis.scope import FunctionNode, walk_in_layers, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.sizes.size_spellings import is_size


class Made(NamedTuple):
    """`if positions is None: ... positions = torch.arange(end)`."""

    name: str
    node: ast.If
    assignment: ast.Assign
    end: ast.expr


def asked_for_none(node: ast.If) -> str | None:
    """`x` for `if x is None`."""
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is) or not isinstance(test.left, ast.Name):
        return None
    other = test.comparators[0]
    return test.left.id if is_none(other) else None


def made_where_none(site: Site, node: ast.If) -> Made | None:
    """The range that a name gets where it is None, if nothing binds the name again or writes into the range."""
    name = asked_for_none(node)
    function, last = site.evaluator.scope.node, node.body[-1]
    if name is None or node.orelse or node not in function.body or not isinstance(last, ast.Assign):
        return None
    call = last.value
    if not isinstance(call, ast.Call) or site.resolve(call.func) != "torch.arange":
        return None
    if last.targets != [each for each in changes(function, name) if each.lineno > node.lineno]:
        return None
    if not 1 <= len(call.args) <= 2 or any(word.arg not in {"device"} for word in call.keywords):
        return None
    end = call.args[-1]
    if len(call.args) == 2 and not _counts_on(call.args[0], end):
        return None
    return Made(name, node, last, end) if _is_simple(end) and any(map(is_size, walk_in_layers(end))) else None


def _counts_on(start: ast.expr, end: ast.expr) -> bool:
    """True for `arange(0, n)` and `arange(a, a + n)`, whose last number is one below the end whatever `a` is."""
    if isinstance(start, ast.Constant):
        return type(start.value) is int
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Add):
        return False
    return same(start, end.left) or same(start, end.right)


def changes(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """Where a function binds a name, or writes into what it holds."""
    for part in walk_scope(function):
        if stores_name(part, name):
            yield part
        elif isinstance(part, (ast.Subscript, ast.Attribute)) and getattr(part.value, "id", "") == name:
            in_place = isinstance(part, ast.Attribute) and part.attr.endswith("_") and part.attr != "requires_grad_"
            if in_place or not isinstance(part.ctx, ast.Load):
                yield part


def _is_simple(node: ast.expr) -> bool:
    """True for names and sizes, and what is added to them: nothing that costs or has an effect."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Sub)) and _is_simple(node.left) and _is_simple(node.right)
    if isinstance(node, ast.Call):
        return is_size(node) and all(isinstance(argument, ast.Constant) for argument in node.args)
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return whole or is_size(node) or isinstance(node, ast.Name)
