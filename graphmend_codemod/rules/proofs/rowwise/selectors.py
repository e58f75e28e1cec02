"""What selects rows: masks, and the indices of their true elements."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.rules.framework.site import Site


def masked_by(node: ast.AST) -> ast.expr | None:
    """The name or attribute that chooses rows in `x[mask]`, `x[mask, :]`, if it is a mask."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = all(map(is_whole, parts[1:]))
    return parts[0] if parts and plain and isinstance(parts[0], (ast.Name, ast.Attribute)) else None


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
