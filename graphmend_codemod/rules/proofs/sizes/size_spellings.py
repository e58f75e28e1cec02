"""Sizes of tensors, as they are spelled."""

from __future__ import annotations

import ast


def is_size(node: ast.AST) -> bool:
    """True for one size of a tensor: `x.shape[1]`, `x.size(1)`."""
    if isinstance(node, ast.Subscript):
        return is_shape(node.value) and not isinstance(node.slice, (ast.Slice, ast.Tuple))
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    return called and len(node.args) + len(node.keywords) == 1  # type: ignore[attr-defined]


def is_shape(node: ast.AST) -> bool:
    """True for several of them: `x.shape`, `x.size()`, and slices of these."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_shape(node.value)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args and not node.keywords
    return isinstance(node, ast.Attribute) and node.attr == "shape"
