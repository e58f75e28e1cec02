"""A trace for people: each site with its source, its cost, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import plural
from graphmend_codemod.trace import break_text
from graphmend_codemod.trace.document import OWN, Recompiled, Site, Skipped, SourceLine, Trace
from graphmend_codemod.trace.join import Answer, Joined, Remedy

_CALLERS_SHOWN = 3
_DIFF_LINES = 30
_STEPS_SHOWN = 3
_SHOWN = 15
TOP = 10
_OPTIONS = {Remedy.UNSAFE: ("--unsafe-fixes",), Remedy.OPAQUE: ("--opaque",)}


def full(joined: Joined, paint: Paint, *, new: frozenset[str] | None = None, top: int = TOP) -> Iterator[str]:
    """Lines of text: the `top` dearest sites of the project, then of libraries, in full, and a line for each other one.

    With `new`, only the sites with these ids are told.
    """
    trace = joined.trace
    every = zip(trace.sites, joined.answers, strict=True)
    told = [(site, answer) for site, answer in every if new is None or site.id in new]
    for title, where, group in (
        ("", "", [each for each in told if each[0].where == OWN]),
        ("In libraries and torch", " in libraries and torch", [each for each in told if each[0].where != OWN]),
    ):
        if title and group[:top]:
            yield from (paint.bold(title), "")
        for site, answer in group[:top]:
            yield from _site(site, answer, joined, paint)
            yield ""
        if rest := group[top:]:
            yield paint.bold(f"{plural(len(rest), 'other site')}{where} (--top {len(told)} shows all in full)")
            for site, answer in rest:
                yield f"  {_head(site, paint)}: {' '.join([answer.code, answer.remedy.value]).strip()}"
            yield ""
        top = max(0, top - len(group))
    yield from _recompiled(trace.recompiled, paint)
    yield from _skipped(trace, paint)
    yield summary(joined)


def summary(joined: Joined) -> str:
    """One line: what broke, what it cost, and what can be done."""
    trace = joined.trace
    totals = trace.totals
    compiled = (
        f"{plural(totals.graphs, 'graph')} in {plural(totals.compilations, 'compilation')}, {seconds(totals.seconds)}"
    )
    if not trace.sites:
        if not totals.compilations:
            return "Nothing was compiled."
        return f"No graph breaks: {compiled}."
    cost = sum(site.seconds for site in trace.sites)
    gaps = f", and {seconds(totals.gap_seconds)} in eager mode between graphs" if totals.gap_seconds else ""
    parts = [f"{joined.count(Remedy.FIX)} fixable with `{joined.command()}`"] if joined.count(Remedy.FIX) else []
    for remedy, words in (
        (Remedy.UNSAFE, "with --unsafe-fixes"),
        (Remedy.OPAQUE, "with --opaque"),
        (Remedy.DECLINED, "declined"),
        (Remedy.ADVICE, "advice"),
        (Remedy.NONE, "without a rule"),
        (Remedy.LIBRARY, "in libraries"),
    ):
        if joined.count(remedy):
            parts.append(f"{joined.count(remedy)} {words}")
    return (
        f"{plural(totals.sites, 'break site')}, {plural(totals.events, 'graph break')}: {', '.join(parts)}. "
        f"{compiled}, of which {seconds(cost)} for the breaks{gaps}."
    )


def seconds(value: float) -> str:
    """A time as people say it."""
    if 0 < value < 0.0005:
        return "under 1 ms"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def cost(site: Site) -> str:
    """How often it broke and what that cost, in words."""
    parts = [f"broke {plural(site.events, 'frame')}"]
    if site.recompiled:
        parts.append(f"again in {plural(site.recompiled, 'recompilation')}")
    if site.frames:
        parts.append(f"{plural(site.frames, 'more compilation')} ({plural(site.graphs, 'graph')})")
    if site.seconds >= 0.0005:
        parts.append(f"{seconds(site.seconds)} of compiling")
    if site.gaps:
        parts.append(f"{seconds(site.gap_seconds)} in eager mode before {plural(site.gaps, 'run')} of those graphs")
    if site.syncs:
        parts.append(f"{plural(site.syncs, 'value')} read by Python (a device sync each on a GPU)")
    if site.processes > 1:
        parts.append(f"in {site.processes} processes")
    if site.skips:
        parts.append("the function runs without a graph")
    return ", ".join(parts)


def recompiled(function: Recompiled) -> str:
    """How often a function was compiled again, and what that took."""
    return f"recompiled {plural(function.count, 'time')}, {seconds(function.seconds)}"


def reasons(function: Recompiled) -> str:
    """The guards that failed most often, in words."""
    return "; ".join(reason.words for reason in function.reasons[:_STEPS_SHOWN])


def times(function: Skipped) -> str:
    """` (n times)` for more than one."""
    return f" ({plural(function.count, 'time')})" if function.count > 1 else ""


def _head(site: Site, paint: Paint) -> str:
    column = f":{site.column}" if site.column else ""
    colon = paint.cyan(":")
    head = f"{paint.bold(printable(site.place.path))}{colon}{site.place.line}{column}{colon} "
    return f"{head}{paint.red(site.gb_id or 'graph break')} {printable(site.kind)}"


def _site(site: Site, answer: Answer, joined: Joined, paint: Paint) -> Iterator[str]:
    yield _head(site, paint)
    yield from _excerpt(site, paint)
    if site.own is not None and site.own != site.place:
        yield _note("called in", f"{_where(site.own)}  {printable(site.own_source)}".rstrip(), paint)
    yield _note("cost", cost(site), paint)
    if site.callers:
        more = len(site.callers) - _CALLERS_SHOWN
        names = ", ".join(_where(each) for each in site.callers[:_CALLERS_SHOWN])
        yield _note("called by", names + (f" and {more} more" if more > 0 else ""), paint)
    yield _note("because", printable(site.reason), paint)
    yield from _answer(answer, joined, (site.own or site.place).line, paint)
    told = [break_text.page(site.gb_id)] if site.gb_id else []
    if answer.code:
        told.append(f"`graphmend rule {answer.code}`")
    if told:
        yield _note("see", " and ".join(told), paint)


def _excerpt(site: Site, paint: Paint) -> Iterator[str]:
    if not site.source.strip():
        return
    width = len(str(site.place.line))
    bar = paint.blue("|")
    yield f"{paint.blue(str(site.place.line))} {bar} {printable(site.source)}"
    if site.column is not None and site.end_column is not None:
        before = printable(site.source[: site.column - 1])
        inside = printable(site.source[site.column - 1 : site.end_column - 1])
        yield f"{'':{width}} {bar} {' ' * len(before)}{paint.red('^' * max(1, len(inside)))}"


def _answer(answer: Answer, joined: Joined, line: int, paint: Paint) -> Iterator[str]:
    if answer.code:
        yield _note("graphmend", f"{answer.code} {printable(answer.message)}", paint)
    if answer.reason:
        yield _note("not applied", printable(answer.reason), paint)
    if answer.diff:
        yield _note("fix", f"`{joined.command(*_OPTIONS.get(answer.remedy, ()))}` writes", paint)
        lines = _nearest_first(answer.diff, line)
        for each in lines[:_DIFF_LINES]:
            colour = paint.green if each[:1] == "+" else paint.red if each[:1] == "-" else paint.cyan
            yield "      " + (colour(printable(each)) if each[:1] in "+-@" else printable(each))
        if len(lines) > _DIFF_LINES:
            yield f"      and {len(lines) - _DIFF_LINES} lines more: `{joined.command('--diff')}`"
    for step in answer.steps[:_STEPS_SHOWN]:
        yield _note("try", printable(step), paint)


def _nearest_first(diff: str, line: int) -> list[str]:
    """The lines of a diff, with the hunk of a line in front: functions that a fix adds stand far above it."""
    hunks: list[list[str]] = []
    for each in diff.splitlines():
        if each.startswith("@@"):
            hunks.append([])
        if hunks:
            hunks[-1].append(each)
    hunks.sort(key=lambda hunk: not _covers(hunk[0], line))
    return [each for hunk in hunks for each in hunk]


def _covers(header: str, line: int) -> bool:
    """True where the old lines of a hunk, of which this is the header, hold a line."""
    found = re.match(r"@@ -(\d+)(?:,(\d+))? ", header)
    return found is not None and int(found[1]) <= line < int(found[1]) + int(found[2] or 1)


def _note(name: str, words: str, paint: Paint) -> str:
    return f"  = {paint.yellow(name)}: {words}"


def _where(place: SourceLine) -> str:
    return f"{printable(place.path)}:{place.line} {printable(place.function)}"


def _recompiled(every: Sequence[Recompiled], paint: Paint) -> Iterator[str]:
    if not every:
        return
    yield paint.bold("Recompiled")
    for each in every[:_SHOWN]:
        yield f"  {_where(each.place)}: {plural(each.count, 'time')}, {seconds(each.seconds)}"
        for reason in each.reasons[:_STEPS_SHOWN]:
            yield f"    {printable(reason.words)}" + (f" ({plural(reason.count, 'time')})" if reason.count > 1 else "")
    if len(every) > _SHOWN:
        yield f"  and {len(every) - _SHOWN} more, in the trace"
    yield ""


def _skipped(trace: Trace, paint: Paint) -> Iterator[str]:
    if not trace.skipped:
        return
    yield paint.bold("Skipped by Dynamo (run in eager mode)")
    for each in trace.skipped[:_SHOWN]:
        yield f"  {_where(each.place)}: {printable(each.reason)}{times(each)}"
    if len(trace.skipped) > _SHOWN:
        yield f"  and {len(trace.skipped) - _SHOWN} more, in the trace"
    yield ""
