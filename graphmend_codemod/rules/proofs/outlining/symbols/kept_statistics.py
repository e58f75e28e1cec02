"""Numbers that code only keeps and computes with: statistics for a log, a mean that an attribute holds.

A graph may have a number with a fraction as a symbol only where nothing tests it and nothing makes a size of it: torch
2.13 ends compilation with an error there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import counted, is_attribute, owner_of
from graphmend_codemod.analysis.scope import parents_in, walk
from graphmend_codemod.rules.framework.site import Site

_COMPUTES = frozenset({"builtins.float", "builtins.abs"})  # symbols know no nan: `max(nan, 1.0)` would be 1.0
_KEEPS = frozenset("append update setdefault".split())
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class _Part(NamedTuple):
    """A part of the code that is a number, or with `boxed` a dict that has it under a name."""

    node: ast.AST
    boxed: bool = False


def only_kept(site: Site, nodes: Collection[ast.expr]) -> bool:
    """True where the numbers that some nodes of a function read are put under a name, into a dict, a list of the
    function or an attribute that the module does not read, or are computed with, and nothing else gets them.

    Callers get them in a dict alone: a number that is returned by itself is likely to be tested.
    """
    function = site.evaluator.scope.node
    above = parents_in(function)
    names = [part for part in walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    todo, seen = [_Part(node) for node in nodes], set[tuple[str, bool]]()
    while todo:
        held = _held(site, todo.pop(), above)
        if held is None:
            return False
        for name, boxed in held - seen:
            todo += [_Part(part, boxed) for part in names if part.id == name]
        seen |= held
    shared = {
        name for part in ast.walk(function) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names
    }
    return shared.isdisjoint(name for name, _ in seen)


def _held(site: Site, part: _Part, above: dict[int, ast.AST]) -> set[tuple[str, bool]] | None:
    """The names that hold a number or its dict from its statement on; None where something else gets it."""
    node, boxed = part
    while True:
        outer = above.get(id(node))
        if isinstance(outer, ast.Return):
            return set() if boxed else None
        if isinstance(outer, ast.Expr):
            return set()
        if isinstance(outer, ast.Assign):
            return _targets(site, outer.targets, boxed)
        if isinstance(outer, ast.Subscript) and not isinstance(outer.ctx, ast.Load):
            return set() if boxed and node is outer.value else None  # something else is put into the dict
        if isinstance(outer, ast.Attribute):
            return set() if boxed and outer.attr in _KEEPS else None
        if isinstance(outer, ast.BinOp) and site.value(outer).is_tensor:
            return set() if isinstance(outer.op, _OPERATORS) and not boxed else None
        if isinstance(outer, ast.Call) and (kept := _kept_by(site, outer, node)) is not None:
            return kept
        inside = _around(site, outer, node, boxed)
        if inside is None or outer is None:
            return None
        node, boxed = outer, inside


def _around(site: Site, outer: ast.AST | None, node: ast.AST, boxed: bool) -> bool | None:
    """Whether what stands around a number is a dict that has it; None where it is neither that nor a number."""
    if isinstance(outer, ast.Dict):
        return None if any(node is key for key in outer.keys) else True
    if isinstance(outer, (ast.Tuple, ast.keyword)):
        return boxed
    if isinstance(outer, ast.Call):
        called = site.resolve(outer.func)
        if called == "builtins.dict" and not outer.args:
            return True
        return False if called in _COMPUTES and not boxed and node in outer.args else None
    if isinstance(outer, ast.Subscript):
        named = isinstance(outer.slice, ast.Constant) and isinstance(outer.slice.value, str)
        return False if boxed and named and node is outer.value else None
    if isinstance(outer, ast.BinOp):
        return False if _is_plain(outer, node) and not boxed else None
    return False if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.USub) and not boxed else None


def _is_plain(sum_or_product: ast.BinOp, node: ast.AST) -> bool:
    """True where a constant or a size is the other operand: `n - n` and `0 * n` are 0 for symbols, whatever `n` is."""
    other = sum_or_product.right if node is sum_or_product.left else sum_or_product.left
    constant = isinstance(other, ast.Constant) and isinstance(other.value, (int, float)) and other.value != 0
    return isinstance(sum_or_product.op, _OPERATORS) and (constant or counted(other) is not None)


def _kept_by(site: Site, call: ast.Call, node: ast.AST) -> set[tuple[str, bool]] | None:
    """The list or dict of the function into which `losses.update(...)` puts what it is given, as a dict."""
    owner = owner_of(call)
    if not isinstance(owner, ast.Name) or node is call.func or site.resolve(call.func) is not None:
        return None
    local = owner.id in site.evaluator.scope.locals
    return {(owner.id, True)} if local and call.func.attr in _KEEPS else None  # type: ignore[attr-defined]


def _targets(site: Site, targets: Collection[ast.expr], boxed: bool) -> set[tuple[str, bool]] | None:
    """The names among targets; None for an attribute that the module reads, and for a place in anything but a dict."""
    found = set[tuple[str, bool]]()
    for target in targets:
        if isinstance(target, ast.Name):
            found.add((target.id, boxed))
        elif isinstance(target, ast.Subscript):
            named = isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
            if not (named and isinstance(target.value, ast.Name)):
                return None
            found.add((target.value.id, True))
        elif not is_attribute(target, site.evaluator.scope.self_name) or target.attr in _read(site):
            return None
    return found


def _read(site: Site) -> set[str]:
    """The attributes that any code of the module reads."""
    node = site.evaluator.scope.node
    return site.remembered("attributes read", node, lambda: set(_attributes(tree_of(site.source.text))), anywhere=True)


def _attributes(tree: ast.AST) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            yield part.attr
