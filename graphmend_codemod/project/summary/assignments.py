"""What assignments tell: which names a function binds, and what its instance gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from graphmend_codemod.project.summary.body import Body
from graphmend_codemod.project.summary.records import Attribute, Value, Write
from graphmend_codemod.project.summary.spelling import Lines, dotted, value_of

_REGISTRATIONS = {"register_buffer": "buffer", "register_parameter": "parameter"}
REGISTRATIONS = frozenset(_REGISTRATIONS)
"""Methods that give an instance an attribute by name."""
HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})
SETTERS = HOOKS | {"setattr", "__setattr__", "delattr", "add_module", "register_module", "set_submodule"}
"""What else sets attributes by name, or lets other code into a module."""


def assign(node: ast.Assign, body: Body, stack: list[Any]) -> None:
    value = node.value
    for target in node.targets:
        if type(target) is ast.Name:  # nearly always
            name = target.id
            body.stores.add(name)
            body.values.setdefault(name, []).append(value)
        else:
            _store(target, value, body, stack)
    stack.append(value)


def annotated(node: ast.AnnAssign, body: Body, stack: list[Any]) -> None:
    if isinstance(node.target, ast.Name):
        body.types[node.target.id, f":{body.lines.annotation(node.annotation)}"] = None
    if node.value is None:
        if isinstance(node.target, ast.Name):
            body.stores.add(node.target.id)
        return
    _store(node.target, node.value, body, stack)
    stack.append(node.value)


def augmented(node: ast.AugAssign, body: Body, stack: list[Any]) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        body.stores.add(target.id)
        body.keep(target.id, node.value)
    elif isinstance(target, ast.Attribute) and dotted(target.value) == body.own:
        body.attributes.append((target.attr, "changed", None))
    else:
        written(target, body)
        stack.append(target)
    stack.append(node.value)


def named(node: ast.NamedExpr, body: Body, stack: list[Any]) -> None:
    _store(node.target, node.value, body, stack)
    stack.append(node.value)


def _store(target: ast.expr, value: ast.expr, body: Body, stack: list[Any]) -> None:
    if type(target) is ast.Name:
        body.stores.add(target.id)
        body.keep(target.id, value)
    elif type(target) is ast.Attribute:
        inner = target.value
        body.value = body.value or target.attr == "requires_grad"
        if body.own and type(inner) is ast.Name and inner.id == body.own:
            body.attributes.append((target.attr, "", value))
        else:
            written(target, body)
            stack.append(inner)
    elif isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, given in zip(target.elts, value.elts, strict=True):
                _store(part, given, body, stack)
        else:
            for part in target.elts:
                _unpacked(part, value, body, stack)
    else:
        if body.loops and type(target) is ast.Subscript:
            index = target.slice
            body.rows = body.rows or _may_be_mask(index, body.indexed) or _fills_row(index, body.dynamic)
        written(target, body)
        stack.append(target)


def written(target: ast.expr, body: Body) -> None:
    """Note what is assigned behind a dot, unless it is an attribute of the own instance, or changed by an index."""
    if isinstance(target, ast.Attribute):
        body.writes[Write(target.attr, dotted(target.value), "assigned")] = None
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute):
        body.writes[Write(target.value.attr, dotted(target.value.value), "changed")] = None


def changed(spelled: str, body: Body, of: str = "") -> None:
    """Note `model.scale.fill_(1)` and `model.scale.data.fill_(1)`, of which `spelled` is what is called."""
    if spelled[-1:] != "_" or spelled[-2:] == "__":
        return
    receiver, _, name = spelled.rpartition(".")[0].removesuffix(".data").rpartition(".")
    if receiver:
        body.writes[Write(name, receiver, "changed", of)] = None


def class_asked_for(node: ast.Call, name: str, body: Body) -> str:
    """The class that `if isinstance(name, Class):` around a call tells, as spelled; empty if there is none."""
    for asked in reversed(body.narrowed):
        given = asked.test.args  # type: ignore[attr-defined]
        last = asked.body[-1].end_lineno or 0
        if len(given) == 2 and dotted(given[0]) == name and asked.body[0].lineno <= node.lineno <= last:
            parts = (part for each in asked.body for part in ast.walk(each))
            bound = any(
                isinstance(part, ast.Name) and part.id == name and part.ctx.__class__ is ast.Store for part in parts
            )
            return "" if bound else dotted(given[1])
    return ""


def _unpacked(target: ast.expr, value: ast.expr, body: Body, stack: list[Any]) -> None:
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        body.stores.add(target.id)
        body.keep(target.id, value)
    elif isinstance(target, ast.Attribute) and body.own and dotted(target.value) == body.own:
        body.attributes.append((target.attr, "other", None))
    elif isinstance(target, ast.Attribute):
        written(target, body)
        stack.append(target.value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            _unpacked(part, value, body, stack)
    else:
        stack.append(target)


def _may_be_mask(index: ast.expr, names: list[str]) -> bool:
    """True for an index that may choose rows by a condition: `y[m == i]`, `y[m[:, i]]`, `y[a:b]`.

    Names in it, `y[i, rows]`, are added to `names`: what they hold has to tell.
    """
    kind = index.__class__
    if kind is ast.Tuple:
        found = [_may_be_mask(part, names) for part in index.elts]  # type: ignore[attr-defined]
        return any(found)
    if kind is ast.Name:
        names.append(index.id)  # type: ignore[attr-defined]
        return False
    if kind is ast.Slice:
        return index.lower.__class__ is ast.Name and index.upper.__class__ is ast.Name  # type: ignore[attr-defined]
    return kind is ast.Compare or kind is ast.Subscript


def _fills_row(index: ast.expr, elements: set[str]) -> bool:
    """True for `y[i, :n]` with an element of what is looped over, and for `y[i, : n[i]]`."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) and len(index.elts) == 2 else None
    if not isinstance(last, ast.Slice):
        return False
    bound = last.upper if last.lower is None else last.lower
    if isinstance(bound, ast.Call):
        bound = bound.args[0] if bound.args else getattr(bound.func, "value", None)  # int(n), n.item()
    return isinstance(bound, ast.Subscript) or (isinstance(bound, ast.Name) and bound.id in elements)


