"""What the names of a function are bound to, one entry a binding: assignments, loops, what lists are given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_names, is_name
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameters, walk_scope

_ASSIGNED = "graphmend_assigned"
"""Where a function's tree keeps what its names are assigned, which is asked for again and again."""


class _Binding(NamedTuple):
    """A target and its value; `loops` where it is bound to the elements. `within` are the lines of a comprehension."""

    target: ast.expr
    value: ast.expr
    loops: bool = False
    within: range = range(0)

    def of(self, name: str) -> Iterator[ast.expr]:
        return _looped(self.target, self.value, name) if self.loops else _bound(self.target, self.value, name)

    @property
    def place(self) -> tuple[int, int]:
        return self.target.lineno, self.target.col_offset


def bound_to(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """What the function assigns to a name, in any of its statements and loops."""
    for each in _known(function).get(name, ()):
        yield from each.of(name)


def is_looped(function: FunctionNode, name: str) -> bool:
    """True for a name that only loops of the function bind."""
    found = _known(function).get(name, ())
    return bool(found) and all(each.loops for each in found)


def reaching(function: FunctionNode, use: ast.Name, lines: Sequence[str], *, again: bool) -> Iterator[ast.expr]:
    """The same without what another assignment replaces on the way to a use of the name.

    `lines` are those of the file. An assignment is on every way to the use where no line between them is indented less
    than it is. `again` is true where the code may run again, so that later assignments count.
    """
    every = _known(function).get(use.id, [])
    plain = [each.place for each in every if not each.loops and isinstance(each.target, ast.Name)]
    first = (use.lineno, 0)
    sure = [place for place in plain if place < first and _stays(lines[place[0] : use.lineno], place[1])]
    start = max(sure, default=(0, 0))
    for each in every:
        before = start <= each.place < first or (again and each.place >= first)
        if use.lineno in each.within if each.within else before:
            yield from each.of(use.id)


def _stays(lines: Iterable[str], column: int) -> bool:
    """True where no line leaves the block whose statements begin at a column."""
    return all(len(line) - len(line.lstrip()) >= column for line in lines if line.strip())


def _known(function: FunctionNode) -> dict[str, list[_Binding]]:
    found: dict[str, list[_Binding]] | None = function.__dict__.get(_ASSIGNED)
    if found is None:
        found = function.__dict__[_ASSIGNED] = _bindings(function)
    return found


def _bindings(function: FunctionNode) -> dict[str, list[_Binding]]:
    """The bindings of each name, in one look at the function."""
    found: dict[str, list[_Binding]] = {}
    for node in walk_scope(function):
        for each in _made_by(node):
            for bound in all_names(each.target):
                found.setdefault(bound, []).append(each)
    return found


def _made_by(node: ast.AST) -> list[_Binding]:
    if isinstance(node, ast.Assign):
        return [_Binding(target, node.value) for target in node.targets]
    if isinstance(node, ast.AugAssign):
        return [_Binding(node.target, ast.copy_location(ast.BinOp(node.target, node.op, node.value), node))]
    if isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        return [_Binding(node.target, node.value)]
    if isinstance(node, ast.For):
        return [_Binding(node.target, node.iter, True)]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        within = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return [_Binding(each.target, each.iter, True, within) for each in node.generators]
    return []


def _bound(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if is_name(target, name):
        yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, each in enumerate(target.elts):
            yield from _bound(each, element_of(value, position), name)


def _looped(target: ast.expr, iterated: ast.expr, name: str) -> Iterator[ast.expr]:
    """What a loop binds to a name, in step with `zip` and `enumerate`."""
    called = iterated.func.id if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) else ""
    if isinstance(iterated, ast.Call) and isinstance(target, ast.Tuple) and called in {"zip", "enumerate"}:
        steps = iterated.args if called == "zip" else [ast.copy_location(ast.Constant(0), iterated), *iterated.args[:1]]
        for each, given in zip(target.elts, steps, strict=False):
            yield from _looped(each, given, name)
    elif called not in {"range", "enumerate"} and not isinstance(iterated, ast.Constant):
        yield from _bound(target, element_of(iterated, 0), name)


def element_of(value: ast.expr, position: int) -> ast.expr:
    """The element of a display, else an expression that spells it: `x[0]`."""
    if isinstance(value, (ast.Tuple, ast.List)) and position < len(value.elts):
        return value.elts[position]
    index = ast.copy_location(ast.Constant(position), value)
    return ast.copy_location(ast.Subscript(value, index, ast.Load()), value)


def is_assigned(function: FunctionNode, name: str) -> bool:
    """True where the function itself assigns the name."""
    return next(bound_to(function, name), None) is not None


def appended_to(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """What `name.append(...)` and `name.insert(0, ...)` put into a list."""
    calls = (each for each in walk_scope(function) if isinstance(each, ast.Call) and each.args)
    for call in calls:
        method = call.func
        if isinstance(method, ast.Attribute) and method.attr in _PUTS_INTO and is_name(method.value, name):
            yield call.args[-1]


_PUTS_INTO = frozenset({"append", "insert", "add", "appendleft"})


def has_name(function: FunctionNode, name: str) -> bool:
    """True for a parameter and for a name that the function assigns."""
    return any(each.arg == name for each in parameters(function)) or is_assigned(function, name)


def fields_of(tree: ast.Module, name: str) -> list[str]:
    """The names of the fields of a class of records at the top level of a module: annotated ones, or a `namedtuple`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            named = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
            return [each.id for each in named if isinstance(each, ast.Name)]
        if isinstance(node, ast.Assign) and name in map(dotted, node.targets) and isinstance(node.value, ast.Call):
            return _named_tuple(node.value)
    return []


def _named_tuple(made: ast.Call) -> list[str]:
    if (dotted(made.func) or "").rpartition(".")[2] != "namedtuple" or len(made.args) < 2:
        return []
    listed = made.args[1]
    if isinstance(listed, ast.Constant):
        return str(listed.value).replace(",", " ").split()
    elements = listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else []
    return [str(each.value) for each in elements if isinstance(each, ast.Constant)]
