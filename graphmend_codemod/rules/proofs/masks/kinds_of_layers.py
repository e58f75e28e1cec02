"""A mask that a function chooses for each layer by its kind, and the classes of layers that are made for a kind.

The choice may be a look-up, `masks = {"scan": mask, "attention": other}` and `masks[layer.kind]`, or a chain of tests
of which each branch assigns the same name. What is read of a constructor here is a guess, for the compile path asks
for the class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import (
    is_attribute,
    is_name,
    mentions,
    only_target,
    reads_name,
    stores_name,
)
from graphmend_codemod.analysis.scope import dotted, of_kind, parameter_names, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.value_flow import stores_of
from graphmend_codemod.rules.proofs.masks.layer_choices import LayerChoice, live


class ByKind(NamedTuple):
    """`target` holds the mask in the rounds for which `test` is true, from `node` on."""

    target: str
    node: ast.stmt
    test: ast.expr


def by_kind(function: Definition, node: ast.Assign, name: str) -> list[ByKind]:
    """What gets the mask for a kind of layers, where an assignment puts it into a table or stands in a branch."""
    if isinstance(node.value, ast.Dict):
        return _looked_up(function, node, name)
    branch = _branched(function, node, name)
    return [branch] if branch is not None else []


def _looked_up(function: Definition, node: ast.Assign, name: str) -> list[ByKind]:
    """What gets the mask out of the table that a statement makes; empty where that is unclear."""
    made, table = node.value, only_target(node)
    if not isinstance(made, ast.Dict) or not isinstance(table, ast.Name) or is_name(table, name):
        return []
    keys = [each.value if isinstance(each, ast.Constant) else None for each in made.keys]
    given = [number for number, each in enumerate(made.values) if is_name(each, name)]
    plain = all(isinstance(each, str) for each in keys) and len(set(keys)) == len(keys)
    others = [each for number, each in enumerate(made.values) if number not in given]
    if not plain or len(given) != 1 or any(mentions(each, name) for each in others):
        return []
    if len(bindings(function, table.id)) != 1 or table.id in parameter_names(function.node):
        return []
    key = made.keys[given[0]]
    assert key is not None
    uses = [part for part in walk(function.node) if isinstance(part, ast.Name) and part.id == table.id]
    found = list(_elements(function, table.id, key))
    return found if len(found) == len(uses) - 1 else []


def _elements(function: Definition, table: str, key: ast.expr) -> Iterator[ByKind]:
    """`target = table[index]`; nothing else that reads the table is among them."""
    for node in walk_scope(function.node):
        target = only_target(node)
        taken = node.value if isinstance(node, ast.Assign) and isinstance(target, ast.Name) else None
        if not isinstance(taken, ast.Subscript) or not is_name(taken.value, table) or mentions(taken.slice, table):
            continue
        assert isinstance(target, ast.Name)
        assert isinstance(node, ast.Assign)
        if len(bindings(function, target.id)) != 1 or target.id in parameter_names(function.node):
            continue
        yield ByKind(target.id, node, ast.Compare(left=taken.slice, ops=[ast.Eq()], comparators=[key]))


def _branched(function: Definition, node: ast.Assign, name: str) -> ByKind | None:
    """The same for `target = mask` in one branch of tests, where each other branch gives the target something else."""
    target = only_target(node)
    if not isinstance(target, ast.Name) or not is_name(node.value, name) or target.id == name:
        return None
    tests = sorted(of_kind(walk_scope(function.node), ast.If), key=lambda each: each.lineno)
    outer = next((each for each in tests if any(body[:1] == [node] for _, body in _branches(each))), None)
    branches = list(_branches(outer)) if outer is not None else []
    given = [body[0] for _, body in branches if len(body) == 1 and is_name(only_target(body[0]), target.id)]
    bound = bindings(function, target.id)
    if outer is None or len(given) != len(branches) or target.id in parameter_names(function.node):
        return None
    others = [*(test for test, _ in branches if test is not None), *(each for each in given if each is not node)]
    if len(bound) != len(given) or any(mentions(each, name) for each in others):
        return None
    test = next(test for test, body in branches if body[0] is node)
    return ByKind(target.id, outer, test) if test is not None else None


def _branches(node: ast.If) -> Iterator[tuple[ast.expr | None, list[ast.stmt]]]:
    """The branches of a chain of tests; without an `else` the last one is empty."""
    yield node.test, node.body
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _branches(node.orelse[0])
    else:
        yield None, node.orelse


def class_for(calls: ModuleCalls, owner: str, attribute: str, own: LayerChoice) -> str | None:
    """The class of the module that the constructor makes for an attribute where the instance is of this kind.

    A guess: also of `TABLE[kind](...)`, where the table is a dict of the module.
    """
    key = calls.method(owner, "__init__")
    if key is None or not own.attribute:
        return None
    made: set[str | None] = set()
    for node in live(calls.definitions[key].node.body, own, lambda _: False):
        if isinstance(node, ast.Assign) and any(is_attribute(each, "self", attribute) for each in node.targets):
            called = node.value.func if isinstance(node.value, ast.Call) else node.value
            made.add(_in_table(calls, called, own) if isinstance(called, ast.Subscript) else dotted(called))
    found = made.pop() if len(made) == 1 else None
    return found if found is not None and calls.class_named(found) else None


def _in_table(calls: ModuleCalls, node: ast.Subscript, own: LayerChoice) -> str | None:
    table = calls.top.table(node.value.id) if isinstance(node.value, ast.Name) else None
    for key, value in zip(table.keys, table.values, strict=True) if table is not None else ():
        if isinstance(key, ast.Constant) and repr(key.value) == own.value:
            return dotted(value)
    return None


def classes_of(calls: ModuleCalls, owner: str, attribute: str) -> Iterator[str]:
    """What a class calls for an attribute; where it is None, nothing can be called."""
    for value in (each.value for each in stores_of(calls, owner, attribute)):
        if not isinstance(value, ast.Constant):
            yield (dotted(value.func) if isinstance(value, ast.Call) else None) or "..."


def is_changed(node: ast.AST, attribute: str) -> bool:
    """True for `x.attribute.append(layer)` and `x.attribute[i] = layer`."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and getattr(node.value, "attr", "") == attribute
    changing = isinstance(node, ast.Attribute) and node.attr in {"append", "extend", "insert"}
    return changing and isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == attribute


