"""Events of a run to a trace: each place that broke a graph once, with what it cost and what came with it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphmend_codemod import __version__
from graphmend_codemod.trace import break_text, events, guards, stacks
from graphmend_codemod.trace.causes import Causes
from graphmend_codemod.trace.document import (
    OWN,
    TORCH,
    Compilation,
    Fact,
    Known,
    Process,
    Recompiled,
    Site,
    Skipped,
    SourceLine,
    Totals,
    Trace,
)
from graphmend_codemod.trace.paths import Paths

_CALLERS_KEPT = 20
_STACK_KEPT = 30
# Kinds of breaks behind which Python asks the device for a value.
_READS_A_VALUE = (
    "Data-dependent",
    "Data dependent",
    "Dynamic shape operator",
    "Unsupported Tensor.item()",
    "Tensor.tolist()",
)


@dataclass
class _Site:
    """A site while it is put together; `first` is the message that told of it first."""

    id: str
    first: break_text.BreakText
    place: SourceLine
    column: int | None
    end_column: int | None
    source: str
    own: SourceLine | None
    own_source: str
    stack: tuple[SourceLine, ...]
    frames: set[tuple[int, int | None]] = field(default_factory=set)
    recompiled: int = 0
    graphs: int = 0
    extra: int = 0
    seconds: float = 0.0
    skips: bool = False
    callers: dict[SourceLine, None] = field(default_factory=dict)
    facts: list[Mapping[str, Any]] = field(default_factory=list)
    processes: set[int] = field(default_factory=set)
    gaps: Counter[tuple[int, int | None]] = field(default_factory=Counter)
    gap_seconds: float = 0.0


class Collector:
    """Puts a trace together, process by process. `root` is the project."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sites: dict[tuple[object, ...], _Site] = {}
        self._ids: Counter[str] = Counter()
        self._processes: list[Process] = []
        self._compilations: list[Compilation] = []
        self._gaps: dict[tuple[int, str], tuple[int, float]] = {}
        self._recompiled: dict[SourceLine, list[tuple[float, str]]] = {}
        self._skipped: Counter[tuple[SourceLine, str]] = Counter()
        self._known: dict[SourceLine, list[Mapping[str, Any]]] = {}

    def add(self, process: Sequence[events.Event]) -> None:
        """All events of one process, in their order."""
        head = next((each for each in process if isinstance(each, events.Process)), None)
        head = head or events.Process("", "", "", "", None)
        number = len(self._processes)
        finished = any(isinstance(each, events.End) for each in process)
        self._processes.append(Process(head.program, head.rank, head.torch, head.python, finished))
        reader = _ProcessReader(self, number, Paths(self._root, head.cwd))
        for event in process:
            reader.read(event)

    def trace(self, command: str, *, source: bool = True) -> Trace:
        """What was put together; without `source` no line of the code is in it."""
        sites = sorted((_finished(each) for each in self._sites.values()), key=_by_cost)
        if not source:
            sites = [dataclasses.replace(each, source="", own_source="") for each in sites]
        recompiled = [_recompiled(place, every) for place, every in self._recompiled.items()]
        compilations = tuple(map(self._with_gaps, self._compilations))
        totals = Totals(
            sites=len(sites),
            events=sum(site.events for site in sites),
            graphs=sum(each.operations is not None for each in compilations),
            compilations=len(compilations),
            recompilations=sum(each.count for each in recompiled),
            skipped=sum(self._skipped.values()),
            seconds=round(sum(each.seconds for each in compilations), 6),
            gap_seconds=round(sum(site.gap_seconds for site in sites), 6),
        )
        return Trace(
            graphmend=__version__,
            command=command,
            has_source=source,
            processes=tuple(self._processes),
            totals=totals,
            sites=tuple(sites),
            recompiled=tuple(sorted(recompiled, key=lambda each: (-each.seconds, each.place.path, each.place.line))),
            skipped=tuple(Skipped(place, reason, count) for (place, reason), count in self._skipped.items()),
            compilations=compilations,
            known=tuple(Known(place, tuple(_facts(every))) for place, every in self._known.items()),
        )

    # -- what readers of processes tell --------------------------------------------------------------------------

    def site(self, text: break_text.BreakText, paths: Paths) -> _Site | None:
        """The site that a message tells of; None for one without a stack."""
        # Code of a `python -c` or `exec` that nothing else leads to is the user's own.
        frames = [each for each in text.frames if not paths.is_noise(each.path)] or list(text.frames[-1:])
        if not frames:
            return None
        inner = frames[-1]
        place = paths.place(inner.path, inner.line, break_text.plain_function(inner.function))
        line = paths.line(inner.path, inner.line)
        key = (place.path, place.line, inner.column, text.gb_id or text.kind)
        if key not in self._sites:
            column, end_column = _columns(inner, line)
            stack = tuple(
                paths.place(each.path, each.line, break_text.plain_function(each.function)) for each in frames
            )
            own = next((number for number in reversed(range(len(stack))) if stack[number].where == OWN), None)
            own_line = "" if own is None else frames[own].code or paths.line(frames[own].path, frames[own].line).strip()
            self._sites[key] = _Site(
                id=self._id(_identity(place, text, inner.code or line.strip())),
                first=text._replace(
                    kind=paths.tidy(text.kind),
                    reason=paths.tidy(text.reason),
                    hints=tuple(map(paths.tidy, text.hints)),
                ),
                place=place,
                column=column,
                end_column=end_column,
                source=line or inner.code,
                own=None if own is None else stack[own],
                own_source=own_line,
                stack=stack[-_STACK_KEPT:],
            )
        site = self._sites[key]
        above = [each for each in frames[:-1] if paths.place(each.path, 0, "").where != TORCH]
        if above:
            caller = above[-1]
            site.callers[paths.place(caller.path, caller.line, break_text.plain_function(caller.function))] = None
        return site

    def _id(self, identity: str) -> str:
        """An id that no other site has: a function may hold one statement twice."""
        self._ids[identity] += 1
        return identity if self._ids[identity] == 1 else f"{identity}-{self._ids[identity]}"

    def known(self, site: _Site, text: break_text.BreakText, known: Sequence[events.Known], paths: Paths) -> None:
        """What was known of the locals of the frames of a break: the innermost one's belong to the site, those of
        other functions of the project are kept beside it."""
        frames = list(text.frames)
        for frame in reversed(known):  # from the innermost on: methods of one name call each other
            function = break_text.plain_function(frame.function)
            line = 0
            while frames and not line:
                one = frames.pop()
                line = one.line if (one.path, break_text.plain_function(one.function)) == (frame.path, function) else 0
            place = paths.place(frame.path, line, function)
            if frame.facts and place == site.place:
                site.facts.append(frame.facts)
            elif frame.facts and place.line and place.where == OWN:
                self._known.setdefault(place, []).append(frame.facts)

    def compiled(self, compilation: Compilation) -> None:
        """One more compilation."""
        self._compilations.append(compilation)

    def gap(self, process: int, compilation: str, runs: int, seconds: float) -> None:
        """A graph that a break made necessary ran: the time in eager mode before it."""
        known = self._gaps.get((process, compilation), (0, 0.0))
        self._gaps[process, compilation] = (known[0] + runs, known[1] + seconds)

    def _with_gaps(self, compilation: Compilation) -> Compilation:
        gaps, seconds = self._gaps.get((compilation.process, compilation.id), (0, 0.0))
        return dataclasses.replace(compilation, gaps=gaps, gap_seconds=round(seconds, 6)) if gaps else compilation

    def recompiled(self, place: SourceLine, seconds: float, reason: str) -> None:
        """A compilation that was not a frame's first, and why."""
        self._recompiled.setdefault(place, []).append((seconds, reason))

    def skipped(self, place: SourceLine, reason: str) -> None:
        """A frame that was given up."""
        self._skipped[place, reason] += 1


