"""Single numbers that are read of positions which `torch.arange` counted, in the function that counts or below it.

Whoever is handed the positions has to be known down to the last use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.scope import children, parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, beside_compile_paths, is_whole

_COMPARED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)
_TESTED = (ast.If, ast.While, ast.IfExp, ast.Assert)


class NeedsTensor(Exception):
    """The use of the positions that a Python range could not stand in for, or that is not understood."""


@dataclass(frozen=True)
class Counted:
    """`name = torch.arange(...)` in a function that hands the positions, or keeps them, to where one decides."""

    function: Definition
    name: str
    assignment: ast.Assign
    call: ast.Call


def is_element_of(test: ast.expr) -> Iterator[str]:
    """The names of which a test reads a number: `p` for `p is not None and p[0] > 0`."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from is_element_of(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from is_element_of(test.operand)
    else:
        element = test
        if isinstance(test, ast.Compare):
            if not isinstance(test.ops[0], _COMPARED):
                return
            element = test.left
        if isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and is_whole(element.slice):
            yield element.value.id


def counted(calls: ModuleCalls, reader: Definition, name: str) -> list[Counted]:
    """Where positions are counted that get to `name` in `reader`, in order of the source."""
    found: list[Counted] = []
    todo, seen = [(reader, name)], set()
    while todo:
        function, held = todo.pop()
        if (function, held) in seen:
            continue
        seen.add((function, held))
        found += _counted_here(calls, function, held)
        if held not in {each.arg for each in parameters(function.node)}:
            continue
        for caller, call in calls.callers(function):
            given = function.arguments(call).get(held)
            if isinstance(given, ast.Name):
                todo.append((caller, given.id))
    return sorted(found, key=lambda each: each.assignment.lineno)


def _counted_here(calls: ModuleCalls, function: Definition, name: str) -> Iterator[Counted]:
    for node in walk_scope(function.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, call = node.targets[0], node.value
        held = isinstance(target, ast.Name) and target.id == name
        counts = held and isinstance(call, ast.Call) and calls.qualified(call.func) == "torch.arange"
        if counts and isinstance(call, ast.Call) and id(node) not in beside_compile_paths(function.node):
            yield Counted(function, name, node, call)


@dataclass
class Uses:
    """Follows positions through the functions that get them.

    `tests` are the statements and expressions that one of the numbers decides; `unless` are tests of the module's own
    attributes under which the positions go where nobody can follow.
    """

    sure: SureCalls
    tests: list[ast.AST] = field(default_factory=list)
    unless: list[str] = field(default_factory=list)
    _seen: set[tuple[Definition, str]] = field(default_factory=set)

    def follow(self, counted: Counted) -> None:
        """NeedsTensor at the first use that is not a test for None, the test of a number, or a call that is known."""
        self._names(counted.function, counted.name, counted)

    def _names(self, function: Definition, name: str, counted: Counted | None) -> None:
        if (function, name) in self._seen:
            return
        self._seen.add((function, name))
        parents = self.sure.calls.remembered("parents", function.node, lambda: _parents(function))
        own = {id(node) for node in walk_scope(function.node)}
        for node in walk(function.node):
            if not isinstance(node, ast.Name) or node.id != name:
                if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                    raise NeedsTensor(f"`{name}` is not a local name of `{function.qualname}`")
                continue
            if id(node) not in own:
                raise NeedsTensor(f"a function nested in `{function.qualname}` uses `{name}`")
            parent = parents[id(node)]
            if isinstance(node.ctx, ast.Load):
                self._read(function, node, parents, counted)
            elif counted is None or not isinstance(parent, (ast.Assign, ast.AnnAssign)):
                raise NeedsTensor(f"`{function.qualname}` binds `{name}` again")

    def _read(self, function: Definition, node: ast.Name, parents: dict[int, ast.AST], counted: Counted | None) -> None:
        parent = parents[id(node)]
        if isinstance(parent, ast.Compare) and _asks_for_none(parent):
            return
        if isinstance(parent, ast.Subscript) and self._decides(parent, node, parents):
            return
        call = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and node is not call.func:
            reached = self.sure.reached(function, call, node)
            if reached is not None:
                self._names(*reached, None)
                return
        unless = _test_of_attributes(function, node, parents) if counted is not None else None
        if unless is None:
            raise NeedsTensor(f"`{short(call)}` in `{function.qualname}` may need a Tensor")
        if unless not in self.unless:
            self.unless.append(unless)

    def _decides(self, element: ast.Subscript, node: ast.Name, parents: dict[int, ast.AST]) -> bool:
        """True for `p[0] > 0` where nothing but its truth counts."""
        if node is not element.value or not isinstance(element.ctx, ast.Load) or not is_whole(element.slice):
            return False
        whole: ast.AST = element
        above = parents[id(element)]
        if isinstance(above, ast.Compare):
            plain = above.left is element and len(above.ops) == 1 and isinstance(above.ops[0], _COMPARED)
            if not plain or not is_whole(above.comparators[0]):
                return False
            whole, above = above, parents[id(above)]
        while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
            whole, above = above, parents[id(above)]
        if not isinstance(above, _TESTED) or above.test is not whole:
            return False
        self.tests.append(above)
        return True


def _parents(function: Definition) -> dict[int, ast.AST]:
    return {id(child): parent for parent in walk(function.node) for child in children(parent)}


def _asks_for_none(node: ast.Compare) -> bool:
    other = node.comparators[0]
    asked = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot))
    return asked and isinstance(other, ast.Constant) and other.value is None


def _test_of_attributes(function: Definition, node: ast.AST, parents: dict[int, ast.AST]) -> str | None:
    """`self.checkpointing and self.training` where only that lets the node run, and nothing changes it."""
    below: ast.AST = node
    while below is not function.node:
        above = parents[id(below)]
        if isinstance(above, ast.If) and any(each is below for each in above.body):
            names = _attributes(above.test)
            changed = {
                part.attr
                for part in walk(function.node)
                if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load)
            }
            if names is not None and not names & changed:
                return ast.unparse(above.test)
        below = above
    return None


def _attributes(test: ast.expr) -> set[str] | None:
    """The names behind `self.` in a test of nothing else."""
    if isinstance(test, ast.BoolOp):
        parts = [_attributes(value) for value in test.values]
        return set().union(*(part for part in parts if part)) if all(part is not None for part in parts) else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _attributes(test.operand)
    own = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self"
    return {test.attr} if own and isinstance(test, ast.Attribute) else None
