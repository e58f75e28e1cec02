"""Single numbers that are read of positions which `torch.arange` counted, in the function that counts or below it.

Whoever is handed the positions has to be known down to the last use, so every call is followed to one function of the
module: one that no decorator changes, no subclass replaces, and no other class of an attribute hides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.purity import short
from graphmend_codemod.analysis.scope import SCOPES, FunctionNode, children, dotted, parameters, walk, walk_scope

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
        element = test.left if isinstance(test, ast.Compare) else test
        if isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and _is_whole(element.slice):
            yield element.value.id


def _is_whole(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


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
    handled = {
        id(part)
        for node in walk_scope(function.node)
        if isinstance(node, ast.If) and "is_compiling" in ast.unparse(node.test)
        for each in node.orelse
        for part in ast.walk(each)
    }
    for node in walk_scope(function.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or id(node) in handled:
            continue
        target, call = node.targets[0], node.value
        held = isinstance(target, ast.Name) and target.id == name
        if held and isinstance(call, ast.Call) and calls.qualified(call.func) == "torch.arange":
            yield Counted(function, name, node, call)


@dataclass
class Uses:
    """Follows positions through the functions that get them.

    `replaced` are names that do not mean the function or method that `def` gives them. `tests` are the statements and
    expressions that one of the numbers decides; `unless` are tests of the module's own attributes under which the
    positions go where nobody can follow.
    """

    calls: ModuleCalls
    replaced: frozenset[str]
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
        parents = {id(child): parent for parent in walk(function.node) for child in children(parent)}
        own = {id(node) for node in walk_scope(function.node)}
        for node in walk(function.node):
            if not isinstance(node, ast.Name) or node.id != name:
                if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                    raise NeedsTensor(f"`{name}` is not a local name of `{function.qualname}`")
                continue
            if id(node) not in own:
                raise NeedsTensor(f"a function inside of `{function.qualname}` uses `{name}`")
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
            reached = self._reached(function, call, node)
            if reached is not None:
                self._names(*reached, None)
                return
        unless = _test_of_attributes(function, node, parents) if counted is not None else None
        if unless is None:
            raise NeedsTensor(f"`{short(call)}` in `{function.qualname}` may need the tensor")
        if unless not in self.unless:
            self.unless.append(unless)

    def _decides(self, element: ast.Subscript, node: ast.Name, parents: dict[int, ast.AST]) -> bool:
        """True for `p[0] > 0` where nothing but its truth counts."""
        if node is not element.value or not isinstance(element.ctx, ast.Load) or not _is_whole(element.slice):
            return False
        whole: ast.AST = element
        above = parents[id(element)]
        if isinstance(above, ast.Compare):
            plain = above.left is element and len(above.ops) == 1 and isinstance(above.ops[0], _COMPARED)
            if not plain or not _is_whole(above.comparators[0]):
                return False
            whole, above = above, parents[id(above)]
        while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
            whole, above = above, parents[id(above)]
        if not isinstance(above, _TESTED) or above.test is not whole:
            return False
        self.tests.append(above)
        return True

    def _reached(self, caller: Definition, call: ast.Call, node: ast.Name) -> tuple[Definition, str] | None:
        """The one function that a call runs, and its parameter for `node`; None if it might be another one."""
        callee = self.calls.callee(caller, call)
        if callee is None or callee.node.decorator_list or not self._is_sure(caller, call.func, callee):
            return None
        given = [parameter for parameter, argument in callee.arguments(call).items() if argument is node]
        names = {each.arg for each in [*callee.node.args.args, *callee.node.args.kwonlyargs]}
        return (callee, given[0]) if len(given) == 1 and given[0] in names else None

    def _is_sure(self, caller: Definition, function: ast.expr, callee: Definition) -> bool:
        path = (dotted(function) or "").split(".")
        if not {path[-1], callee.qualname.rpartition(".")[2]}.isdisjoint(self.replaced):
            return False
        if path[0] == "self" and len(path) == 2:
            return self._is_own(caller.owner, path[1], callee)
        if len(path) != 1:
            return False
        return self._is_element(caller, path[0], callee) if path[0] in local_names(caller.node) else not callee.owner

    def _is_element(self, caller: Definition, name: str, callee: Definition) -> bool:
        """`for layer in self.layers: layer(...)`."""
        named = [part for part in walk(caller.node) if isinstance(part, ast.Name) and part.id == name]
        bound = [part for part in named if not isinstance(part.ctx, ast.Load)]
        loops = [node for node in walk_scope(caller.node) if isinstance(node, ast.For)]
        over = [node for node in loops if bound and any(part is bound[0] for part in ast.walk(node.target))]
        if len(bound) != 1 or len(over) != 1 or name in {each.arg for each in parameters(caller.node)}:
            return False
        iterated, target = over[0].iter, over[0].target
        if isinstance(target, ast.Tuple):
            counts = isinstance(iterated, ast.Call) and dotted(iterated.func) == "enumerate"
            iterated = iterated.args[0] if counts and isinstance(iterated, ast.Call) else iterated
            if not counts or getattr(target.elts[-1], "id", "") != name:
                return False
        while isinstance(iterated, ast.Subscript):
            iterated = iterated.value
        path = (dotted(iterated) or "").split(".")
        return len(path) == 2 and path[0] == "self" and self._is_own(caller.owner, path[1], callee)

    def _is_own(self, owner: str, attribute: str, callee: Definition) -> bool:
        """True when `self.attribute` means the same in the class and in all subclasses in the module."""
        classes = {each.owner for each in self.calls.definitions.values() if each.owner}
        heirs = {each for each in classes if self.calls.is_heir(each, owner)}
        made = [each for each in _assigned(self.calls, attribute) if self.calls.related(each[0].owner, owner)]
        if self.calls.method(owner, attribute) is not None:
            replaced = any(
                each.owner in heirs and each.qualname == f"{each.owner}.{attribute}"
                for each in self.calls.definitions.values()
            )
            return not made and not replaced
        if any(each.owner in heirs for each, _ in made):
            return False
        makers = [[part for part in ast.walk(value) if isinstance(part, ast.Call)] for _, value in made]
        named = {dotted(part.func) for parts in makers for part in parts} & classes
        kept = all(isinstance(value, ast.Call) for _, value in made)
        lists = {"ModuleList", "range", "len", "Sequential", *classes}
        known = all((dotted(part.func) or "").rpartition(".")[2] in lists for parts in makers for part in parts)
        return kept and known and len(named) == 1 and self.calls.method(str(*named), "__call__") is None


def _assigned(calls: ModuleCalls, attribute: str) -> Iterator[tuple[Definition, ast.expr]]:
    """The methods that bind `self.attribute`, with the value, or the attribute itself where that is not plain."""
    for function in calls.definitions.values():
        inside = list(walk_scope(function.node))
        values = {id(each.targets[0]): each.value for each in inside if isinstance(each, ast.Assign)}
        for node in inside:
            if isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load):
                yield function, values.get(id(node), node)


def assigned_outside(tree: ast.Module) -> frozenset[str]:
    """The names that a module or its classes assign outside of functions."""
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    plain = [node for block in blocks for node in block if not isinstance(node, SCOPES)]
    parts = [part for node in plain for part in ast.walk(node)]
    return frozenset(part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load))


def local_names(function: FunctionNode) -> set[str]:
    """All names that a function binds, at any depth."""
    found = {each.arg for each in parameters(function)}
    for part in walk(function):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and part is not function:
            found.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            found |= {each.asname or each.name.partition(".")[0] for each in part.names}
    return found


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
