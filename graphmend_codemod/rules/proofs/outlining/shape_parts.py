"""What statements bind and fill, and expressions with others in the place of their parts: what shapes are cut from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from graphmend_codemod.analysis.patterns import is_name, stored_names
from graphmend_codemod.analysis.scope import FunctionNode, walk


def names_bound(node: ast.stmt) -> set[str]:
    return stored_names(walk(node))


def rebuilt(node: Any, instead: Mapping[int, ast.expr]) -> Any:
    """A copy of an expression with other parts in the place of some, by identity."""
    if isinstance(node, list):
        return [rebuilt(each, instead) for each in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: rebuilt(value, instead) for name, value in ast.iter_fields(node)}
    return instead.get(id(node)) or type(node)(**fields)


def only_in_place(node: ast.stmt, name: str) -> bool:
    """True where a statement binds a name by `x += y` alone."""
    targets = {id(part.target) for part in walk(node) if isinstance(part, ast.AugAssign)}
    stores = [part for part in walk(node) if is_name(part, name) and isinstance(part.ctx, ast.Store)]
    return all(id(part) in targets for part in stores)


def names_filled(node: ast.stmt) -> set[str]:
    """Names of what a statement calls a method of, or writes an element of."""
    owners = [part.value for part in walk(node) if isinstance(part, ast.Attribute)]
    owners += [
        part.value for part in walk(node) if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load)
    ]
    return {each.id for each in owners if isinstance(each, ast.Name)}


def is_container(node: ast.expr) -> bool:
    """True for what makes a list, dict or set of Python."""
    made = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    if isinstance(node, ast.BinOp):
        return is_container(node.left) or is_container(node.right)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, made) or (isinstance(called, ast.Name) and called.id in {"list", "dict", "set", "sorted"})


def head_of(node: ast.stmt) -> ast.AST:
    return getattr(node, "test", None) or getattr(node, "iter", None) or node


def assignments_in(function: FunctionNode) -> list[ast.Assign]:
    return [part for part in walk(function) if isinstance(part, ast.Assign)]


def one_element(node: ast.expr) -> ast.expr:
    """The first element of a tensor, in one dimension."""
    return ast.parse(f"({ast.unparse(node)}).flatten()[:1]", mode="eval").body
