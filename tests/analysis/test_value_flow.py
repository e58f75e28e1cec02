"""What one module says of values across its calls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_name, root_of
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.value_flow import (
    bindings_in,
    closure,
    given_for,
    handed_on,
    leading_to,
    names_holding,
    possible_callers,
    returned,
    run_by,
    stores_of,
)

MODULE = """
class Part:
    def forward(self, x, *rest, scale=1, **words):
        return self.half(x)

    def half(self, x):
        self.kept = x
        return x / 2

class Model:
    def __init__(self):
        self.part = Part()

    def forward(self, x, y):
        def inner(z):
            return deep(z)

        y = self.part(x, y, scale=2, other=y)
        return again(y, 3)

def again(x, n):
    return again(x, n - 1) if n else round_trip(x)

def round_trip(x):
    return again(x, 0)

def deep(x):
    return x

def change(anything):
    anything.kept = None
    anything.part.kept += 1
"""


def module() -> ModuleCalls:
    return ModuleCalls(ast.parse(MODULE))


def named(calls: ModuleCalls, qualname: str) -> Definition:
    return next(each for each in calls.definitions.values() if each.qualname == qualname)


def names(functions: list[Definition]) -> list[str]:
    return [each.qualname for each in functions]


def test_walk_in_a_circle_ends_and_has_the_nearest_first() -> None:
    edges = {1: [2, 3], 2: [4], 3: [1], 4: [5], 5: [1]}
    assert list(closure([1], edges.__getitem__)) == [1, 2, 3, 4, 5]
    assert list(closure([1], edges.__getitem__, deepest=1)) == [1, 2, 3]
    assert list(closure([1], edges.__getitem__, deepest=0)) == [1]


def test_callers_and_callees_directly_or_not() -> None:
    calls = module()
    assert names(leading_to(calls, named(calls, "Part.half"))) == ["Part.half", "Part.forward", "Model.forward"]
    found = names(list(run_by(calls, named(calls, "Model.forward"))))
    assert [sorted(found[:1]), sorted(found[1:4]), sorted(found[4:])] == [
        ["Model.forward"],
        ["Part.forward", "again", "deep"],
        ["Part.half", "round_trip"],
    ]


def test_calls_in_nested_functions_are_run_only_where_they_are_asked_for() -> None:
    calls = module()
    assert "deep" not in names(list(run_by(calls, named(calls, "Model.forward"), nested=False)))


def test_calls_that_are_not_to_be_followed_lead_nowhere() -> None:
    calls = module()
    found = run_by(calls, named(calls, "Model.forward"), follows=lambda call: not is_name(call.func, "again"))
    assert "round_trip" not in names(list(found))


def test_what_each_call_gives_for_a_parameter() -> None:
    calls = module()
    found = given_for(calls, named(calls, "again"), "n")
    given = {each.caller.qualname: ast.unparse(each.argument) for each in found if each.argument is not None}
    assert given == {"Model.forward": "3", "again": "n - 1", "round_trip": "0"}


def test_what_is_handed_on_is_in_gathering_parameters_as_well() -> None:
    calls = module()
    forward = named(calls, "Model.forward")
    call = next(each for each, callee in calls.callees(forward) if callee.qualname == "Part.forward")
    handed = handed_on(calls, forward, call, lambda each: is_name(each, "y"))
    assert handed is not None
    assert handed.callee.qualname == "Part.forward"
    assert handed.names == {"rest", "words"}
    assert handed_on(calls, forward, ast.Name("x", ast.Load()), lambda _: True) is None


def test_a_function_returns_nothing_of_those_inside_of_it() -> None:
    calls = module()
    assert [ast.unparse(each) for each in returned(named(calls, "Model.forward").node)] == ["again(y, 3)"]


def test_attribute_is_set_by_its_classes_and_by_whoever_may_hold_an_instance() -> None:
    calls = module()
    found = {ast.unparse(each.target): each for each in stores_of(calls, "Part", "kept")}
    assert set(found) == {"self.kept", "anything.kept", "anything.part.kept"}
    assert found["anything.part.kept"].value is None
    assert set(map(ast.unparse, (each.target for each in stores_of(calls, "Model", "kept")))) == {
        "anything.kept",
        "anything.part.kept",
    }


LAYERS = """
class Part:
    def forward(self, x): ...

class Other:
    def forward(self, x): ...

class Model:
    def __init__(self):
        self.parts, self.last, self.table = [], None, {}
        self.parts.append(Part())
        self.table["a"] = Part()

    def forward(self, x, i):
        for part in self.parts:
            x = part(x)
        return self.last(self.table[i](x))

def change(model):
    model.last = Part()
"""


def test_layers_that_are_put_somewhere_later_may_be_called_there() -> None:
    calls = ModuleCalls(ast.parse(LAYERS))
    found = possible_callers(calls, named(calls, "Part.forward"))
    assert {ast.unparse(call.func) for _, call in found} == {"part", "self.table[i]", "self.last"}
    assert possible_callers(calls, named(calls, "Other.forward")) == []


def readers(calls: ModuleCalls, function: Definition, name: str) -> set[Definition]:
    """As the documentation has it."""

    def further(place: tuple[Definition, str]) -> Iterator[tuple[Definition, str]]:
        here, first = place
        bindings = (each for node in walk_scope(here.node) for each in bindings_in(node))
        names = names_holding(bindings, lambda value, known: root_of(value) in known, {first})
        for call in (each for each in walk_scope(here.node) if isinstance(each, ast.Call)):
            if (handed := handed_on(calls, here, call, lambda given: root_of(given) in names)) is not None:
                yield from ((handed.callee, parameter) for parameter in handed.names)

    return {here for here, _ in closure([(function, name)], further)}


def test_example_of_the_documentation() -> None:
    calls = module()
    found = readers(calls, named(calls, "Model.forward"), "x")
    assert {each.qualname for each in found} == {"Model.forward", "Part.forward", "Part.half"}
    shown = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")
    body = inspect.getsource(readers).replace('    """As the documentation has it."""\n\n', "")
    assert body in shown


LEADS = {"a": "b", "b": "ac", "c": "bd", "d": "", "e": "a"}


def reached(calls: ModuleCalls, name: str, meanwhile: frozenset[str]) -> frozenset[str]:
    """What a name leads to, as one function asks of those that it calls."""

    def look() -> frozenset[str]:
        return frozenset().union(LEADS[name], *(reached(calls, each, meanwhile) for each in LEADS[name]))

    return calls.remembered("reached", name, look, meanwhile)


@pytest.mark.parametrize("order", list(permutations("abce")))
def test_answers_in_a_circle_do_not_depend_on_who_was_asked_first(order: tuple[str, ...]) -> None:
    calls = module()
    assert [reached(calls, each, frozenset()) for each in order] == [frozenset("abcd")] * 4


def test_answer_that_never_settles_is_what_was_taken_for_it() -> None:
    calls, turns = module(), iter(range(1000))

    def look() -> int:
        calls.remembered("turns", None, look, -1)
        return next(turns)

    assert calls.remembered("turns", None, look, -1) == -1


def test_answer_is_forgotten_where_a_reason_ends_it() -> None:
    calls = module()

    def fail() -> int:
        calls.remembered("fails", None, fail, 1)
        raise LookupError

    with pytest.raises(LookupError):
        calls.remembered("fails", None, fail, 1)
    assert calls.remembered("fails", None, lambda: 2, 1) == 2
