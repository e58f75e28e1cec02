"""Rows that a mask chooses, packed to the front of each row of a batch, as far as one module's text tells.

A *packer* is a function that gets a mask (rows, columns) and returns the largest number of true elements in a row, the
indices of true elements, the places that they get, and the places without one. *Uses* are all that is done with these
four in the function that calls it and below.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope

COUNT, CHOSEN, PLACES, FREE = "count", "chosen", "places", "free"
RETURNED = (COUNT, CHOSEN, PLACES, FREE)
_SIZED = frozenset("new_zeros new_ones new_full new_empty narrow view reshape expand zeros ones full empty".split())


def roles_of(calls: ModuleCalls, definition: Definition) -> tuple[str, ...] | None:
    """What a packer returns, by position; None if the function is no packer of its one parameter."""
    names, body = definition.parameters, definition.node.body
    if len(names) != 1 or not body or not isinstance(body[-1], ast.Return) or not isinstance(body[-1].value, ast.Tuple):
        return None
    forms: dict[str, str] = {}
    for position, statement in enumerate(body[:-1]):
        if position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name) or target.id in {names[0], *forms}:
            return None
        form = _form(_with_names_of_torch(calls, statement.value), names[0], forms)
        if form is None:
            return None
        forms[target.id] = form
    returned = [forms.get(each.id, "") if isinstance(each, ast.Name) else "" for each in body[-1].value.elts]
    return tuple(returned) if tuple(returned) == RETURNED else None


def _with_names_of_torch(calls: ModuleCalls, node: ast.expr) -> ast.expr:
    """`node` with every name that leads to torch spelled `torch.name`, and no other one so."""
    found: ast.expr = _Spelled(calls).visit(copy.deepcopy(node))
    return found


class _Spelled(ast.NodeTransformer):
    def __init__(self, calls: ModuleCalls) -> None:
        self._calls = calls

    def visit_Name(self, part: ast.Name) -> ast.expr:
        name = self._calls.qualified(part)
        if name is not None and name.partition(".")[0] == "torch":
            return ast.parse(name, mode="eval").body
        return ast.Name("not_torch", part.ctx) if part.id == "torch" else part


def _form(node: ast.expr, mask: str, forms: Mapping[str, str]) -> str | None:
    """What an assignment of a packer computes: one of the four, `counts` a row, or the mask of `taken` places."""
    text = ast.unparse(node)
    named = {role: name for name, role in forms.items()}
    counts, taken = named.get("counts", "?"), named.get("taken", "?")
    known = {
        "counts": {f"{mask}{cast}.sum({dim})" for cast in ("", ".long()", ".int()") for dim in _LAST_OF_TWO},
        COUNT: {f"{counts}.max()", f"torch.max({counts})"},
        CHOSEN: _nonzero(mask),
        PLACES: _nonzero(taken),
        FREE: _nonzero(f"({taken} == 0)") | _nonzero(f"(~{taken})"),
    }
    for form, texts in known.items():
        if text in texts:
            return form
    count = named.get(COUNT, "?")
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        counted = left == f"torch.arange({count})" or left.startswith(f"torch.arange({count}, device=")
        column = {f"{counts}.unsqueeze({dim})" for dim in ("-1", "1", "dim=-1", "dim=1")} | {f"{counts}[:, None]"}
        return "taken" if counted and right in column else None
    return None


_LAST_OF_TWO = ("dim=1", "dim=-1", "1", "-1", "axis=1", "axis=-1")


def _nonzero(text: str) -> set[str]:
    inner = text[1:-1] if text.startswith("(") else text
    return {f"{text}.nonzero(as_tuple=True)", f"torch.nonzero({inner}, as_tuple=True)", f"torch.where({inner})"}


class Packed(NamedTuple):
    """`max_count, chosen, places, free = packer(mask)` in a function: `roles` by name, `mask` the name given."""

    statement: ast.Assign
    call: ast.Call
    mask: str
    roles: Mapping[str, str]


def packed_in(calls: ModuleCalls, caller: Definition) -> Packed | None:
    """The first such statement of a function; also where the call already stands beside a compile path."""
    for node in walk_scope(caller.node):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and len(node.targets) == 1):
            continue
        call = node.value.orelse if isinstance(node.value, ast.IfExp) else node.value
        names = [each.id for each in node.targets[0].elts if isinstance(each, ast.Name)]
        callee = calls.callee(caller, call) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or callee is None or len(set(names)) != len(RETURNED):
            continue
        given = list(callee.arguments(call).values())
        if roles_of(calls, callee) is not None and len(given) == 1 and isinstance(given[0], ast.Name):
            return Packed(node, call, given[0].id, dict(zip(names, RETURNED, strict=True)))
    return None


def why_not_static(calls: ModuleCalls, function: Definition, packed: Packed) -> str | None:
    """The use that would tell if more places were there, or if one element were chosen several times."""
    todo: list[tuple[Definition, dict[str, str]]] = [(function, dict(packed.roles))]
    seen: set[tuple[str, int]] = set()
    while todo:
        definition, roles = todo.pop()
        key = (definition.qualname, definition.node.lineno)
        if key in seen:
            return f"`{definition.qualname}` is called with such indices in several places"
        seen.add(key)
        uses = _Uses(definition, roles)
        for node in walk_scope(definition.node):
            callee = calls.callee(definition, node) if isinstance(node, ast.Call) else None
            if callee is None or not isinstance(node, ast.Call):
                continue
            handed = handed_roles(callee, node, roles)
            if handed:
                uses.allowed |= {id(part) for part in [*node.args, *(word.value for word in node.keywords)]}
                todo.append((callee, handed))
        reason = uses.why_not(packed.statement)
        if reason is not None:
            return reason
    return None


def handed_roles(callee: Definition, call: ast.Call, roles: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a function that get one of the four."""
    return {
        parameter: roles[argument.id]
        for parameter, argument in callee.arguments(call).items()
        if isinstance(argument, ast.Name) and argument.id in roles
    }