def bindings(function: Definition, name: str) -> list[ast.Name]:
    """Where a function binds a name."""
    return [node for node in walk_scope(function.node) if stores_name(node, name)]


def start_of(function: Definition, node: ast.AST) -> int:
    """The line of a node, or of the outermost loop around it."""
    line: int = node.lineno  # type: ignore[attr-defined]
    loops = [each for each in walk_scope(function.node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
    return min([line, *(each.lineno for each in loops if each.lineno <= line <= (each.end_lineno or 0))])


def only_cast_for_layers(function: Definition, node: ast.If, dtype: str) -> list[ast.expr] | None:
    """The layers for which `layer(x.to(dtype))` reads a dtype that a branch assigns, below it; None for other reads."""
    if start_of(function, node) != node.lineno:
        return None
    found: list[ast.expr] = []
    allowed: set[int] = set()
    for call in (each for each in walk_scope(function.node) if isinstance(each, ast.Call)):
        given = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if not isinstance(given, ast.Call) or len(given.args) != 1 or given.keywords:
            continue
        cast = isinstance(given.func, ast.Attribute) and given.func.attr == "to" and is_name(given.args[0], dtype)
        if cast and is_attribute(call.func, "self"):
            found.append(call.func)
            allowed.add(id(given.args[0]))
    end = node.end_lineno or 0
    scopes = [part for part in walk(function.node) if reads_name(part, dtype)]
    inside = {id(part) for part in walk_in_layers(node)}
    later = [each for each in scopes if id(each) not in inside and getattr(each, "lineno", 0) > end]
    own = {id(part) for part in walk_scope(function.node)}
    if not all(id(each) in own for each in scopes) or not all(id(each) in allowed for each in later):
        return None
    return [each for each in found if getattr(each, "lineno", 0) > end]
