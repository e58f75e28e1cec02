"""Numbers read out of tensors that keep their tensors in a comparison, and compare there as Python's numbers do.

torch compares in the dtype of the tensor: a uint8 with what is left of 300, half precision with inf in the place of
70000, float32 with the float32 next to 0.1. Python compares numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.hazards import short
from graphmend_codemod.analysis.patterns import is_literal, item_of, sides_of, written_integer, written_number
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, INT64, Origin, Value
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.random_draws import draws_one
from graphmend_codemod.rules.proofs.number_read import plain_number

_COUNTING = frozenset({"argmax", "argmin", "count_nonzero"})
_OF_NUMBERS = frozenset(f"builtins.{each}" for each in ("abs", "bool", "float", "int", "max", "min", "round"))
_HELD = range(128)
"""Numbers of every dtype that torch compares."""
_EXACT = 2**53
"""Below this one float64 holds all integers, and rounds no other one to them."""


class Compared(NamedTuple):
    """The text of a tensor that compares as its number does, and the trace-time conditions for that."""

    text: str
    asked: tuple[str, ...] = ()


def compared(site: Site, inner: ast.expr, other: ast.expr, beside: ast.expr | None) -> Compared | str:
    """How the tensor `inner` compares with `other`, or with the tensor `beside` that `other` reads a number from.

    A reason where it cannot be said.
    """
    text, value = site.operand(inner), site.value(inner)
    if beside is not None:
        return _of_two(site, inner, beside)
    if (reason := reads_unknown(other)) is not None:
        return reason
    if written_integer(other) in _HELD or (value.is_floating and is_literal(other, 0)):
        return Compared(text)
    if _is_whole(value, inner):
        return _of_integer(site, inner, other)
    ranged = _in_range(site, other)
    if isinstance(ranged, str):
        return ranged
    if draws_one(site, inner):
        device = next((word.value for word in getattr(inner, "keywords", ()) if word.arg == "device"), None)
        if device is not None and not (isinstance(device, ast.Attribute) and device.attr == "device"):
            return _unasked(inner)
        asked = () if device is None else (f'{site.text(device)}.type != "mps"',)
        return Compared(f"{text}.double()", asked)
    root = _root(site, inner)
    if root is None:
        return _unasked(inner)
    real = (
        ()
        if (value.is_floating or value.dtype == INT64) and not value.hint
        else (f"not {site.operand(root)}.is_complex()",)
    )
    return Compared(f"{text}.double()", (f'{site.operand(root)}.device.type != "mps"', *real, *ranged))


def _of_two(site: Site, inner: ast.expr, beside: ast.expr) -> Compared:
    """Tensors of one dtype compare as their numbers do, whatever it is."""
    text, value, other = site.operand(inner), site.value(inner), site.value(beside)
    if _is_same_dtype(value, other) or all(_is_whole(*each) for each in ((value, inner), (other, beside))):
        return Compared(text)
    names = sorted(f"{site.operand(each)}.dtype" for each in (inner, beside))
    return Compared(text, (" == ".join(names),))


def _of_integer(site: Site, inner: ast.expr, other: ast.expr) -> Compared | str:
    """An integer compares as it is with one of Python, and in float64 with what else int64 holds exactly."""
    text, value = site.operand(inner), site.value(other)
    number = written_number(other)
    if isinstance(other, ast.Constant) and isinstance(other.value, bool):
        return Compared(text)
    if type(number) is int:
        return Compared(text) if abs(number) < 2**63 else f"`{short(other)}` is larger than all of `int64`"
    if value.is_python and value.origin is Origin.SHAPE:
        return Compared(text)
    return Compared(text, (f"isinstance({site.text(other)}, int)",))


def _in_range(site: Site, other: ast.expr) -> tuple[str, ...] | str:
    """The conditions under which float64 holds a number of Python, or why it may not."""
    number, value = written_number(other), site.value(other)
    if number is not None and not abs(number) < _EXACT:
        return f"float64 does not hold all numbers next to `{short(other)}`"
    if number is not None or plain_number(site, other) is not None:
        return ()
    if value.is_python and value.origin is Origin.SHAPE:
        return ()
    asked = [f"isinstance({each}, (int, float))" for each in _numbers(site, other)]
    return (*asked, f"-(2**53) < {site.operand(other)} < 2**53")


def reads_unknown(other: ast.expr) -> str | None:
    """The reason where a number is read out of something that is not known for a tensor: `n.item()`."""
    found = next((part for part in walk(other) if item_of(part) is not None), None)
    hint = "cannot be asked while tracing; annotate what it is called on: `x: torch.Tensor`"
    return None if found is None else f"`{short(found)}` {hint}"


def _numbers(site: Site, other: ast.expr) -> Iterator[str]:
    """What has to be numbers of Python for an expression to be one, and to read no tensor: `n` for `float(n) + 1`."""
    calls = [part for part in walk(other) if isinstance(part, ast.Call)]
    if not calls or not all(site.resolve(each.func) in _OF_NUMBERS for each in calls):
        yield site.text(other)
        return
    for call in calls:
        yield from (site.text(each) for each in call.args if not isinstance(each, (ast.Call, ast.Constant)))


def _unasked(inner: ast.expr) -> str:
    return f"`{short(inner)}` compares in its dtype, and its device cannot be asked"


def _is_whole(value: Value, inner: ast.expr) -> bool:
    """True for what holds int64, which float64 does not hold, or bools."""
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
            node = next((each for each in sides_of(node) if site.value(each).is_tensor), node.left)
        else:
            return None
    return node
