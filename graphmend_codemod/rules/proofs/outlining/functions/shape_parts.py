"""What statements bind and fill, and expressions with others in the place of their parts: what shapes are cut from."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_name, is_not
from graphmend_codemod.analysis.scope import FunctionNode, walk
from graphmend_codemod.rules.framework.site import Site

CHOOSE = torch_api.name_set("nonzero argwhere unique unique_consecutive masked_select item tolist numpy")
READ_DATA = CHOOSE | torch_api.name_set("bincount repeat_interleave one_hot histc")
"""Operators whose results have sizes that data decides, or that give Python values."""
_NUMBERS = frozenset(f"builtins.{each}" for each in ("int", "float", "bool", "max", "min"))
_OF_TENSORS = torch_api.RETURNS_TENSOR | frozenset(torch_api.PYTHON_METHODS)


def only_in_place(node: ast.stmt, name: str) -> bool:
    """True where a statement binds a name by `x += y` alone."""
    targets = {id(part.target) for part in walk(node) if isinstance(part, ast.AugAssign)}
    stores = [part for part in walk(node) if is_name(part, name) and isinstance(part.ctx, ast.Store)]
    return all(id(part) in targets for part in stores)


def names_filled(node: ast.stmt) -> set[str]:
    """Names of what a statement calls a method of, or writes an element of."""
    return _written_or(node, [part.value for part in walk(node) if isinstance(part, ast.Attribute)])


def names_changed(node: ast.stmt) -> set[str]:
    """Names of what a statement writes an element of, or calls a method of that no tensor has (`found.append(x)`)."""
    called = [part.func for part in walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    changed = [part.value for part in called if not part.attr.endswith("_") and part.attr not in _OF_TENSORS]
    return _written_or(node, changed)


def _written_or(node: ast.stmt, others: list[ast.expr]) -> set[str]:
    """The names of what a statement writes an element of, and among others."""
    parts = [part for part in walk(node) if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load)]
    return {each.id for each in (*others, *(part.value for part in parts)) if isinstance(each, ast.Name)}


def reads_data(site: Site, node: ast.expr) -> bool:
    """True for `mask.sum().item() < 3`: the number is one of Python, but no tensor without data has it."""
    calls = [part for part in walk(node) if isinstance(part, ast.Call)]
    return any(
        getattr(each.func, "attr", "") in CHOOSE
        or (site.resolve(each.func) in _NUMBERS and not all(site.value(given).is_python for given in each.args))
        for each in calls
    )


def asks_tensor(site: Site, node: ast.AST) -> bool:
    """True for what may ask a tensor for its truth, which none without data has: `x.any() and y`, `not x`,
    `0 < x < 1`, `a if x > 0 else b`, `x in found`. A name of unknown kind counts as none: the header asks for that."""
    asked = (
        each for each in _asked_for_truth(node) if not isinstance(each, (ast.BoolOp, ast.IfExp)) and not is_not(each)
    )
    return any(
        site.value(each).is_tensor or not (site.value(each).is_python or isinstance(each, (ast.Name, ast.Attribute)))
        for each in asked
    )


def _asked_for_truth(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp):
        return node.values[:-1]
    if is_not(node):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    searches = isinstance(node, ast.Compare) and any(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops)
    chained = isinstance(node, ast.Compare) and len(node.ops) > 1
    return [node.left, *node.comparators] if searches or chained else []  # type: ignore[attr-defined]


def head_of(node: ast.stmt) -> ast.AST:
    return getattr(node, "test", None) or getattr(node, "iter", None) or node


def assignments_in(function: FunctionNode) -> list[ast.Assign]:
    return [part for part in walk(function) if isinstance(part, ast.Assign)]


def one_element(node: ast.expr) -> ast.expr:
    """The first element of a tensor, in one dimension."""
    return ast.parse(f"({ast.unparse(node)}).flatten()[:1]", mode="eval").body
