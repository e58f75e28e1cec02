"""What names held before and behind statements, in the calls of a recorded run."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from graphmend_codemod.analysis.scope import as_written
from graphmend_codemod.core.settings import SeenCalls
from graphmend_codemod.rules.framework.site import Site

Fact = list[Any]
RESULT, OWNER, RANDOM, AUTOGRAD, AUTOCAST = "@result", "@owner", "@random", "@autograd", "@autocast"
"""What a function returned, the number of the state of its instance, those of random number generators, how often the
program had asked autograd for gradients, and where autocast was on."""
TENSOR, ARRAY = "tensor", "array"


class Moment(NamedTuple):
    """What names held before a line ran, or, with line 0, as the function returned."""

    line: int
    gradients: bool
    held: Mapping[str, Fact]


class Observation(NamedTuple):
    """One run of some statements. `entry` is how the call began that they ran in."""

    before: Moment
    after: Moment
    entry: Moment

    @property
    def random(self) -> tuple[bool, bool]:
        """Whether torch drew random numbers, and whether NumPy or Python did."""
        old, new = self.before.held[RANDOM][1:], self.after.held[RANDOM][1:]
        return old[0] != new[0], old[1:] != new[1:]


def seen(site: Site) -> SeenCalls | None:
    """What a recorded run tells of the function around the site; None where there is none."""
    for each in site.settings.seen_calls:
        if each.path == site.source.path and each.function == site.function:
            return each
    return None


def lines_of(site: Site, known: SeenCalls, statement: ast.stmt) -> tuple[int, int] | None:
    """First and last line of a statement in the run; None where the run did not have it."""
    function = site.evaluator.scope.node

    def look() -> dict[int, tuple[str, int]]:
        found: dict[int, tuple[str, int]] = {}
        counts: dict[str, int] = {}
        for each in ast.walk(function):
            if isinstance(each, ast.stmt) and each is not function:
                key = key_of(each)
                found[id(each)] = key, counts.get(key, 0)
                counts[key] = counts.get(key, 0) + 1
        return found

    key, number = site.remembered("keys of statements", function, look, anywhere=True).get(id(statement), ("", 0))
    same = [(first, last) for one, first, last in known.statements if one == key]
    return same[number] if number < len(same) else None


def is_another(site: Site, known: SeenCalls, statement: ast.stmt) -> bool:
    """True where the run has none of the function's statements as they are now, and broke on the lines of this one."""
    broken = any(statement.lineno <= line <= (statement.end_lineno or statement.lineno) for line in known.broken)
    return broken and not any(
        lines_of(site, known, each)
        for each in ast.walk(site.evaluator.scope.node)
        if isinstance(each, ast.stmt) and each is not site.evaluator.scope.node
    )


def key_of(statement: ast.stmt) -> str:
    """What the watcher of calls knows a statement by (`tracing/calls.py`, `key_of`), the same in each Python."""

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(each) for each in node]
        if not isinstance(node, ast.AST):
            return node
        node = as_written(node)
        fields = [(name, plain(each)) for name, each in ast.iter_fields(node) if each is not None and each != []]
        return [type(node).__name__, fields]

    return hashlib.sha256(repr(plain(statement)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def observations(site: Site, known: SeenCalls, statements: Sequence[ast.stmt]) -> list[Observation]:
    """Each time that the run came to the statements and got behind them."""
    ends = [lines_of(site, known, each) for each in (statements[0], statements[-1])]
    if ends[0] is None or ends[1] is None:
        return []
    first, last = ends[0][0], ends[1][1]
    return [found for call in _calls(known) for found in _in_call(call, first, last)]


def _in_call(call: Sequence[Moment | None], first: int, last: int) -> Iterator[Observation]:
    before: Moment | None = None
    entry = call[0] if call else None
    for moment in call:
        if moment is None:  # an exception was on its way, or nothing is known from here on
            before = None
        elif moment.line and first <= moment.line <= last:
            before = before or moment
        elif before is not None:
            yield Observation(before, moment, entry or before)
            before = None


def owner_changes(known: SeenCalls) -> bool:
    """True where the instance got another attribute, or other values in a buffer, at any time in the run.

    While Dynamo traces, it keeps such changes for the end of the graph: an operator would see what was before.
    """
    states: dict[int, int] = {}
    for call in _calls(known):
        for fact in (moment.held[OWNER] for moment in call if moment is not None and OWNER in moment.held):
            if states.setdefault(fact[1], fact[2]) != fact[2]:
                return True
    return False


@lru_cache(maxsize=64)
def _calls(known: SeenCalls) -> tuple[tuple[Moment | None, ...], ...]:
    facts = [json.loads(each) for each in known.facts]
    found = []
    for text in known.calls:
        call: list[Moment | None] = []
        for each in json.loads(text):
            if len(each) != 3:
                call.append(None)
                continue
            line, gradients, held = each
            call.append(Moment(line, bool(gradients), {name: facts[number] for name, number in held.items()}))
        found.append(tuple(call))
    return tuple(found)