class _Uses:
    """Uses of the four in one function."""

    def __init__(self, definition: Definition, roles: dict[str, str]) -> None:
        self.function, self.roles = definition.node, roles
        self.allowed: set[int] = set()
        self.reads: dict[str, str] = {}

    def why_not(self, bound: ast.stmt) -> str | None:
        """The first use that is not one of those allowed."""
        for node in walk_scope(self.function):
            self._allow_sizes(node)
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and node is not bound:
                self._allow_read(node)
        for node in walk_scope(self.function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._allow_write(node)
        inside = {id(part) for part in walk_in_layers(bound)}
        for node in walk_scope(self.function):
            if not isinstance(node, ast.Name) or id(node) in inside | self.allowed:
                continue
            if node.id in self.roles or node.id in self.reads:
                return f"`{self.function.name}` does more with `{node.id}` than read and write the selected rows"
        return None

    def _allow(self, node: ast.AST) -> None:
        self.allowed |= {id(part) for part in walk_in_layers(node)}

    def _allow_sizes(self, node: ast.AST) -> None:
        """The count as a size, and in assertions of sizes; `len(places[0])` as a size."""
        sized = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SIZED
        if sized and isinstance(node, ast.Call):
            for argument in node.args:
                self.allowed |= {id(part) for part in walk_in_layers(argument) if self._role(part) == COUNT}
                counted = isinstance(argument, ast.Call) and getattr(argument.func, "id", "") == "len"
                if counted and isinstance(argument, ast.Call) and self._index(argument.args[0]) is not None:
                    self._allow(argument)
        elif isinstance(node, ast.Assert):
            self.allowed |= {id(part) for part in walk_in_layers(node) if self._role(part) == COUNT}

    def _allow_read(self, node: ast.Assign) -> None:
        """`name = tensor[places]`."""
        target, role = node.targets[0], self._chooses(node.value)
        stores = [
            each
            for each in walk_scope(self.function)
            if isinstance(each, ast.Name) and isinstance(target, ast.Name) and each.id == target.id
            if isinstance(each.ctx, ast.Store)
        ]
        if isinstance(target, ast.Name) and role in {CHOSEN, PLACES} and len(stores) == 1:
            self.reads[target.id] = role
            self._allow(node.value)
            self.allowed.add(id(target))

    def _allow_write(self, node: ast.Assign) -> None:
        """`tensor[places] = tensor[chosen]` and the other way round, a number in either, and in what is free."""
        role = self._chooses(node.targets[0])
        if role is None:
            return
        value = node.value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in {"view", "reshape", "to", "type_as", "contiguous"}:
                break
            value = value.func.value
        read = self.reads.get(value.id) if isinstance(value, ast.Name) else self._chooses(value)
        plain = not any(self._role(part) or self._is_read(part) for part in walk_in_layers(node.value))
        number = plain and not any(isinstance(part, ast.Subscript) for part in walk_in_layers(node.value))
        if (number and _is_number(node.value)) or (role != FREE and {role, read} == {CHOSEN, PLACES}):
            self._allow(node.targets[0])
            self._allow(value)

    def _role(self, node: ast.AST) -> str | None:
        return self.roles.get(node.id) if isinstance(node, ast.Name) else None

    def _is_read(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.reads

    def _index(self, node: ast.expr) -> str | None:
        """The role of `name`, `name[::-1]` and `name[0]`, where these are indices."""
        inner = node.value if isinstance(node, ast.Subscript) else node
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            whole = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is None
            if not whole:
                return None
        role = self._role(inner)
        return role if role in {CHOSEN, PLACES, FREE} else None

    def _chooses(self, node: ast.expr) -> str | None:
        """The role of the indices by which `node` chooses: `t[name]`, or `t[name[0], :, name[1]]`."""
        if not isinstance(node, ast.Subscript):
            return None
        if self._index(node.slice) is not None:
            return self._index(node.slice)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        indices = [part for part in parts if not isinstance(part, ast.Slice)]
        found = {self._index(part) for part in indices}
        taken = [ast.unparse(part.slice) for part in indices if isinstance(part, ast.Subscript)]
        return found.pop() if len(found) == 1 and sorted(taken) == ["0", "1"] and len(indices) == 2 else None


def _is_number(node: ast.expr) -> bool:
    """A literal, or a limit of a dtype."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    limit = isinstance(node, ast.Attribute) and node.attr in {"min", "max"} and "finfo" in ast.unparse(node.value)
    return isinstance(node, ast.Constant) or limit


def is_packed_statically(packed: Packed) -> bool:
    """True when the statement already has a compile path of its own."""
    return isinstance(packed.statement.value, ast.IfExp)
