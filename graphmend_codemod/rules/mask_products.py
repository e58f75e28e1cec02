"""Products with a mask, `x = x * mask[:, None]`: what they multiply, and by what."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """`dtype = target.dtype; target = (target * factor).to(dtype)`."""

    target: ast.Name
    factor: ast.expr
    dtype: ast.Name | None


def product_of(body: list[ast.stmt]) -> Product | None:
    """The product that these statements make, if they do nothing else."""
    *before, last = body
    if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
        return None
    target, value = last.targets[0], last.value
    dtype: ast.Name | None = None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        if len(value.args) != 1 or value.keywords or not isinstance(value.args[0], ast.Name):
            return None
        dtype, value = value.args[0], value.func.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return None
    sides = [value.left, value.right]
    others = [each for each in sides if not (isinstance(each, ast.Name) and each.id == target.id)]
    if len(others) != 1:
        return None
    if any(dtype is None or ast.unparse(each) != f"{dtype.id} = {target.id}.dtype" for each in before):
        return None
    return Product(target, others[0], dtype)


def is_view(node: ast.expr, mask: str) -> bool:
    """True for the mask, parts of it, and the same with more dimensions: all ones where the mask is."""
    if isinstance(node, ast.Name):
        return node.id == mask
    if isinstance(node, ast.Call):
        function = node.func
        more = isinstance(function, ast.Attribute) and function.attr == "unsqueeze" and not node.keywords
        return more and isinstance(function, ast.Attribute) and is_view(function.value, mask)
    if not isinstance(node, ast.Subscript):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = all(
        isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value in (None, ...))
        for index in indices
    )
    called = any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Await)) for part in ast.walk(node.slice))
    return plain and not called and is_view(node.value, mask)