class _ProcessReader:
    """Follows one process: which break belongs to which compilation, and which compilation came of which break."""

    def __init__(self, collector: Collector, number: int, paths: Paths) -> None:
        self._collector = collector
        self._number = number
        self._paths = paths
        self._broken: dict[tuple[int | None, int], list[_Site]] = {}
        self._reasons: dict[tuple[int | None, int], str] = {}
        self._stacks: dict[tuple[int | None, int], list[tuple[_Site, tuple[break_text.TextFrame, ...]]]] = {}
        self._causes: Causes[_Site] = Causes(paths)
        self._places: dict[int | None, SourceLine] = {}
        self._because: dict[tuple[int | None, int], _Site] = {}
        self._call = 0

    def read(self, event: events.Event) -> None:
        """One event."""
        if isinstance(event, events.Break):
            self._break(event)
        elif isinstance(event, events.Recompile):
            self._reasons[event.frame, event.compilation] = event.text
        elif isinstance(event, events.Start):
            self._causes.begins(event)
        elif isinstance(event, events.Compiled):
            self._compiled(event)
        elif isinstance(event, events.Gap):
            self._gap(event)

    def _gap(self, event: events.Gap) -> None:
        """Time before a graph that a break made necessary; before the first graph of a call nothing was broken."""
        cause = self._because.get((event.frame, event.compilation))
        if cause is not None:
            cause.gaps[self._number, event.frame] += event.runs
            cause.gap_seconds += event.seconds
            self._collector.gap(self._number, f"{event.frame}/{event.compilation}", event.runs, event.seconds)

    def _break(self, event: events.Break) -> None:
        text = break_text.parse(event.text)
        text = text._replace(frames=stacks.restored(text.frames, event.known))
        site = self._collector.site(text, self._paths)
        if site is None:
            return
        site.processes.add(self._number)
        site.skips |= text.skips
        self._collector.known(site, text, event.known, self._paths)
        known = (self._number, event.frame) in site.frames
        site.frames.add((self._number, event.frame))
        here = self._broken.setdefault((event.frame, event.compilation), [])
        if event.compilation and site not in here and known:
            site.recompiled += 1
        if site not in here:
            here.append(site)
        self._stacks.setdefault((event.frame, event.compilation), []).append((site, text.frames))

    def _told_by_error(self, event: events.Compiled) -> events.Break | None:
        """The break of which only an error tells: with `fullgraph=True`, or of an operator that Dynamo cannot run. The
        program most often ends."""
        if event.failed_at is None or (event.frame, event.compilation) in self._broken:
            return None
        path, line = event.failed_at
        frames = [*self._causes.led(event.frame), events.Frame(path, line, self._paths.function(path, line))]
        stack = "".join(f'  File "{each.path}", line {each.line}, in {each.function}\n' for each in frames)
        return events.Break(event.frame, event.compilation, f"{event.failed}\n\nfrom user code:\n{stack}", ())

    def _compiled(self, event: events.Compiled) -> None:
        if not event.path and event.failed and event.frame in self._places:  # not begun: the frame's limit was reached
            self._collector.skipped(self._places[event.frame], _limit(event))
            return
        place = self._paths.place(event.path, event.line, break_text.plain_function(event.function))
        self._places[event.frame] = place
        key = (event.frame, event.compilation)
        if (told := self._told_by_error(event)) is not None:
            self._break(told)
        ended = self._broken.get(key, [])
        cause = self._causes.of(event)
        for site, stack in self._stacks.pop(key, ()):
            self._causes.note(event, site, stack)
        if cause is None and not event.compilation:
            self._call += 1
        if cause is not None:
            cause.extra += 1
            cause.seconds += event.seconds
            cause.graphs += event.operations is not None
            self._because[key] = cause
        else:
            for site in ended:
                site.seconds += min(event.thrown_away, event.seconds) / len(ended)
        if event.compilation:
            self._collector.recompiled(place, event.seconds, self._paths.tidy(self._reasons.get(key, "")))
        if event.failed and told is None:
            self._collector.skipped(place, self._paths.tidy(_reason(event.failed)))
        self._collector.compiled(
            Compilation(
                process=self._number,
                id=f"{event.frame}/{event.compilation}",
                place=place,
                operations=event.operations,
                seconds=round(event.seconds, 6),
                call=self._call,
                site=ended[0].id if ended else None,
                because=None if cause is None else cause.id,
                module=self._paths.owner(event.path, event.line),
            )
        )


