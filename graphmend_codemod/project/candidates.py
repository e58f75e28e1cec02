"""Which tests and calls are worth a rule's time: a cheap look that may say yes too often and never no too often.

A test counts unless it is plainly decided by Python values: `x is None`, `isinstance`, shapes, dtypes, `self.training`,
values of a configuration, names that only ever hold such values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

LOG_METHODS = frozenset(
    {
        "critical", "debug", "error", "exception", "fatal", "info", "log", "print", "warn", "warning", "warning_advice",
        "warning_once", "warn_once", "info_once", "error_once", "debug_once", "warn_explicit", "rank_zero_warn",
        "rank_zero_info", "info_rank0", "warning_rank0", "deprecation_warning",
    }
)  # fmt: skip
_PYTHON_CALLS = frozenset(
    {"isinstance", "issubclass", "hasattr", "callable", "len", "is_compiling", "is_scripting", "is_tracing"}
)
_PYTHON_METHODS = frozenset(
    {
        "dim", "size", "ndimension", "numel", "nelement", "is_floating_point", "is_complex", "is_contiguous", "element_size",
        "get_device", "startswith", "endswith", "keys", "items", "is_grad_enabled", "is_compiling", "is_scripting",
        "is_tracing", "is_available", "is_torchdynamo_compiling", "is_autocast_enabled",
    }
)  # fmt: skip
_PYTHON_ATTRIBUTES = frozenset(
    {
        "shape",
        "dtype",
        "device",
        "ndim",
        "training",
        "requires_grad",
        "is_cuda",
        "is_sparse",
        "layout",
        "config",
        "__name__",
    }
)
_PYTHON_ANNOTATION_WORDS = frozenset(
    {"bool", "int", "str", "float", "Optional", "Union", "None", "typing", "Literal", "True", "False"}
)


def is_python_annotation(text: str) -> bool:
    """True for `bool`, `Optional[int]`, `str | None` and the like: never a tensor."""
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").replace(".", " ").split()
    return bool(words) and all(word in _PYTHON_ANNOTATION_WORDS for word in words)


def needs(node: ast.expr, names: list[str]) -> bool:
    """True when the value of `node` may come from a tensor whatever its names hold; otherwise adds the names to ask.

    Names of attributes are added as `self.NAME`.
    """
    todo = [node]
    while todo:
        node = todo.pop()
        kind = node.__class__
        if kind is ast.Constant:
            continue
        if kind is ast.Name:
            names.append(node.id)  # type: ignore[attr-defined]
        elif kind is ast.BoolOp:
            todo.extend(node.values)  # type: ignore[attr-defined]
        elif kind is ast.UnaryOp:
            todo.append(node.operand)  # type: ignore[attr-defined]
        elif kind is ast.Compare:
            todo.extend(_compared(node))  # type: ignore[arg-type]
        elif kind is ast.BinOp:
            todo += (node.left, node.right)  # type: ignore[attr-defined]
        elif kind is ast.IfExp:
            todo += (node.body, node.orelse)  # type: ignore[attr-defined]
        elif kind is ast.Tuple or kind is ast.List:
            todo.extend(node.elts)  # type: ignore[attr-defined]
        elif kind is ast.Subscript:
            todo.append(node.value)  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            if _attribute(node, names):  # type: ignore[arg-type]
                return True
        elif kind is ast.Call:
            if not _python_call(node):  # type: ignore[arg-type]
                return True
        elif kind is not ast.JoinedStr:
            return True
    return False


def _compared(node: ast.Compare) -> Iterable[ast.expr]:
    operator = node.ops[0].__class__
    if operator is ast.Is or operator is ast.IsNot:
        return ()
    sides = (node.left, *node.comparators)
    for side in sides:
        if side.__class__ is ast.Constant and isinstance(side.value, str):
            return ()
    return sides


def _attribute(node: ast.Attribute, names: list[str]) -> bool:
    inner: ast.expr = node
    while inner.__class__ is ast.Attribute:
        if inner.attr in _PYTHON_ATTRIBUTES:
            return False
        last, inner = inner, inner.value
    if inner.__class__ is ast.Name and inner.id == "config":
        return False
    if last is node and inner.__class__ is ast.Name and inner.id == "self":
        names.append(f"self.{node.attr}")
        return False
    return True


def _python_call(node: ast.Call) -> bool:
    function = node.func
    if function.__class__ is ast.Name:
        return function.id in _PYTHON_CALLS
    return function.__class__ is ast.Attribute and function.attr in _PYTHON_METHODS


def is_log_call(node: ast.Call) -> bool:
    """True for calls that look like logging, printing or warning."""
    function = node.func
    if function.__class__ is ast.Attribute:
        return function.attr in LOG_METHODS
    return function.__class__ is ast.Name and function.id in LOG_METHODS
