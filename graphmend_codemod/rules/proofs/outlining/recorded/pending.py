"""Whether an object may change in a graph before an operator reads it.

While Dynamo traces, what it changes in an object, and what the graph writes into a tensor of one, becomes real when the
graph has run: an operator in that graph reads what was before. A recorded run shows such a change only where one of its
calls got there, so a change under a condition that no call met is looked for in the source.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Sequence

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import all_given, is_name, last_name, root_of
from graphmend_codemod.analysis.scope import SCOPES, parameter_names, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import closure, handed_on, leading_to, run_by
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import instance_name, local_names
from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import demand_unchanged

_SETS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__", "vars"})
_DEEPEST = 4
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def check_settled_before(
    site: Site, statements: Sequence[ast.stmt], objects: Collection[str], numbers: Collection[str] | None
) -> None:
    """NotProven where an object that the statements read may be changed in compiled code before them.

    `numbers` are the attributes that they read of the instance, if all of these are numbers, flags or words: layers
    that run, and what is written into tensors, change none of them.
    """
    calls, node = calls_in(site.source.text), site.evaluator.scope.node
    function = calls.at(node.lineno)
    if function is None or function.node.name != node.name:
        return
    memory, own = ModuleMemory(site, calls), site.evaluator.scope.self_name
    inside = range(statements[0].lineno, (statements[-1].end_lineno or statements[-1].lineno) + 1)
    _demand_settled_globals(site, calls, function, inside)
    if own is not None and own in objects:
        read = _read_of_instance(calls, function.owner)
        for each in _run_around(calls, function, inside):
            instance = instance_name(each)
            if calls.related(each.owner, function.owner):
                _demand_no_change(memory, each, instance, inside, numbers)
            _demand_no_change_outside(each, instance, read)
    looped = any(isinstance(each, _LOOPS) for each in site.place.parents)
    without = inside if looped else range(inside.start, sys.maxsize)
    for name in objects:
        if name != own:
            _demand_no_change(memory, function, name, without)


def _run_around(calls: ModuleCalls, function: Definition, inside: range) -> list[Definition]:
    """The functions of the file that may run in a graph with one of them, outside of some lines of it.

    What a method calls whose instance is not `self` is not known, so that all of these may run.
    """
    others = [each for each in calls.definitions.values() if instance_name(each) not in ("", "self")]
    around = leading_to(calls, function, *others)
    run = run_by(calls, *around, follows=lambda call: call.lineno not in inside)
    return [each for each in run if each.node.name != "__init__"]


def _demand_settled_globals(site: Site, calls: ModuleCalls, function: Definition, inside: range) -> None:
    """NotProven where a function that the statements call reads a variable of the file that something changes."""
    called = [callee for call, callee in calls.callees(function, nested=True) if call.lineno in inside]
    for each in run_by(calls, *called):
        bound = local_names(each.node)
        for part in walk(each.node):
            if isinstance(part, ast.Name) and part.id not in bound:
                demand_unchanged(site, part.id)


def _demand_no_change_outside(function: Definition, instance: str, read: Collection[str]) -> None:
    """NotProven for `self.part.count += 1` and `part.scale.mul_(2)`, where `part` may be the instance."""
    for part in walk(function.node):
        written: ast.AST | None = part if not isinstance(getattr(part, "ctx", None), ast.Load) else None
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            written = part.func.value
        if isinstance(written, ast.Subscript):
            written = written.value
        if isinstance(written, ast.Attribute) and written.attr in read and not is_name(written.value, instance):
            raise NotProven(f"`{short(part)}` may change the instance in the same graph, before an operator reads it")


def _read_of_instance(calls: ModuleCalls, owner: str) -> set[str]:
    """The attributes that methods of a class read of their instance, and functions to which they hand it."""
    own = [(each, instance_name(each)) for each in calls.family(owner)]

    def names(function: Definition, name: str) -> set[str]:
        return {name, *_parts_of(function, name), *_inner_parameters(function)}

    def handed(place: tuple[Definition, str]) -> Iterator[tuple[Definition, str]]:
        held = names(*place)
        for call, callee in calls.callees(place[0], nested=True):
            yield from ((callee, to) for to in callee.arguments(call).holding(lambda each: root_of(each) in held))

    read: set[str] = set()
    for function, name in closure(own, handed):
        held, parts = names(function, name), (each for each in walk(function.node) if isinstance(each, ast.Attribute))
        read |= {each.attr for each in parts if isinstance(each.value, ast.Name) and each.value.id in held}
    return read


def _inner_parameters(function: Definition) -> Iterator[str]:
    """The parameters of functions inside of a function, to any of which it may hand the instance."""
    for part in walk(function.node):
        if isinstance(part, SCOPES) and part is not function.node and not isinstance(part, ast.ClassDef):
            yield from parameter_names(part)


def _demand_no_change(
    memory: ModuleMemory, function: Definition, name: str, without: range, numbers: Collection[str] | None = None
) -> None:
    for part in _changing(memory, function, name, numbers):
        if getattr(part, "lineno", 0) not in without:
            reason = f"`{short(part)}` may change `{name}` in the same graph, and an operator would see what was before"
            raise NotProven(reason)


def _changing(
    memory: ModuleMemory, function: Definition, name: str, numbers: Collection[str] | None = None, depth: int = 0
) -> Iterator[ast.AST]:
    """What gives an object another attribute, or writes into a tensor of it; one of `numbers`, if these are given."""
    meant = {name, *_parts_of(function, name)}
    for part in walk(function.node):
        if isinstance(part, (ast.Attribute, ast.Subscript)):
            if root_of(part) in meant and not isinstance(part.ctx, ast.Load) and _is_of(part, numbers):
                yield part
        elif isinstance(part, ast.Call) and any(is_name(each, name) for each in all_given(part)):
            sets = last_name(part.func) in _SETS
            if sets or _hands_to_change(memory, function, part, name, numbers, depth):
                yield part
    for part, written in memory.writes(function):
        plain = isinstance(part, ast.Call) and is_name(part.func, name)
        found = set() if plain else _aliased(memory, function, written)
        if name in found or (numbers is None and any(each.startswith(f"{name}.") for each in found)):
            yield part


def _is_of(stored: ast.Attribute | ast.Subscript, numbers: Collection[str] | None) -> bool:
    """True where a store may bind one of some attributes, of any object: `part.count = 1`, `self.__dict__[name]`."""
    names = {each.attr for each in walk(stored) if isinstance(each, ast.Attribute)}
    return numbers is None or "__dict__" in names or (isinstance(stored, ast.Attribute) and stored.attr in numbers)


def _parts_of(function: Definition, name: str) -> set[str]:
    """The names that hold what an object has: `part` for `part = self.part`."""
    stores = (part for part in walk(function.node) if isinstance(part, ast.Assign) and root_of(part.value) == name)
    return {target.id for store in stores for target in store.targets if isinstance(target, ast.Name)}


def _hands_to_change(
    memory: ModuleMemory,
    function: Definition,
    call: ast.Call,
    name: str,
    numbers: Collection[str] | None,
    depth: int,
) -> bool:
    """True for `fill(cache, x)`, where a function of the file sets an attribute of what it gets."""
    handed = handed_on(memory.calls, function, call, lambda each: is_name(each, name)) if depth < _DEEPEST else None
    return handed is not None and any(
        next(_changing(memory, handed.callee, each, numbers, depth + 1), None) is not None for each in handed.names
    )


def _aliased(memory: ModuleMemory, function: Definition, names: Collection[str]) -> set[str]:
    """Some names, with those of which they are another name or a view: `self.mean` for `mean = self.mean`."""
    links = [each for each in memory.links(function) if not isinstance(getattr(each[0], "value", None), ast.Call)]
    return memory.connected(function, links, names)