def _finished(site: _Site) -> Site:
    return Site(
        id=site.id,
        place=site.place,
        column=site.column,
        end_column=site.end_column,
        source=site.source,
        own=site.own,
        own_source=site.own_source,
        gb_id=site.first.gb_id,
        kind=site.first.kind,
        reason=site.first.reason,
        hints=site.first.hints,
        events=len(site.frames),
        recompiled=site.recompiled,
        frames=site.extra,
        graphs=site.graphs,
        seconds=round(site.seconds, 6),
        skips=site.skips,
        callers=tuple(site.callers)[:_CALLERS_KEPT],
        stack=site.stack,
        facts=tuple(_facts(site.facts)),
        processes=len(site.processes),
        gaps=site.gaps.total(),
        gap_seconds=round(site.gap_seconds, 6),
        syncs=max(site.gaps.values(), default=0) if site.first.kind.startswith(_READS_A_VALUE) else 0,
    )


def _facts(every: Sequence[Mapping[str, Any]]) -> Iterable[Fact]:
    """The facts of the first break, and whether they were the same at each."""
    for name, fact in every[0].items() if every else ():
        if not isinstance(fact, Mapping):
            continue
        dtypes = [str(each[name].get("dtype") or "") for each in every if name in each]
        sizes = fact.get("sizes")
        yield Fact(
            name=str(name),
            type=" or ".join(dict.fromkeys(str(each[name].get("type")) for each in every if name in each)),
            dtype=" or ".join(dict.fromkeys(filter(None, dtypes))),
            sizes=tuple(sizes) if isinstance(sizes, list) else None,
            device=str(fact.get("device") or ""),
            requires_grad=fact.get("requires_grad"),
            value=fact.get("value"),
            always_same=all(each.get(name, fact) == fact for each in every),
        )


