"""What functions write that a function hands around: `map(lambda t: t.mul_(2), tensors)`, `f = x.mul_`, a `partial`.

A lambda, a function inside of the function, a method of a tensor that is named and not called, a function of the module
that writes what it is given: each runs where it is called, and where it is given to something else that may call it.
There it may get whatever else is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, last_name
from graphmend_codemod.analysis.scope import (
    FunctionNode,
    dotted,
    parameter_names,
    parents_in,
    walk_in_layers,
    walk_scope,
)
from graphmend_codemod.analysis.value_flow import closure
from graphmend_codemod.rules.proofs.memory.given_writes import elements_read
from graphmend_codemod.rules.proofs.memory.indirect import is_method_in_place

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ONLY_HAND_ON = frozenset(
    "dict enumerate frozenset getattr hasattr isinstance iter len list reversed set tuple zip".split()
)
_DISPLAYS = (ast.keyword, ast.Starred, ast.List, ast.Tuple, ast.Dict, ast.IfExp)


class Handed(NamedTuple):
    """A function that is handed around: what it reads and writes of the names around it, and whether it writes into
    what it is given; `positions` of it, where these are known.
    """

    written: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    writes_given: bool = False
    positions: frozenset[int] | None = None

    def written_of(self, given: Sequence[ast.expr]) -> Sequence[ast.expr]:
        """What of all that a call may give to it is written."""
        if not self.writes_given or self.positions is None:
            return given if self.writes_given else ()
        return [each for position, each in enumerate(given) if position in self.positions]


class Run(NamedTuple):
    """A call that may run such a function, with all that it may give to it."""

    call: ast.Call
    given: tuple[ast.expr, ...]


def writes_of(memory: ModuleMemory, function: Definition) -> Iterator[tuple[ast.AST, set[str]]]:
    """The calls in a function that run what is handed around, with the names into whose tensors that writes."""
    for handed, runs in memory.remembered("handed", function, lambda: list(_handed_in(memory, function))):
        for run in runs:
            names = {name for each in handed.written_of(run.given) for name in memory.sources(function, each)}
            if names or handed.written:
                yield run.call, names | handed.written


def reads_of(memory: ModuleMemory, function: Definition) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """The same calls, with what the functions read of the names around them."""
    for handed, runs in memory.remembered("handed", function, lambda: list(_handed_in(memory, function))):
        for run in runs if handed.read else ():
            yield run.call, handed.read


def _handed_in(memory: ModuleMemory, function: Definition) -> Iterator[tuple[Handed, list[Run]]]:
    known = [(part, handed) for part in _loose(memory, function) if (handed := _handed(memory, function, part))]
    if not known:
        return  # most functions
    places = _Places(function.node)
    for part, each in known:
        runs = list(places.runs(part, set()))
        if isinstance(part, ast.Call):  # of an attribute that holds a function
            runs.append(Run(part, aliasing.operands(part)))
        if runs:
            yield each, runs


def _loose(memory: ModuleMemory, function: Definition) -> list[ast.AST]:
    """The nodes of a function that may name or make a function and do not just call it; few functions have any."""
    found: list[ast.AST] = []
    called: set[int] = set()
    held = memory.remembered("holding", function.owner, lambda: _holding(memory, function))
    functions, attributes = memory.calls.function_names
    for part in walk_scope(function.node):
        kind = part.__class__
        if kind is ast.Name:
            name = part.id  # type: ignore[attr-defined]
            asked = name in functions or name[-1] == "_" or name in aliasing.IN_PLACE_OPERATORS
        elif kind is ast.Attribute:
            name = part.attr  # type: ignore[attr-defined]
            asked = name in attributes or name[-1] == "_" or name in aliasing.IN_PLACE_OPERATORS
        elif isinstance(part, ast.Call):
            called.add(id(part.func))
            name = last_name(part.func)
            asked = name == "methodcaller" or (name in held and is_attribute(part.func, "self"))
        else:
            asked = kind in _INNER
        if asked:
            found.append(part)
    # What is just called, its effect says.
    return [each for each in found if id(each) not in called or isinstance(each, (ast.Lambda, ast.Call))]


def _holding(memory: ModuleMemory, function: Definition) -> frozenset[str]:
    """The attributes of a class that hold a lambda, a `partial`, or what else may write in place."""
    names = {name for targets, value in memory.calls.assignments(function.owner) for name in targets if _is_made(value)}
    return frozenset(name for name in names if name is not None)


def _is_made(value: ast.expr) -> bool:
    parts = [value, *(value.args if isinstance(value, ast.Call) else ())]
    return any(isinstance(each, ast.Lambda) or is_method_in_place(last_name(each) or " ") for each in parts)


def _handed(memory: ModuleMemory, function: Definition, node: ast.AST) -> Handed | None:
    """What a node is if it names or makes a function that may be handed around."""
    if isinstance(node, _INNER):
        return _inner(memory, function, node)
    if isinstance(node, ast.Call):
        return _held(memory, function, node) if is_attribute(node.func, "self") else _makes(memory, node)
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        return _named(memory, function, node)
    return None


def _inner(memory: ModuleMemory, function: Definition, node: FunctionNode | ast.Lambda) -> Handed | None:
    """A lambda, or a function in the function."""
    parts = [part for part in walk_in_layers(node) if part is not node]
    own = {name for part in (node, *parts) if isinstance(part, _INNER) for name in parameter_names(part)}
    bound: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part, (ast.Assign, ast.NamedExpr)):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in (each.id for each in targets if isinstance(each, ast.Name)):
                bound.setdefault(target, set()).update(memory.sources(function, part.value))
    written = {name for part in parts for name in memory.written_by(function, part)}
    found = set(closure(written, lambda each: bound.get(each.partition(".")[0], ())))
    outside = frozenset(name for name in found if name.partition(".")[0] not in own | bound.keys())
    body = node.body if isinstance(node.body, list) else [node.body]
    spelled = {text for each in body for part in elements_read(each) if (text := dotted(part)) is not None}
    read = frozenset(text for text in spelled if text.partition(".")[0] not in own | bound.keys() and text != "self")
    writes = any(name.partition(".")[0] in own for name in found)
    return Handed(outside, read, writes) if outside or writes or read else None


def _named(memory: ModuleMemory, function: Definition, node: ast.Name | ast.Attribute) -> Handed | None:
    """`x.mul_`, `torch.Tensor.mul_`, `operator.imul`, `halve` and `self.halve`."""
    name = last_name(node)
    if is_method_in_place(name):
        if memory.site.resolve_global(node) is not None:
            return Handed(writes_given=True)  # a function of torch, or of the class of tensors
        owner = memory.sources(function, node.value) if isinstance(node, ast.Attribute) else set()
        return Handed(frozenset(owner)) if owner else None
    if name in aliasing.IN_PLACE_OPERATORS and memory.site.resolve_global(node) == f"operator.{name}":
        return Handed(writes_given=True)
    return memory.handed_of_module(function, node)


def _makes(memory: ModuleMemory, node: ast.Call) -> Handed | None:
    """`operator.methodcaller("mul_", 2)`."""
    name = node.args[0] if node.args else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not is_method_in_place(name.value):
        return None
    return Handed(writes_given=True) if memory.site.resolve_global(node.func) == "operator.methodcaller" else None


def _held(memory: ModuleMemory, function: Definition, node: ast.Call) -> Handed | None:
    """`self.then(x)`, where the class gives `then` a lambda, a `partial`, or what else writes in place."""
    assert isinstance(node.func, ast.Attribute)
    for value in memory.calls.assigned(function.owner, node.func.attr):
        parts = [value, *(value.args if isinstance(value, ast.Call) else ())]
        for part in parts:
            handed = None if isinstance(part, ast.Call) else _handed(memory, function, part)
            if handed is not None:
                others = [each for each in parts[1:] if each is not part] if handed.writes_given else []
                given = {name for each in others for name in memory.sources(function, each)}
                kept = frozenset(name for name in handed.written | given if name.startswith("self."))
                return handed._replace(written=kept)
    return None


def _hands_on(call: ast.AST | None, given: ast.AST) -> bool:
    """True for `enumerate(functions)`, which calls none of them."""
    return isinstance(call, ast.Call) and call.func is not given and last_name(call.func) in _ONLY_HAND_ON


class _Places:
    """Where the functions that a function hands around go."""

    def __init__(self, function: FunctionNode) -> None:
        self._function = function
        self._parents = parents_in(function)

    def runs(self, node: ast.AST, seen: set[int]) -> Iterator[Run]:
        """The calls that may run what an expression or a `def` makes."""
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from self._of_names({node.name}, seen)
            return
        child, parent = node, self._parents.get(id(node))
        while parent is not None and (isinstance(parent, _DISPLAYS) or _hands_on(parent, child)):
            child, parent = parent, self._parents.get(id(parent))
        if isinstance(parent, ast.Call):
            own = child.value if isinstance(child, (ast.keyword, ast.Starred)) else child
            others = tuple(each for each in aliasing.operands(parent) if each is not own)
            yield Run(parent, aliasing.operands(parent) if parent.func is child else others)
            if parent.func is not child:
                yield from self._of_result(parent, others, seen)
        elif isinstance(parent, (ast.Assign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            yield from self._of_names({each.id for each in targets if isinstance(each, ast.Name)}, seen)
        elif isinstance(parent, (ast.For, ast.AsyncFor)) and child is parent.iter:
            yield from self._of_names({each.id for each in ast.walk(parent.target) if isinstance(each, ast.Name)}, seen)

    def _of_names(self, names: set[str], seen: set[int]) -> Iterator[Run]:
        for part in walk_scope(self._function) if names else ():
            if isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load):
                yield from self.runs(part, seen)

    def _of_result(self, call: ast.Call, given: Sequence[ast.expr], seen: set[int]) -> Iterator[Run]:
        """The calls of what a call returns, `partial(f, x)`: these get what it was given as well."""
        for run in self.runs(call, seen):
            if run.call.func is call or isinstance(run.call.func, ast.Name):
                yield Run(run.call, (*given, *run.given))
