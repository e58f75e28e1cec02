"""What other files of the project say of a value: what a function there returns, what callers there give.

A guess, for advice alone, but for the text of a function (`defined`). Nothing is followed where only some files of the
project were read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.project.index.facts import ClassFacts, Home, IndexView

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site

LONGEST = 120_000
"""How many characters of a file are worth reading for a guess."""
_MOST = 8
_CALLS = ("forward", "__call__")


def calls_of(text: str) -> ModuleCalls | None:
    """The calls in another file; None where it takes longer to read than a guess is worth."""
    if len(text) > LONGEST:
        return None
    from graphmend_codemod.rules.proofs.memory import other_callers  # a commit hook waits for it

    return other_callers.calls_of(text)


def defined(index: IndexView, qualified: str) -> tuple[Home, Definition] | None:
    """A function of the project with its file; None where there is none, or it is not worth reading."""
    return _in_file(index, qualified) if index.function(qualified) is not None else None


def constructor(index: IndexView, qualified: str) -> tuple[Home, Definition] | None:
    """The constructor that a class of the project has itself, with its file; None as for `defined`."""
    return _in_file(index, qualified, ".__init__")


def _in_file(index: IndexView, qualified: str, method: str = "") -> tuple[Home, Definition] | None:
    found = index.home(qualified)
    calls = calls_of(found[0].text) if found is not None else None
    if found is None or calls is None:
        return None
    return next(((found[0], each) for each in calls.named(f"{found[1]}{method}")), None)


def function_of(site: Site, qualified: str) -> tuple[str, ModuleCalls, Definition] | None:
    """A function of the file of a site or of another, with its module and the calls there; None as for `defined`."""
    own = site.summary.name
    if qualified.startswith(f"{own}."):
        calls = calls_in(site.source.text)
        for each in calls.named(qualified.removeprefix(f"{own}.")):
            return own, calls, each
    other = defined(site.evaluator.scope.index, qualified)
    there = calls_of(other[0].text) if other is not None else None
    return (other[0].module, there, other[1]) if other is not None and there is not None else None


def callers(index: IndexView, qualified: str) -> Iterator[tuple[Home, Definition, ast.Call]]:
    """The calls of a function or class of the project in other files, by the name that it has where it stands."""
    name = qualified.rpartition(".")[2]
    for home in index.naming(qualified)[:_MOST]:
        calls = calls_of(home.text)
        for caller, call in _named(calls, name) if calls is not None else ():
            if index.resolve(home.module, dotted(call.func) or "?") == qualified:
                yield home, caller, call


def constructions(calls: ModuleCalls, name: str) -> Iterator[tuple[Definition, ast.Call]]:
    """The calls in a file of a class at its top level."""
    return ((caller, call) for caller, call in _named(calls, name) if isinstance(call.func, ast.Name))


def _named(calls: ModuleCalls, name: str) -> list[tuple[Definition, ast.Call]]:
    return calls.remembered(
        "named", name, lambda: [each for each in calls.all_calls if last_name(each[1].func) == name]
    )


def method_of(index: IndexView, facts: ClassFacts | None, attributes: list[str]) -> str | None:
    """The qualified name of `self.a.b()`, given `["a", "b"]`: of a method, or of what calling a layer runs."""
    for position, name in enumerate(attributes):
        if facts is None:
            return None
        if position == len(attributes) - 1 and name in facts.methods:
            return facts.methods[name]
        fact = facts.attributes.get(name)
        facts = index.class_facts(fact.callee) if fact is not None and fact.callee is not None else None
    return called_as(facts)


def called_as(facts: ClassFacts | None) -> str | None:
    """What calling an instance of a class runs."""
    found = (facts.methods.get(each) for each in _CALLS) if facts is not None else iter(())
    return next((each for each in found if each is not None), None)
