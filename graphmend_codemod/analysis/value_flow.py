"""Value flow through the calls of a module: who gives a parameter what, who gets what a name holds, what comes back.

`ModuleCalls` knows which function a call runs, and who calls a function. What is asked of values across calls is asked
here, so that a proof brings nothing but its own question about one expression:

- what may this parameter hold: `given_for`, which has the argument of each call in the module;
- which names of a function hold it: `names_holding` of its `bindings_in`, containers among them;
- who gets what this expression holds: `handed_on`, with the parameters of the callee that do;
- what does this call give: `returned`, the expressions behind `return`;
- what may this attribute hold: `stores_of`, wherever in the module it is set, and `put_into`, where it is a list;
- what else runs before or after it: `possible_callers`, layers of lists among them, `leading_to` and `run_by`.

`closure` is the one walk that comes to an end where calls go round in circles. Where a question is asked of a function
and of those that it calls, `ModuleCalls.remembered` takes what a circle gets to see, as `meanwhile`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple, TypeVar

from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls
from graphmend_codemod.analysis.patterns import all_given, is_attribute, is_name, last_name, names_called
from graphmend_codemod.analysis.scope import dotted, walk, walk_in_layers, walk_scope

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")


class Given(NamedTuple):
    """A call of a function, and the argument that one of its parameters certainly holds; None where that is unclear."""

    caller: Definition
    call: ast.Call
    argument: ast.expr | None


class Handed(NamedTuple):
    """The function that a call runs, with the parameters that may hold what was asked for."""

    callee: Definition
    names: frozenset[str]


class Store(NamedTuple):
    """A place that gives an attribute another value, None where the value is not plain; `inside` is the class of it."""

    target: ast.Attribute
    value: ast.expr | None
    inside: str


def closure(first: Iterable[T], further: Callable[[T], Iterable[T]], deepest: int = -1) -> Iterator[T]:
    """What some things lead to, themselves first, each once and the nearest before others.

    `deepest` is how many steps are taken, as many as there are if left out.
    """
    found = set[T]()
    level, steps = list(dict.fromkeys(first)), 0
    while level:
        found.update(level)
        yield from level
        if steps == deepest:
            return
        more = dict.fromkeys(each for one in level for each in further(one))
        level, steps = [each for each in more if each not in found], steps + 1


def names_holding(
    bindings: Iterable[tuple[str, V]], holds: Callable[[V, AbstractSet[str]], bool], first: Iterable[str] = ()
) -> frozenset[str]:
    """The names that some bindings give what is meant: `holds` says it of a value, with the names that have it already.

    The `first` of them have it before any binding.
    """
    found, pairs = set(first), list(bindings)
    while more := {name for name, value in pairs if holds(value, found)} - found:
        found |= more
    return frozenset(found)


def leading_to(calls: ModuleCalls, *functions: Definition) -> list[Definition]:
    """Some functions, and those of the module that may call them, directly or not."""
    return list(closure(functions, lambda each: (caller for caller, _ in possible_callers(calls, each))))


def run_by(
    calls: ModuleCalls,
    *functions: Definition,
    follows: Callable[[ast.Call], bool] = lambda _: True,
    nested: bool = True,
    deepest: int = -1,
) -> Iterator[Definition]:
    """Some functions, and those of the module that they run, directly or not, by calls that are to be followed.

    Functions that are `nested` in them may run as well.
    """

    def called(function: Definition) -> Iterator[Definition]:
        for call, callee in calls.callees(function, nested=nested):
            if follows(call):
                yield callee

    return closure(functions, called, deepest)


def given_for(calls: ModuleCalls, function: Definition, name: str) -> list[Given]:
    """What each call of a function gives for one of its parameters."""
    return [Given(caller, call, function.arguments(call).get(name)) for caller, call in calls.callers(function)]


def handed_on(
    calls: ModuleCalls, function: Definition, call: ast.AST | None, asked: Callable[[ast.expr], bool]
) -> Handed | None:
    """Where a call takes the expressions for which the answer is yes; None for no call, or none into the module."""
    callee = calls.callee(function, call) if isinstance(call, ast.Call) else None
    if callee is None or not isinstance(call, ast.Call):
        return None
    return Handed(callee, callee.arguments(call).holding(asked))


def returned(function: ast.AST) -> list[ast.expr]:
    """The expressions that a function returns, without those of functions inside of it."""
    found = (part.value for part in walk_scope(function) if isinstance(part, ast.Return))
    return [each for each in found if each is not None]


def stores_of(calls: ModuleCalls, owner: str, attribute: str) -> list[Store]:
    """The places of the module that may set an attribute of instances of a class, its bases or its heirs."""
    found = attribute_stores(calls).get(attribute, ())
    return [
        each
        for each in found
        if not is_name(each.target.value, "self") or not each.inside or calls.related(each.inside, owner)
    ]


def attribute_stores(calls: ModuleCalls) -> dict[str, list[Store]]:
    """All places of the module that set attributes, by the names of these."""
    return calls.remembered("attribute stores", None, lambda: _attribute_stores(calls))


def _storing(calls: ModuleCalls) -> list[tuple[str, list[ast.AST]]]:
    """The assignments, calls and attributes of each class and statement of the module, in one look at all of it."""
    kinds = {ast.Assign, ast.AnnAssign, ast.Attribute, ast.Call}

    def look() -> list[tuple[str, list[ast.AST]]]:
        return [
            (each.name if isinstance(each, ast.ClassDef) else "", [part for part in walk(each) if type(part) in kinds])
            for each in calls.tree.body
        ]

    return calls.remembered("storing", None, look)


def _attribute_stores(calls: ModuleCalls) -> dict[str, list[Store]]:
    found: dict[str, list[Store]] = {}
    for inside, nodes in _storing(calls):
        values: dict[int, ast.expr | None] = {}
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                values |= {id(each): node.value for each in getattr(node, "targets", [getattr(node, "target", None)])}
        for node in nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr, []).append(Store(node, values.get(id(node)), inside))
    return found


def put_into(calls: ModuleCalls, owners: Container[str], attribute: str) -> list[ast.Call | ast.Assign]:
    """The calls `self.parts.append(part)` and statements `self.parts[0] = part` of methods of some classes.

    An empty `attribute` stands for the instance itself: `self.append(part)`.
    """
    found = calls.remembered("puts", None, lambda: _puts(calls)).get(attribute, [])
    return [node for owner, node in found if owner in owners]


def _puts(calls: ModuleCalls) -> dict[str, list[tuple[str, ast.Call | ast.Assign]]]:
    found: dict[str, list[tuple[str, ast.Call | ast.Assign]]] = {}
    for owner, node in ((inside, part) for inside, nodes in _storing(calls) for part in nodes if inside):
        if isinstance(node, ast.Call):
            holders = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        elif isinstance(node, ast.Assign):
            holders = [each.value for each in node.targets if isinstance(each, ast.Subscript)]
        else:
            continue
        for each in holders:
            if is_name(each, "self") or is_attribute(each, "self"):
                found.setdefault(getattr(each, "attr", ""), []).append((owner, node))
    return found


def possible_callers(calls: ModuleCalls, function: Definition) -> list[tuple[Definition, ast.Call]]:
    """The calls of a function, and those of attributes that may hold a layer whose `forward` it is, among others."""
    known = calls.callers(function)
    if not function.owner or function.node.name != "forward":
        return known
    layers = calls.remembered("calls of layers", None, lambda: _calls_of_layers(calls)).get(function.key, ())
    return [*known, *(each for each in layers if all(each[1] is not call for _, call in known))]


def _calls_of_layers(calls: ModuleCalls) -> dict[Key, list[tuple[Definition, ast.Call]]]:
    """For the `forward` of each class the calls of attributes that may hold a layer of it."""
    found: dict[Key, list[tuple[Definition, ast.Call]]] = {}
    for caller, call in calls.all_calls:
        if caller.owner and (held := calls.held(caller, call)) is not None:
            about = (caller.owner, held)
            for key in calls.remembered("forwards", about, partial(_forwards, calls, caller.owner, held)):
                found.setdefault(key, []).append((caller, call))
    return found


def _forwards(calls: ModuleCalls, owner: str, attribute: str) -> set[Key]:
    """The `forward` of each class of the module of which an attribute may hold a layer, alone or among others."""
    made = calls.remembered("layers made", attribute, lambda: _layers_made(calls, attribute))
    names = (name for inside, names in made if not inside or calls.related(inside, owner) for name in names)
    return {key for name in names if (key := calls.method(name, "forward")) is not None}


def _layers_made(calls: ModuleCalls, attribute: str) -> list[tuple[str, list[str]]]:
    """The classes of the module that are called for an attribute, by the class that does; for most there are none."""
    places: list[tuple[str, list[ast.expr]]] = [
        (each.inside if is_name(each.target.value, "self") else "", [each.value])
        for each in attribute_stores(calls).get(attribute, ())
        if each.value is not None
    ]
    for owner, node in calls.remembered("puts", None, lambda: _puts(calls)).get(attribute, ()):
        places.append((owner, all_given(node) if isinstance(node, ast.Call) else [node.value]))
    called = (
        (inside, names_called(part for each in values for part in walk_in_layers(each))) for inside, values in places
    )
    found = ((inside, [name for name in names if calls.class_named(name) is not None]) for inside, names in called)
    return [(inside, names) for inside, names in found if names]


# Which names and containers hold an object itself

_HAND_ON = frozenset("copy dict enumerate get items iter list next pop popitem reversed set tuple values zip".split())
_PUTS = frozenset("add append appendleft extend insert setdefault update".split())
_DISPLAYS = (
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.ListComp,
    ast.GeneratorExp, ast.SetComp, ast.keyword,
)  # fmt: skip


def bindings_in(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a node binds to what an expression holds, and the lists that it puts it into."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, (ast.NamedExpr, ast.AugAssign)):
        pairs = [(node.target, node.value)]
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        pairs = [(node.target, node.iter)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS:
        pairs = [(node.func.value, each) for each in all_given(node)]
    for target, value in pairs:
        for each in objects_in(target):
            if (name := dotted(each)) is not None:
                yield name, value


def objects_in(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose objects another one is or has in it: `a` and `b` for `[a, (b, c + d)]`."""
    todo: list[ast.AST] = [node]
    for each in todo:
        if isinstance(each, ast.Call):
            yield each
            handed = last_name(each.func) in _HAND_ON
            todo += (
                [*all_given(each), *([each.func.value] if isinstance(each.func, ast.Attribute) else [])]
                if handed
                else []
            )
        elif isinstance(each, ast.Subscript):
            yield each
            todo.append(each.value)
        elif isinstance(each, _DISPLAYS) or (isinstance(each, ast.BinOp) and _is_list(each.left, each.right)):
            todo += [part for part in ast.iter_child_nodes(each) if isinstance(part, (ast.expr, ast.keyword))]
        elif isinstance(each, ast.expr):
            yield each


def _is_list(*nodes: ast.expr) -> bool:
    return any(isinstance(each, (ast.List, ast.Tuple)) for each in nodes)
