"""Whether an object may change in a graph before an operator reads it.

While Dynamo traces, what it changes in an object, and what the graph writes into a tensor of one, becomes real when the
graph has run: an operator in that graph reads what was before. A recorded run shows such a change only where one of its
calls got there, so a change under a condition that no call met is looked for in the source.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import (
    all_given,
    all_names,
    is_attribute,
    is_name,
    last_name,
    root_of,
    stores_name,
)
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


class Apart(NamedTuple):
    """Attributes of the instance that statements `read`, and those of `layers` that may change in the same graph.

    `plain` are attributes that have to be numbers or words: what gets one of them changes nothing of the instance.
    What the `methods` read is read as well: they have to be those of this file.
    """

    read: frozenset[str] | None = None
    methods: frozenset[str] = frozenset()
    layers: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


def check_settled_before(
    site: Site,
    statements: Sequence[ast.stmt],
    objects: Collection[str],
    numbers: Collection[str] | None,
    results: Collection[str],
    plain: Callable[[str], bool],
) -> Apart:
    """NotProven where an object that the statements read may be changed in compiled code before them.

    `numbers` are the attributes that they read of the instance, if all of these are numbers, flags or words: layers
    that run, and what is written into tensors, change none of them. The operator gives `results`, tensors with memory
    of their own. `plain` tells of an attribute whether it may have been a number or word in each call. Returns what has
    to be apart, as only the instance itself can tell.
    """
    calls, node = calls_in(site.source.text), site.evaluator.scope.node
    function = calls.at(node.lineno)
    if function is None or function.node.name != node.name:
        return Apart()
    memory, own = ModuleMemory(site, calls), site.evaluator.scope.self_name
    inside = range(statements[0].lineno, (statements[-1].end_lineno or statements[-1].lineno) + 1)
    _demand_settled_globals(site, calls, function, inside)
    apart = Apart()
    if own is not None and own in objects:
        read = _read_of_instance(calls, function.owner)
        if numbers is None:
            apart = _read_by(calls, function, statements, own)
        for each in _run_around(calls, function, inside):
            instance = instance_name(each)
            if calls.related(each.owner, function.owner):
                around = _Around(instance, inside)
                if each is function:
                    arms = tuple(_other_arms(site, statements[0], own))
                    around = _Around(instance, inside, results, arms, plain)
                apart = _with_layers(memory, each, around, numbers, apart)
            _demand_no_change_outside(each, instance, read)
    looped = any(isinstance(each, _LOOPS) for each in site.place.parents)
    without = inside if looped else range(inside.start, sys.maxsize)
    for name in objects:
        if name != own:
            _demand_no_change(memory, function, name, without)
    return apart if apart.layers else apart._replace(read=None)


class _Around(NamedTuple):
    """A function around an operator: its instance, the lines of the operator, the names of what that gives, and the
    lines that run in other instances alone."""

    instance: str
    inside: range
    results: Collection[str] = ()
    elsewhere: Sequence[range] = ()
    plain: Callable[[str], bool] = lambda _: False

    def is_settled(self, function: Definition, part: ast.AST) -> bool:
        """True for what stands in the operator, and for a method of a tensor that it gave: `y.reshape(n, -1)`."""
        line = getattr(part, "lineno", 0)
        if line in self.inside or any(line in each for each in self.elsewhere):
            return True
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or line < self.inside.stop:
            return False
        name = root_of(part.func)
        between = range(self.inside.stop, line)
        again = any(stores_name(each, name or "") and each.lineno in between for each in walk(function.node))
        given = any(root_of(each) == self.instance for each in all_given(part))
        return name in self.results and not again and not given


def _other_arms(site: Site, statement: ast.stmt, own: str) -> Iterator[range]:
    """The lines of arms that the instance alone decides against: of `if "flash" in self.kind:`, in its `else`."""
    for test in (each for each in site.place.parents if isinstance(each, ast.If)):
        names = all_names(test.test)
        for arm, other in ((test.body, test.orelse), (test.orelse, test.body)):
            if arm and other and names == {own} and arm[0].lineno <= statement.lineno <= (arm[-1].end_lineno or 0):
                yield range(other[0].lineno, (other[-1].end_lineno or 0) + 1)


def _with_layers(
    memory: ModuleMemory, function: Definition, around: _Around, numbers: Collection[str] | None, apart: Apart
) -> Apart:
    """NotProven where a function may change the instance around an operator, but by running layers of others.

    A layer that nothing is known of may change itself, and whatever it holds: where that has no part in what the
    statements read, they read what was before and after.
    """
    found, plain = dict.fromkeys(apart.layers), dict.fromkeys(apart.plain)
    instance = around.instance
    for part in _changing(memory, function, instance, numbers):
        if around.is_settled(function, part):
            continue
        if given := _plain_given(part, around):
            plain.update(given)
            continue
        held = _layer_of(function, part, instance)
        if held is None or apart.read is None or held in apart.read:
            raise NotProven(_would_change(part, instance))
        found[held] = None
    return apart._replace(layers=tuple(found), plain=tuple(plain))


def _plain_given(call: ast.AST, around: _Around) -> dict[str, None]:
    """What a call is given of the instance, if that may be numbers and words: `choose(self.config.kind)`."""
    if not isinstance(call, ast.Call) or root_of(call.func) == around.instance:
        return {}
    given = [each for each in all_given(call) if around.instance in all_names(each)]
    texts = dict.fromkeys(ast.unparse(each) for each in given)
    chains = all(isinstance(each, ast.Attribute) and root_of(each) == around.instance for each in given)
    return texts if chains and all(map(around.plain, texts)) else {}


def _layer_of(function: Definition, call: ast.AST, instance: str) -> str | None:
    """The attribute of the instance whose layers a call runs: `layer(x)` in `for layer in self.layers`; else None.

    None as well for a call that is given the instance, or what leads to it.
    """
    if not isinstance(call, ast.Call) or any(root_of(each) == instance for each in all_given(call)):
        return None
    if isinstance(call.func, (ast.Attribute, ast.Subscript)):
        held = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        return held.attr if is_attribute(held, instance) else None
    if not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    stores = [part for part in walk(function.node) if stores_name(part, name)]
    loops = [each for each in walk(function.node) if isinstance(each, ast.For) and is_name(each.target, name)]
    if len(stores) != 1 or len(loops) != 1 or stores[0] is not loops[0].target:
        return None
    return loops[0].iter.attr if is_attribute(loops[0].iter, instance) else None


def _read_by(calls: ModuleCalls, function: Definition, statements: Sequence[ast.stmt], own: str) -> Apart:
    """The attributes of the instance that statements read, themselves or in methods; None where they hand it on."""
    methods = {each.node.name: each for each in calls.family(function.owner)}
    read: set[str] = set()
    waiting: list[tuple[str, ast.AST]] = [(own, each) for each in statements]
    while waiting:
        instance, node = waiting.pop()
        parts = [node, *walk(node)]
        inside = {id(each.value): each for each in parts if isinstance(each, ast.Attribute)}
        for part in (each for each in parts if is_name(each, instance)):
            attribute = inside.get(id(part))
            if attribute is None or not isinstance(attribute.ctx, ast.Load):
                return Apart()
            method = methods.get(attribute.attr)
            if attribute.attr in read:
                continue
            read.add(attribute.attr)
            if method is not None:
                several = sum(each.node.name == attribute.attr for each in calls.family(function.owner)) > 1
                if several or method.node.decorator_list or instance_name(method) != "self":
                    return Apart()
                waiting.append(("self", method.node))
    return Apart(frozenset(read - methods.keys()), frozenset(read & methods.keys()))


def _would_change(part: ast.AST, name: str) -> str:
    return f"`{short(part)}` may change `{name}` in the same graph, and an operator would see what was before"


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


def _demand_no_change(memory: ModuleMemory, function: Definition, name: str, without: range) -> None:
    for part in _changing(memory, function, name):
        if getattr(part, "lineno", 0) not in without:
            raise NotProven(_would_change(part, name))


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