def _columns(frame: break_text.TextFrame, line: str) -> tuple[int | None, int | None]:
    """Columns of the line on disk, from 1; the whole statement where Python marks no part of it."""
    if not line.strip() or (frame.code and line.strip() != frame.code):
        return None, None
    indent = len(line) - len(line.lstrip())
    if frame.column is None or frame.end_column is None:
        return indent + 1, len(line.rstrip()) + 1
    marked = frame.code[frame.column : frame.end_column].rstrip(": ")  # an `if` is marked with its colon
    return indent + frame.column + 1, indent + frame.column + len(marked) + 1


def _identity(place: SourceLine, text: break_text.BreakText, code: str) -> str:
    """What stays the same when lines above come and go."""
    parts = "\0".join((place.path, place.function, text.gb_id or text.kind, " ".join(code.split())))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _recompiled(place: SourceLine, every: Sequence[tuple[float, str]]) -> Recompiled:
    reasons = guards.reasons(text for _, text in every)
    return Recompiled(place, len(every), round(sum(seconds for seconds, _ in every), 6), reasons)


def _by_cost(site: Site) -> tuple[object, ...]:
    return (-site.seconds - site.gap_seconds, -site.events, site.place.path, site.place.line, site.column or 0)


def _reason(text: str) -> str:
    """The first line that says something, with the next one where it only announces that."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])


def _limit(event: events.Compiled) -> str:
    """Why Dynamo did not even begin to compile a frame once more, and what that means."""
    return (
        f"{_reason(event.failed or '')} ({event.compilation} compilations): calls that none of its graphs fits run in "
        "eager mode"
    )
