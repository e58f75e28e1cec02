"""Tensors of an instance that are looked up by their name: `self._buffers["scale"]`, `getattr(self, "scale")`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import dotted

ANY_BUFFER = "self.?buffer"
"""Stands for all buffers of the instance: which of them is meant, no name tells."""
_TABLES = frozenset({"_buffers", "_parameters", "_modules"})
_LOOK_UP = frozenset({"get_buffer", "get_parameter", "get_submodule"})
_DEEPEST = 4


def held_name(node: ast.AST) -> str | None:
    """`self.scale` for what looks that attribute up by its name; ANY_BUFFER where the name is computed; else None."""
    if isinstance(node, ast.Subscript):
        table = _table(node.value)
        return None if table is None else _named(table, node.slice)
    if isinstance(node, ast.Call):
        return _looked_up(node)
    return ANY_BUFFER if _table(node) == "self" and getattr(node, "attr", "") != "_modules" else None


def _looked_up(call: ast.Call) -> str | None:
    function = call.func
    if is_name(function, "getattr") and len(call.args) > 1:
        owner = dotted(call.args[0])
        return None if owner is None else _named(owner, call.args[1])
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr in _LOOK_UP and call.args:
        owner = dotted(function.value)
        return None if owner is None else _named(owner, call.args[0])
    if function.attr in {"get", "pop"} and call.args:
        table = _table(function.value)
        return None if table is None else _named(table, call.args[0])
    return None


def _named(owner: str, name: ast.expr) -> str | None:
    if isinstance(name, ast.Constant):
        return f"{owner}.{name.value}" if isinstance(name.value, str) else None
    return ANY_BUFFER if owner == "self" else None


def _table(node: ast.AST) -> str | None:
    """`self` for `self._buffers`, `vars(self)` and `self.__dict__["_buffers"]`; None for what is no table of one."""
    if isinstance(node, ast.Attribute) and (node.attr in _TABLES or node.attr == "__dict__"):
        return dotted(node.value)
    if isinstance(node, ast.Call):
        plain = is_name(node.func, "vars") and len(node.args) == 1
        state = isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict" and not node.args
        return dotted(node.args[0] if plain else node.func.value) if plain or state else None  # type: ignore[attr-defined]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in _TABLES:
        return _table(node.value)
    return None


def led_from(root: str, names: Iterable[str]) -> set[str]:
    """The names that lead from `root`, as deep as `self.below.below.scale`: what holds itself has no end of them."""
    parts = (name.split(".")[:_DEEPEST] for name in names)
    return {".".join(each) for each in parts if each[0] == root}
