"""Reasons why a fix would not remove a break: another break around it, or an existing compiler test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import item_of
from graphmend_codemod.analysis.scope import body_of, walk
from graphmend_codemod.core.findings import Edit, Finding, Safety, Span
from graphmend_codemod.engine.suspected_tensors import Suspected
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.untraced import places as untraced

_ASKS = re.compile(r"(?:^|_)(?:(?:dynamo_?|torch_?)?compiling|tracing|scripting|exporting)$")


class OtherBreak(NamedTuple):
    """What breaks the graph wherever a site is reached: the test of a statement around it, or, `inside`, in a loop."""

    span: Span
    text: str
    where: str = "around it"
    inside: bool = False

    @property
    def reason(self) -> str:
        """Why an edit of the site removes no break."""
        return f"`{self.text}` {self.where} (line {self.span.start_line}) breaks the graph too; fix that first"


class Judged(NamedTuple):
    """A finding with the tests around it that break the graph, outermost first, and what does in loops beside it.

    Only those of selected rules count, but what others would mend is no reason to leave something else. Where there is
    no edit, `suspected` is what to take for tensors for another look.
    """

    finding: Finding
    tests: tuple[OtherBreak, ...] = ()
    selected: bool = True
    suspected: Suspected | None = None


def other_breaks_of(site: Site, edit: Edit) -> tuple[OtherBreak, ...]:
    """The tests around a site that certainly break the graph, those above it in a loop, and what does in other loops.

    Dynamo compiles nothing of a function in whose loops the graph breaks (torch 2.13 and 2.15): what it had compiled of
    the code above a break is lost where that break alone is mended. In the loop that the site heads, the same is asked
    where the edit changes only what its head calls, so that the rounds are what they were.
    """
    tests = [parent for parent in site.place.parents if isinstance(parent, (ast.If, ast.While))]
    found = [
        OtherBreak(site.span(each.test), speculation.short(each.test)) for each in tests if _is_breaking(site, each)
    ]
    for each in _above_in_loop(site):
        asked = each.test if isinstance(each, ast.If) else each.value
        if _is_breaking(site, each) if isinstance(each, ast.If) else _reads_back(site, each):
            found.append(OtherBreak(site.span(asked), speculation.short(asked), "above it in the loop"))
    loop = site.place.statement
    own = isinstance(loop, (ast.For, ast.AsyncFor)) and _changes_calls_alone(site, edit, loop.iter)
    others = () if _is_left_at_once(site, edit) else _other_loops(site)
    for other, where in [*([(loop, "in the loop")] if own else []), *others]:
        found += [OtherBreak(site.span(each), speculation.short(each), where, True) for each in _left_in(site, other)]
    return tuple(found)


def _is_left_at_once(site: Site, edit: Edit) -> bool:
    """True where a compile path in front of all that the function does returns, as operators of functions have it."""
    first = body_of(site.evaluator.scope.node)[0]
    elsewhere = all(each is not first for each in (site.place.statement, *site.place.parents))
    return edit.whole or (elsewhere and any(each.span == site.span(first) for each in edit.replacements))


def _other_loops(site: Site) -> Iterator[tuple[ast.stmt, str]]:
    """The loops that run whenever the site does, above it and below, and do not contain it."""
    for body, position in reversed(site.place.blocks):
        for where, statements in (
            ("in a loop above it", body[:position]),
            ("in a loop below it", body[position + 1 :]),
        ):
            for each in statements:
                yield from ((loop, where) for loop in _loops_in(each))
                if isinstance(each, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                    return


def _loops_in(statement: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(statement, (ast.For, ast.While)):
        yield statement
    for each in statement.body if isinstance(statement, ast.With) else ():
        yield from _loops_in(each)


def _left_in(site: Site, loop: ast.stmt) -> list[ast.expr]:
    """What breaks the graph in each round of a loop."""
    body = [loop] if isinstance(loop, ast.While) else loop.body if isinstance(loop, ast.For) else []
    return site.remembered("breaks in each round", loop, lambda: [*_in_each_round(site, body)], anywhere=True)


def _changes_calls_alone(site: Site, edit: Edit, head: ast.expr) -> bool:
    """True for `(range if compiling else trange)(n)` in the place of `trange(n)`."""
    called = {site.span(part.func) for part in walk(head) if isinstance(part, ast.Call)}
    return all(each.span in called for each in edit.replacements)


def _in_each_round(site: Site, body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """What breaks the graph in a loop whenever a round runs to its end."""
    for each in body:
        if isinstance(each, (ast.If, ast.While)) and (first := _asked_first(site, each)) is not None:
            yield first
        if isinstance(each, ast.If):
            continue
        there = site.at(each)
        suspects = untraced.suspects(site).of(each) if there is not None else []
        evaluated = {id(part) for part in untraced.evaluated(site, each)} - _skippable(each) if suspects else set()
        for node in suspects:
            if there is not None and id(node) in evaluated and untraced.break_at(there, node) is not None:
                yield node
        if isinstance(each, (ast.For, ast.While, ast.With)):
            yield from _in_each_round(site, each.body)


def _asked_first(site: Site, parent: ast.If | ast.While) -> ast.expr | None:
    """The part of a test that is asked in any case, where it breaks the graph: `y` of `y and self.debug`."""
    first, there = parent.test, site.at(parent)
    while isinstance(first, ast.BoolOp):
        first = first.values[0]
    return first if there is not None and _breaks(there, first) else None


def _skippable(statement: ast.stmt) -> set[int]:
    """The identities of what a statement may leave out: `x.item() if self.debug else 0`."""
    parts = [part for part in walk(statement) if isinstance(part, (ast.BoolOp, ast.IfExp))]
    arms = [each.values[1:] if isinstance(each, ast.BoolOp) else [each.body, each.orelse] for each in parts]
    return {id(part) for some in arms for arm in some for part in walk(arm)}


def _is_breaking(site: Site, parent: ast.If | ast.While) -> bool:
    above = site.at(parent)
    if above is None:
        return False
    return bool(site.remembered("breaking test", parent, lambda: _breaks(above, parent.test), anywhere=True))


def _above_in_loop(site: Site) -> Iterator[ast.If | ast.Assign]:
    """The statements above a site, in the body of a loop around it, that bind a number or leave the round."""
    loops = [parent for parent in site.place.parents if isinstance(parent, (ast.For, ast.AsyncFor, ast.While))]
    for loop in loops:
        for each in loop.body:
            if each is site.place.statement or each in site.place.parents:
                break
            leaves = isinstance(each, ast.If) and isinstance(each.body[-1], (ast.Continue, ast.Break))
            if isinstance(each, ast.Assign) or (isinstance(each, ast.If) and leaves and not each.orelse):
                yield each


def _reads_back(site: Site, statement: ast.Assign) -> bool:
    """True for `n = mask.sum().item()`: a number that the data tells, and that Dynamo does not read."""
    above = site.at(statement) if item_of(statement.value) is not None else None
    if above is None:
        return False
    key = ("breaking read", statement)
    return bool(site.remembered(*key, lambda: untraced.break_at(above, statement.value) is not None, anywhere=True))


def _breaks(site: Site, test: ast.expr) -> bool:
    from graphmend_codemod.rules.proofs.conditions.deciding_operands import (
        is_guarded,  # a commit hook that finds nothing does without
    )

    value = site.value(test)
    if value.truth is not None or value.compiling is not None or is_guarded(site, test):
        return False
    if split(site, test) is not None:
        return True
    statement = site.place.statement
    suspects = [each for each in untraced.suspects(site).of(statement) if untraced.break_at(site, each) is not None]
    evaluated = {id(part) for part in untraced.evaluated(site, statement)} if suspects else set()
    return any(id(each) in evaluated for each in suspects)


def asks_for_compiler(site: Site) -> str | None:
    """A call in a test at or around the site that seems to ask whether the compiler runs, by a name nobody knows.

    A generated compile path in or beside such a branch could contradict the author's own. A test that asks only for an
    export decides nothing about its `else`.
    """
    tests = [parent.test for parent in site.place.parents if _may_ask(parent, site)]
    own = getattr(site.node, "test", None)
    for test in [*tests, *([own] if own is not None else [])]:
        for node in walk(test):
            if isinstance(node, ast.Call) and _ASKS.search(_called(node)):
                value = site.value(node)
                if value.truth is None and value.compiling is None:
                    return speculation.short(node)
    return None


def _may_ask(parent: ast.AST, site: Site) -> TypeGuard[ast.If | ast.While]:
    if not isinstance(parent, (ast.If, ast.While)):
        return False
    exports = isinstance(parent.test, ast.Call) and "export" in _called(parent.test)
    inside = any(part is site.place.statement for each in parent.body for part in walk(each))
    return inside or not exports


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def without_idle_fixes(judged: Sequence[Judged], *, unsafe: bool, opaque: bool) -> list[Finding]:
    """The findings, where fixes that leave a break around them, or in a loop beside them, are declined.

    A test counts as mended when another fix that will be applied covers it.
    """
    wanted = {Safety.SAFE, *([Safety.UNSAFE] if unsafe else []), *([Safety.OPAQUE] if opaque else [])}
    kept: list[Judged] = []
    mended: list[Span] = []
    for each in sorted(judged, key=lambda one: (one.finding.span.start_line, one.finding.span.start_column)):
        finding = each.finding
        around = [test for test in each.tests if not test.inside]
        finding = _if_mended(finding, around, mended)
        if each.selected:
            kept.append(each._replace(finding=finding))
        if finding.edit is not None and finding.safety in wanted:
            mended += [replacement.span for replacement in finding.edit.replacements]
    return [_if_mended(each.finding, [test for test in each.tests if test.inside], mended) for each in kept]


def _if_mended(finding: Finding, tests: Iterable[OtherBreak], mended: Sequence[Span]) -> Finding:
    """The finding, without its edit where one of the tests breaks the graph all the same."""
    left = next((test for test in tests if not _is_mended(test.span, mended)), None)
    if finding.edit is None or left is None:
        return finding
    return finding._replace(edit=None, declined=left.reason)


def _is_mended(test: Span, edits: Iterable[Span]) -> bool:
    """True when an edit replaces the test, or a part of it."""
    return any(_start(edit) < _end(test) and _start(test) < _end(edit) for edit in edits)


def _start(span: Span) -> tuple[int, int]:
    return span.start_line, span.start_column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column
