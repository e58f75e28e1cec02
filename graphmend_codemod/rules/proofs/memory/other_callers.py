"""Other files of the project, for the proofs on memory: what their names mean, and the calls of a function in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphmend_codemod.analysis.bound_names import is_bound_around
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.gradients import set_by_statement
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import UNKNOWN, Value
from graphmend_codemod.core.source import SourceError, parse_text
from graphmend_codemod.project.index.facts import Home, IndexView


@dataclass(frozen=True)
class _Scope:
    module: str
    index: IndexView


@dataclass(frozen=True)
class _Evaluator:
    scope: _Scope


@dataclass(frozen=True)
class _Source:
    text: str


class OtherFile:
    """What the proofs on memory ask of a site, for another file: its text, and what its names mean.

    Of values nothing is known there.
    """

    def __init__(self, home: Home, index: IndexView) -> None:
        self.evaluator = _Evaluator(_Scope(home.module, index))
        self.source = _Source(home.text)
        self.sets_gradient_mode = set_by_statement(home.text)

    def resolve_global(self, node: ast.expr) -> str | None:
        """See `Site.resolve_global`."""
        name, scope = dotted(node), self.evaluator.scope
        if name is None:
            return None
        root = name.partition(".")[0]
        bound = is_bound_around(self.source.text, node, root, scope.index.resolve(scope.module, root))
        return None if bound else scope.index.resolve(scope.module, name)

    def value(self, node: ast.expr) -> Value:
        """See `Site.value`."""
        del node
        return UNKNOWN


@lru_cache(maxsize=16)
def calls_of(text: str) -> ModuleCalls | None:
    """The calls in another file; None where Python cannot parse it."""
    try:
        return ModuleCalls(parse_text(text))
    except SourceError:
        return None


def function_of(index: IndexView, qualified: str) -> tuple[OtherFile, ModuleCalls, Definition] | None:
    """A function at the top level of a file of the project, with that; None where it is no such one, or defined twice.

    None as well where not all files were read.
    """
    found = index.home(qualified) if index.function(qualified) is not None else None
    calls = calls_of(found[0].text) if found is not None and "." not in found[1] else None
    if found is None or calls is None:
        return None
    functions = [each for each in calls.definitions.values() if each.qualname == found[1]]
    return (OtherFile(found[0], index), calls, functions[0]) if len(functions) == 1 else None


def callers(
    index: IndexView, qualified: str
) -> Iterator[tuple[OtherFile, ModuleCalls, list[tuple[Definition, ast.Call]]]]:
    """The other files that write in place, with their calls of a function at the top level of its module."""
    for home in index.writing_callers(qualified):
        calls, file = calls_of(home.text), OtherFile(home, index)
        every = calls.all_calls if calls is not None else ()
        found = [each for each in every if file.resolve_global(each[1].func) == qualified]
        if found and calls is not None:
            yield file, calls, found
