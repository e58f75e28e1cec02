"""Traces of several runs of the same code as one: what `fix` is to know when it mends a project for all of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from graphmend_codemod import __version__
from graphmend_codemod.trace.document import Site, SourceLine, Totals, Trace, Watched

_STATES_APART = 1_000_000
"""More than a run has states of instances: those of two runs are never the same one."""


def merged(traces: Sequence[Trace]) -> Trace:
    """One trace of all. Its sites are in an order that no clock decides; each run's are kept, for a place that two
    runs came to was reached in two ways.

    The runs must be of one state of the code: what functions held in the calls of one comes behind what they held in
    those of another.
    """
    sites = sorted((site for trace in traces for site in trace.sites), key=_order)
    return Trace(
        graphmend=__version__,
        command=" ".join(dict.fromkeys(trace.command for trace in traces)),
        has_source=all(trace.has_source for trace in traces),
        processes=tuple(each for trace in traces for each in trace.processes),
        totals=_totals([trace.totals for trace in traces]),
        sites=tuple(sites),
        recompiled=tuple(each for trace in traces for each in trace.recompiled),
        skipped=tuple(each for trace in traces for each in trace.skipped),
        compilations=tuple(each for trace in traces for each in trace.compilations),
        known=tuple(each for trace in traces for each in trace.known),
        watched=tuple(_all_watched(traces)),
    )


def key_of(site: Site) -> tuple[object, ...]:
    """What a site is known by in every run of one state of the code."""
    return site.place, site.column, site.gb_id or site.kind


def _order(site: Site) -> tuple[object, ...]:
    shown = site.shown
    return -site.events, shown.path, shown.line, site.place.path, site.place.line, site.column or 0, site.kind


def _totals(every: Sequence[Totals]) -> Totals:
    return Totals(
        sites=sum(each.sites for each in every),
        events=sum(each.events for each in every),
        graphs=sum(each.graphs for each in every),
        compilations=sum(each.compilations for each in every),
        recompilations=sum(each.recompilations for each in every),
        skipped=sum(each.skipped for each in every),
        seconds=round(sum(each.seconds for each in every), 6),
        gap_seconds=round(sum(each.gap_seconds for each in every), 6),
        wall=round(sum(each.wall for each in every), 3),
    )


def _all_watched(traces: Sequence[Trace]) -> Iterator[Watched]:
    """Each function once, with the calls of all runs."""
    found: dict[SourceLine, list[tuple[int, Watched]]] = {}
    for number, trace in enumerate(traces):
        for each in trace.watched:
            found.setdefault(each.place, []).append((number, each))
    for place, every in found.items():
        facts: list[str] = []
        calls: list[str] = []
        for number, each in every:
            with contextlib.suppress(ValueError, TypeError, AttributeError):  # a run of which something was edited
                renumbered = [_renumbered(call, len(facts)) for call in each.calls]
                facts += [_apart(fact, number) for fact in each.facts]
                calls += renumbered
        yield Watched(
            place,
            tuple(sorted({line for _, each in every for line in each.broken})),
            every[0][1].statements,
            tuple(facts),
            tuple(calls),
            tuple(sorted({line for _, each in every for line in each.called})),
        )


def _renumbered(call: str, first: int) -> str:
    """A call whose facts begin at another number."""
    if not first:
        return call
    moments: list[list[Any]] = json.loads(call)
    for each in moments:
        if len(each) == 3:
            each[2] = {name: number + first for name, number in each[2].items()}
    return json.dumps(moments)


def _apart(fact: str, run: int) -> str:
    """A fact of a run; the numbers that stand for an instance and its state are of this run alone."""
    if not run or not fact.startswith('["state"'):
        return fact
    kind, *numbers = json.loads(fact)
    return json.dumps([kind, *(number + run * _STATES_APART for number in numbers)])
