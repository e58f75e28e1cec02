"""Whether a tensor that a constructor keeps as an attribute stays what it was made, as far as the module's text tells.

A loop over `buffers()` that writes is not seen, nor what other code does with `setattr` and a name that it computes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from graphmend_codemod.analysis.patterns import assigned_pairs, is_attribute, is_literal, last_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short

_ALL_BUFFERS = frozenset({"buffers", "named_buffers", "_buffers"})
_SETS = frozenset({"register_buffer", "setattr", "__setattr__", "delattr"})


def changes(name: str, known_in: Iterable[ast.AST], owner: ast.ClassDef, tree: ast.Module) -> Iterator[str]:
    """Reasons why the attribute may not stay what these statements of the constructor made it."""
    known = {id(part) for statement in known_in for part in walk(statement)}
    others = foreign(owner, tree)
    for part in _may_change(tree):
        if isinstance(part, ast.Attribute):
            own = id(part) not in known and not (is_attribute(part, "self") and id(part) in others)
            why = _by_attribute(part, name, own=own)
        elif isinstance(part, ast.Subscript):
            why = "is assigned" if _is_named(part.value, name) and not isinstance(part.ctx, ast.Load) else None
        else:
            why = "assigns it again" if id(part) not in known | others and _may_set(part, name) else None
        if why is not None:
            yield f"`{short(part)}` {why}"
    for attribute, where, node in _written_by_name(tree):
        if attribute == name and id(where) not in others:
            yield f"`{short(node)}` changes it in place"


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _by_attribute(part: ast.Attribute, name: str, *, own: bool) -> str | None:
    """What an attribute does to the one of this name; `own` where it may be one of the same class."""
    if part.attr in _ALL_BUFFERS:
        return "exposes all buffers"
    if part.attr == name and own and not isinstance(part.ctx, ast.Load):
        return "is assigned again"
    in_place = part.attr == "data" or (part.attr.endswith("_") and part.attr[0] != "_")
    return "changes it in place" if in_place and _is_named(part.value, name) else None


def _may_set(part: ast.AST, name: str) -> bool:
    """True for `setattr(module, name, value)`, also with a name that is computed."""
    if not isinstance(part, ast.Call) or last_name(part.func) not in _SETS:
        return False
    texts = any(is_literal(each, name) for each in part.args)
    return texts or not all(isinstance(each, ast.Constant) for each in _named(part))


@lru_cache(maxsize=2)
def _may_change(tree: ast.Module) -> list[ast.AST]:
    """The nodes of a module that may change an attribute, whatever its name is."""

    def may(part: ast.AST) -> bool:
        if isinstance(part, ast.Attribute):
            inner = isinstance(part.value, ast.Attribute) and (part.attr == "data" or part.attr.endswith("_"))
            return inner or part.attr in _ALL_BUFFERS or not isinstance(part.ctx, ast.Load)
        if isinstance(part, ast.Subscript):
            return isinstance(part.value, ast.Attribute) and not isinstance(part.ctx, ast.Load)
        return isinstance(part, ast.Call) and last_name(part.func) in _SETS

    return [part for part in walk(tree) if may(part)]


def _named(call: ast.Call) -> list[ast.expr]:
    """The name that `setattr(module, name, value)` and `module.register_buffer(name, value)` are given."""
    first = 1 if isinstance(call.func, ast.Name) else 0
    return [*call.args[first : first + 1], *(word.value for word in call.keywords if word.arg == "name")]


@lru_cache(maxsize=2)
def _written_by_name(tree: ast.Module) -> list[tuple[str, ast.AST, ast.AST]]:
    """Attributes whose tensors are written into by another name, or as `out`: each with the nodes that say so."""
    found: list[tuple[str, ast.AST, ast.AST]] = []
    for function in (part for part in walk(tree) if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))):
        names: dict[str, list[ast.Attribute]] = {}
        for part in walk(function):
            for target, value in assigned_pairs(part):
                if isinstance(value, ast.Attribute) and isinstance(target, ast.Name):
                    names.setdefault(target.id, []).append(value)
        for part in walk(function):
            written = _written(part)
            held = names.get(written.id, ()) if isinstance(written, ast.Name) else (written,)
            found += [(each.attr, each, part) for each in held if isinstance(each, ast.Attribute)]
    return found


def _written(node: ast.AST) -> ast.expr | None:
    """The name that `w += 1`, `w[0] = 1` and `w.add_(1)` write into, and what `f(x, out=w)` does."""
    if isinstance(node, ast.keyword):
        return node.value if node.arg == "out" else None
    target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        target = node.value
    if isinstance(node, ast.Attribute) and (node.attr == "data" or (node.attr.endswith("_") and node.attr[0] != "_")):
        target = node.value
    return target if isinstance(target, ast.Name) else None


@lru_cache(maxsize=8)
def foreign(owner: ast.ClassDef, tree: ast.Module) -> frozenset[int]:
    """The nodes inside of classes that neither inherit from the class, as their bases tell, nor it from them, by id."""
    others = (each for each in strangers(owner, tree) if owner in strangers(each, tree))
    return frozenset(id(part) for other in others for part in walk(other))


def strangers(owner: ast.ClassDef, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of the module that are neither the class nor, as far as their bases tell, subclasses of it."""
    related = {owner.name}
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    for _ in classes:
        for each in classes:
            bases = {part.id for base in each.bases for part in walk(base) if isinstance(part, ast.Name)}
            if not related.isdisjoint(bases):
                related.add(each.name)
    return [each for each in classes if each.name not in related]
