"""A trace as one page of HTML in the look of the report: a timeline, the sites beside it, fixes to copy."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from graphmend_codemod.reporting.report import plural
from graphmend_codemod.trace import break_text, text
from graphmend_codemod.trace.document import Compilation, Fact, Process, Site
from graphmend_codemod.trace.join import Answer, Joined, Remedy
from graphmend_evaluation.reporting import markup

_WIDTH = 1000.0
_LEAST = 4.0
_CUT = 3.0
_FOR_GAPS = 0.3
_ROWS = 60
_OPEN = 12
_COLOURS = {Remedy.FIX: "FIXED", Remedy.UNSAFE: "FEWER", Remedy.DECLINED: "FEWER"}


@dataclass(frozen=True)
class Piece:
    """A part of a timeline, in units of which the whole has 1000. `site` is the number of the site that it leads to."""

    kind: str
    start: float
    width: float
    words: str
    site: int | None


@dataclass(frozen=True)
class Row:
    """The timeline of one outermost compiled call, with what it began with."""

    name: str
    place: str
    words: str
    pieces: tuple[Piece, ...]
    whole: bool


@dataclass(frozen=True)
class Card:
    """A site on the page."""

    number: int
    site: Site
    answer: Answer
    badge: str
    cost: str
    page: str
    diff: Markup | None
    mark: tuple[str, str, str]
    facts: tuple[str, ...]
    is_open: bool


def html(joined: Joined) -> str:
    """The page. It is read as UTF-8 and loads nothing, which its content security policy also forbids."""
    environment = _environment()
    style, script = _source("page.css") + _source("trace.css"), _source("trace.js")
    rows = list(timeline(joined.trace.compilations, joined.trace.sites, joined.trace.processes))
    return environment.get_template("trace.html.j2").render(
        joined=joined,
        trace=joined.trace,
        style=Markup(style),
        script=Markup(script),
        policy=markup.policy(style, script),
        summary=text.summary(joined),
        seconds=text.seconds,
        rows=rows[:_ROWS],
        more_rows=max(0, len(rows) - _ROWS),
        cards=tuple(_cards(joined)),
        fixable=joined.count(Remedy.FIX),
        for_breaks=sum(site.seconds for site in joined.trace.sites),
    )


def timeline(
    compilations: Sequence[Compilation], sites: Sequence[Site], processes: Sequence[Process] = ()
) -> Iterator[Row]:
    """A row for each outermost call that was compiled, those with most compilations first.

    Of several processes it says which one compiled, by rank or by number.
    """
    numbers = {site.id: number for number, site in enumerate(sites, 1)}
    kinds = {site.id: site.kind for site in sites}
    calls: dict[tuple[int, int], list[Compilation]] = {}
    for each in compilations:
        calls.setdefault((each.process, each.call), []).append(each)
    for every in sorted(calls.values(), key=lambda found: -len(found)):
        graphs = sum(each.operations is not None for each in every)
        time = sum(each.seconds for each in every)
        place = every[0].place
        breaks = sum(each.site is not None and each.id.endswith("/0") for each in every)
        again = sum(not each.id.endswith("/0") for each in every)
        between = sum(each.gap_seconds for each in every)
        yield Row(
            name=_called(every[0]),
            place=f"{place.path}:{place.line}",
            words=", ".join(
                [
                    *([_named(processes, every[0].process)] if len(processes) > 1 else []),
                    plural(graphs, "graph"),
                    plural(breaks, "break"),
                    *([plural(again, "recompilation")] if again else []),
                    f"{text.seconds(time)} of compiling",
                    *([f"{text.seconds(between)} in eager mode between graphs"] if between else []),
                ]
            ),
            pieces=tuple(_pieces(every, numbers, kinds)),
            whole=graphs == 1 and not breaks,
        )


def _named(processes: Sequence[Process], number: int) -> str:
    rank = processes[number].rank
    return f"process {number + 1}" if rank is None else f"rank {rank}"


def _called(compilation: Compilation) -> str:
    function = compilation.place.function
    return f"{compilation.module}.{function}" if compilation.module else function


def _pieces(every: Sequence[Compilation], numbers: dict[str, int], kinds: dict[str, str]) -> Iterator[Piece]:
    """Graphs share the width by their operations, gaps a part of it by the time that eager mode took there."""
    cuts = sum(each.site is not None for each in every)
    between = sum(each.gap_seconds for each in every)
    for_gaps = _WIDTH * _FOR_GAPS if between else 0.0
    for_cuts = min(_CUT * cuts, (_WIDTH - for_gaps) / 2)
    weights = [_LEAST + (each.operations or 0) if each.operations else 0.0 for each in every]
    unit = (_WIDTH - for_gaps - for_cuts) / (sum(weights) or 1.0)
    at = 0.0
    for each, weight in zip(every, weights, strict=True):
        because = numbers.get(each.because or "")
        graph = f"graph {each.id} of {_called(each)}"
        if each.gap_seconds:
            width = for_gaps * each.gap_seconds / between
            said = f"{text.seconds(each.gap_seconds)} in eager mode before {plural(each.gaps, 'run')} of {graph}"
            yield Piece("gap", round(at, 2), round(width, 2), said, because)
            at += width
        if weight:
            said = f"{graph}: {each.operations} operations, {text.seconds(each.seconds)}"
            yield Piece("graph", round(at, 2), round(weight * unit, 2), said, because)
            at += weight * unit
        if each.site is not None and each.site in numbers:
            yield Piece("cut", round(at, 2), round(max(for_cuts / cuts, 1.0), 2), kinds[each.site], numbers[each.site])
            at += for_cuts / cuts


def _cards(joined: Joined) -> Iterator[Card]:
    for number, (site, answer) in enumerate(zip(joined.trace.sites, joined.answers, strict=True), 1):
        yield Card(
            number=number,
            site=site,
            answer=answer,
            badge=_COLOURS.get(answer.remedy, ""),
            cost=text.cost(site),
            page=break_text.page(site.gb_id),
            diff=markup.diff_markup(answer.diff) if answer.diff else None,
            mark=_marked(site),
            facts=tuple(map(_fact, site.facts)),
            is_open=number <= _OPEN,
        )


def _marked(site: Site) -> tuple[str, str, str]:
    line, start, end = site.source.rstrip(), site.column, site.end_column
    if start is None or end is None:
        return line, "", ""
    return line[: start - 1], line[start - 1 : end - 1], line[end - 1 :]


def _fact(fact: Fact) -> str:
    words = fact.type if fact.value is None else f"{fact.value}"
    if fact.dtype:
        sizes = ", ".join(map(str, fact.sizes or ()))
        words = f"{fact.type} {fact.dtype} ({sizes}) on {fact.device}" + (
            " with gradients" if fact.requires_grad else ""
        )
    return f"`{fact.name}`: {words}" + ("" if fact.always_same else ", which differed between breaks")


@functools.cache
def _environment() -> jinja2.Environment:
    loaders = [jinja2.PackageLoader(f"graphmend_evaluation.{name}", "") for name in ("tracing", "reporting")]
    return markup.environment(jinja2.ChoiceLoader(loaders))


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
