"""Reasons why a fix would not remove a break: another break around it, or an existing compiler test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.core.findings import Finding, Safety, Span
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.untraced import places as untraced

_ASKS = re.compile(r"(?:^|_)(?:(?:dynamo_?|torch_?)?compiling|tracing|scripting|exporting)$")


class BreakingTest(NamedTuple):
    """The test of a statement around a site, which breaks the graph wherever the site is reached."""

    span: Span
    text: str

    @property
    def reason(self) -> str:
        """Why an edit below the test removes no break."""
        return f"`{self.text}` around it (line {self.span.start_line}) breaks the graph too; fix that first"


class Judged(NamedTuple):
    """A finding with the tests around it that break the graph, outermost first. Only those of selected rules count,
    but what others would mend is no reason to leave something else."""

    finding: Finding
    tests: tuple[BreakingTest, ...] = ()
    selected: bool = True


def breaking_tests(site: Site) -> tuple[BreakingTest, ...]:
    """The tests around a site that certainly break the graph."""
    found = []
    for parent in site.place.parents:
        if isinstance(parent, (ast.If, ast.While)) and (above := site.at(parent)) is not None:
            key = ("breaking test", parent)
            if site.remembered(*key, lambda above=above, test=parent.test: _breaks(above, test), anywhere=True):  # type: ignore[misc]
                found.append(BreakingTest(site.span(parent.test), speculation.short(parent.test)))
    return tuple(found)


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
    """The findings, where fixes that leave a break around them are declined.

    A test counts as mended when another fix that will be applied covers it.
    """
    wanted = {Safety.SAFE, *([Safety.UNSAFE] if unsafe else []), *([Safety.OPAQUE] if opaque else [])}
    kept: list[Finding] = []
    mended: list[Span] = []
    for each in sorted(judged, key=lambda one: (one.finding.span.start_line, one.finding.span.start_column)):
        finding = each.finding
        left = next((test for test in each.tests if not _is_mended(test.span, mended)), None)
        if finding.edit is not None and left is not None:
            finding = finding._replace(edit=None, declined=left.reason)
        if each.selected:
            kept.append(finding)
        if finding.edit is not None and finding.safety in wanted:
            mended += [replacement.span for replacement in finding.edit.replacements]
    return kept


def _is_mended(test: Span, edits: Iterable[Span]) -> bool:
    """True when an edit replaces the test, or a part of it."""
    return any(_start(edit) < _end(test) and _start(test) < _end(edit) for edit in edits)


def _start(span: Span) -> tuple[int, int]:
    return span.start_line, span.start_column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column
