"""Numbers read out of tensors that keep their tensors in a comparison, and compare there as Python's numbers do.

torch compares in the dtype of the tensor: a uint8 with what is left of 300, half precision with inf in the place of
70000, float32 with the float32 next to 0.1. Python compares numbers.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_literal, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, INT64, Value
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.random_draws import draws_one

_COUNTING = frozenset({"argmax", "argmin", "count_nonzero"})
_HELD = range(128)
"""Numbers of every dtype that torch compares."""


class Compared(NamedTuple):
    """The text of a tensor that compares as its number does, and the trace-time condition for that, empty if none."""

    text: str
    asked: str


def compared(site: Site, inner: ast.expr, other: ast.expr, beside: ast.expr | None) -> Compared | None:
    """How the tensor `inner` compares with `other`, or with the tensor `beside` that `other` reads a number from.

    None where it cannot be said.
    """
    text, value = site.operand(inner), site.value(inner)
    if written_integer(other) in _HELD or _is_whole(value, inner) or (value.is_floating and is_literal(other, 0)):
        return Compared(text, "")
    if beside is not None and _is_same_dtype(value, site.value(beside)):
        return Compared(text, "")
    if draws_one(site, inner):
        device = next((word.value for word in getattr(inner, "keywords", ()) if word.arg == "device"), None)
        named = isinstance(device, ast.Attribute) and device.attr == "device"
        if device is not None and not named:
            return None
        return Compared(f"{text}.double()", "" if device is None else f'{site.text(device)}.type != "mps"')
    root = _root(site, inner)
    return None if root is None else Compared(f"{text}.double()", f'{site.text(root)}.device.type != "mps"')


def _is_whole(value: Value, inner: ast.expr) -> bool:
    """True for int64, which float64 does not hold, and for bool."""
    counted = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _COUNTING
    return counted or value.dtype == BOOL or (value.dtype == INT64 and not value.hint)


def _is_same_dtype(one: Value, other: Value) -> bool:
    return one.dtype is not None and one.dtype == other.dtype and not (one.hint or other.hint)


def _root(site: Site, node: ast.expr) -> ast.expr | None:
    """The name or attribute of a tensor that a tensor is computed from, and whose device it is on."""
    while dotted(node) is None:
        if isinstance(node, ast.Call) and torch_function(site.resolve(node.func)) is not None and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, (ast.BinOp, ast.Compare)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
            node = next((each for each in sides if site.value(each).is_tensor), node.left)
        else:
            return None
    return node