def loop_target(target: ast.expr, iterated: ast.expr, body: Body) -> None:
    called = iterated.func.id if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) else ""
    if called == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        body.stores.add(target.elts[0].id)
        target = target.elts[-1]
    counts = called == "range"
    targets: list[Any] = [target]
    while targets:
        part = targets.pop()
        kind = type(part)
        if kind is ast.Name:
            body.stores.add(part.id)
            if not counts:
                body.dynamic.add(part.id)
        elif kind is ast.Tuple or kind is ast.List:
            targets += part.elts
        else:
            targets += ast.iter_child_nodes(part)


def registration(node: ast.Call, spelled: str, body: Body) -> None:
    owner, _, last = spelled.rpartition(".")
    if last in _REGISTRATIONS and owner == body.own and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            value = node.args[1] if len(node.args) > 1 else None
            body.attributes.append((first.value, _REGISTRATIONS[last], value))
    elif last in _REGISTRATIONS or last in SETTERS:
        _set_by_name(node, owner, last, body)


def _set_by_name(node: ast.Call, owner: str, last: str, body: Body) -> None:
    """Note `setattr(module, "name", value)`, `module.register_buffer("name", value)` and hooks into a module."""
    if last in HOOKS:
        above, _, name = owner.rpartition(".")
        body.writes[Write(name, above, "hooked")] = None
        return
    given = node.args
    if last == "setattr" and not owner:
        owner, given = (dotted(given[0]) if given else ""), given[1:]
    first = given[0] if given else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        body.writes[Write(first.value.rpartition(".")[2], owner, "assigned")] = None


def types_of(value: ast.expr) -> Iterator[str]:
    """What is known of an assigned value: `C()` for a call, `other` for an alias, both arms of a choice."""
    if type(value) is ast.Call:
        if spelled := dotted(value.func):
            yield spelled + "()"
            if spelled.rpartition(".")[2] == "partial" and value.args and (inner := dotted(value.args[0])):
                yield inner
    elif type(value) is ast.Name or type(value) is ast.Attribute:
        if spelled := dotted(value):
            yield spelled
    elif type(value) is ast.IfExp:
        yield from types_of(value.body)
        yield from types_of(value.orelse)
    elif type(value) is ast.BoolOp:
        for part in value.values:
            yield from types_of(part)


def attributes_of(body: Body, lines: Lines, construction: bool) -> list[Attribute]:
    """The attributes that a function sets; what a constructor is given, it only passes on."""
    untouched = set(body.parameters).difference(body.stores, [body.own]) if construction else set()
    found = []
    for name, kind, node in body.attributes:
        if not kind and node is not None:
            value = value_of(node, lines, untouched, body.parameters)
            if value.kind == "argument" and (default := body.defaults.get(value.text)):
                value = value._replace(holds=(default,))
            elif value.kind == "other" and type(node) is ast.Name and node.id in body.parameters:
                # `if head is None: head = Head()` came before.
                value = value._replace(holds=tuple(_made(body.values.get(node.id, ()))))
        else:
            value = Value(kind, text=lines.text(node) if node is not None else "")
        found.append(Attribute(name, value))
    return found


def _made(values: Sequence[ast.expr]) -> Iterator[str]:
    """The calls among the values of a name, as `Head()`."""
    for value in values:
        if type(value) is ast.Call and (called := dotted(value.func)):
            yield f"{called}()"
