"""The tensors whose elements a statement reads, and a gradient may need."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.scope import SCOPES, dotted

_SIZES = (aliasing.PYTHON_RESULTS - aliasing.READS_ELEMENTS) | {"isinstance", "hasattr", "len", "type", "id"}
"""What tells of a tensor and reads none of its elements."""
_OF_NO_GRADIENT = frozenset("argmax argmin argsort bincount bucketize count_nonzero nonzero searchsorted".split())


def elements_read(node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes whose elements are read; not what is written, or only named anew."""
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) is not None:
        stored = not isinstance(node.ctx, ast.Load)
        if not stored and not (isinstance(node, ast.Attribute) and node.attr in aliasing.WITHOUT_MEMORY):
            yield node
        return
    if isinstance(node, SCOPES) or (isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot))):
        return
    if _is_without_gradient(node):
        return
    left_out: list[ast.AST] = []
    if isinstance(node, (ast.Assign, ast.Return)):
        left_out = [node.value] if node.value is not None and dotted(node.value) is not None else []
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        left_out = [node.value]
    elif isinstance(node, ast.Attribute) and node.attr in aliasing.WITHOUT_MEMORY:
        return
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        node = node.value  # `self.count.add_(1)` reads what it is given
        left_out = [node.func] if node.func.attr.endswith("_") else []  # type: ignore[attr-defined]
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _SIZES:
            return
        if isinstance(called, ast.Attribute) and called not in left_out:
            yield from elements_read(called.value)
        left_out.append(called)
    for part in ast.iter_child_nodes(node):
        if part not in left_out:
            yield from elements_read(part)


def _is_without_gradient(node: ast.AST) -> bool:
    """True for `x.argmin(-1)` and `x.max(-1).indices`: no gradient needs what integers are computed of."""
    if isinstance(node, ast.Attribute):
        return node.attr == "indices"
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_NO_GRADIENT
