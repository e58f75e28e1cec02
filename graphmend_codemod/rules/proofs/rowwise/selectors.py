"""What selects rows: masks, and the indices of their true elements."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.rules.framework.site import Site

_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Selection(NamedTuple):
    """`base[mask]`, with `more` whole dimensions behind the mask, or `base.masked_select(mask)`, `by_element`."""

    base: ast.expr
    mask: ast.expr
    more: int = 0
    by_element: bool = False


def selection(node: ast.AST) -> Selection | None:
    """The rows that `node` selects, if what selects them is a mask; None for anything else."""
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if parts and _may_be_mask(parts[0]) and all(map(is_whole, parts[1:])):
            return Selection(node.value, parts[0], len(parts) - 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "masked_select":
        given = [node.func.value, *node.args][-2:]
        if len(node.args) in {1, 2} and not node.keywords and _may_be_mask(given[1]):
            return Selection(given[0], given[1], by_element=True)
    return None


def is_plain(selection: Selection, reduction: str) -> bool:
    """True for `x[mask].mean()` and `f(x).masked_select(mask).sum()`, which `torch.where` gives without a proof."""
    named = dotted(selection.base) is not None or (selection.by_element and reduction == "sum")
    return named and dotted(selection.mask) is not None


def masked_by(node: ast.AST) -> ast.expr | None:
    """What selects rows in `x[mask]`, `x[mask, :]`, `x[y > 0]`, if it is a mask."""
    found = selection(node)
    return None if found is None else found.mask


def _may_be_mask(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) or is_expression(node)


def is_expression(mask: ast.expr) -> bool:
    """True for `x > 0`, `~mask` and `a & b`, which give the same wherever they are evaluated."""
    if isinstance(mask, ast.UnaryOp):
        return isinstance(mask.op, ast.Invert) and _may_be_mask(mask.operand)
    if isinstance(mask, ast.BinOp):
        return isinstance(mask.op, (ast.BitAnd, ast.BitOr)) and all(map(_may_be_mask, (mask.left, mask.right)))
    if not isinstance(mask, ast.Compare) or len(mask.ops) > 1 or not isinstance(mask.ops[0], _ORDERS):
        return False
    number = mask.comparators[0]
    number = number.operand if isinstance(number, ast.UnaryOp) else number
    return isinstance(mask.left, (ast.Name, ast.Attribute)) and isinstance(
        number, (ast.Constant, ast.Name, ast.Attribute)
    )


def where_of(site: Site, node: ast.expr) -> tuple[ast.expr, int | None] | None:
    """The mask of `torch.where(mask)` and the number that a subscript takes of it, None where it takes none."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        inner = where_of(site, node.value)
        return None if inner is None or inner[1] is not None else (inner[0], node.slice.value)
    if not isinstance(node, ast.Call):
        return None
    qualified = site.resolve(node.func)
    words = {word.arg: word.value for word in node.keywords}
    as_tuple = words.pop("as_tuple", None)
    if qualified == "torch.where" and len(node.args) == 1 and not words:
        return node.args[0], None
    mask: ast.expr | None = None
    if qualified == "torch.nonzero" and len(node.args) == 1:
        mask = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "nonzero" and qualified is None and not node.args:
        mask = node.func.value
    elif isinstance(node.func, ast.Attribute) and node.func.attr in {"squeeze", "flatten", "view", "reshape"}:
        inner = where_of(site, node.func.value)
        return (inner[0], 0) if inner is not None and inner[1] == -1 else None
    if mask is None or words:
        return None
    return mask, None if isinstance(as_tuple, ast.Constant) and as_tuple.value is True else -1


def bound_in(node: ast.AST) -> set[str]:
    """Local names that a statement binds."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}


def is_whole(node: ast.expr) -> bool:
    """True for `:`."""
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None
