"""Statements that bind names, count, and read masks, as GM401 asks for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import element_pairs, is_literal, is_name, only_target, rebinds
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import number_of


def is_read_in(loop: ast.For, name: str) -> bool:
    """True where a loop reads or binds a name elsewhere than to count with it."""
    counting = {id(part) for each in walk(loop) if _counts(each, name) for part in walk(each)}
    return any(is_name(part, name) and id(part) not in counting for part in walk(loop))


def _counts(node: ast.AST, name: str) -> bool:
    """True for `n = n + 1` and `n += 1`."""
    if isinstance(node, ast.AugAssign):
        return is_name(node.target, name) and is_literal(node.value, 1)
    plain = is_name(only_target(node), name)
    return plain and isinstance(node.value, ast.BinOp) and is_literal(node.value.right, 1)  # type: ignore[attr-defined]


def read_target(node: ast.AugAssign) -> ast.expr:
    """What an augmented assignment to a name reads, as an expression."""
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    return ast.copy_location(ast.Name(name, ast.Load()), node.target)


def assignments(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds, each with what it gets; nothing for another form of assignment."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, ast.copy_location(ast.BinOp(read_target(node), node.op, node.value), node)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    pairs = element_pairs(node.targets[0], node.value)
    found = [(each.id, given) for each, given in pairs if isinstance(each, ast.Name)]
    if len(found) == len(pairs):
        yield from found


def counted(site: Site, node: ast.expr) -> str | None:
    """`mask` for `mask.sum().item()`."""
    tensor = number_of(site, node)
    if isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and not (tensor.args or tensor.keywords):
        mask = tensor.func.value
        if tensor.func.attr == "sum" and isinstance(mask, ast.Name) and site.value(mask).dtype == BOOL:
            return mask.id
    return None


def counted_up_to(site: Site, node: ast.For) -> dict[str, str]:
    """`i` and `n` for a loop over `range(n)` that binds `i` itself alone."""
    call, name = node.iter, node.target.id if isinstance(node.target, ast.Name) else ""
    plain = isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords
    if not plain or not isinstance(call, ast.Call) or site.resolve(call.func) != "builtins.range":
        return {}
    bound = any(rebinds(each, name) for each in node.body)
    stop = call.args[0]
    return {} if bound or not isinstance(stop, (ast.Constant, ast.Name, ast.Attribute)) else {name: site.text(stop)}
