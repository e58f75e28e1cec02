"""Numbers behind the drawings of the page: strips of FX graphs, bars of latency, intervals of change.

All lengths are in units of a drawing that is `WIDTH` wide and stretched to the page; words stand outside of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.reporting import quantities, view
from graphmend_evaluation.results import Counts
from graphmend_evaluation.speed.results import Compared, SpeedRow, SpeedVerdict, Spread, Steady

WIDTH = 1000.0
_NARROWEST = 5.0
_WIDEST_CUT = 8.0
_ALL_CUTS = 300.0
_GRAPHS_DRAWN = 200
_GRAPHS_TOLD = 12
_DOTS = 200
_LONGEST_TAIL = 1.6


@dataclass(frozen=True)
class Piece:
    """A rectangle of a strip: `kind` is `graph`, `cut`, or `return` where plain Python runs between frames."""

    kind: str
    start: float
    width: float
    words: str


@dataclass(frozen=True)
class Strip:
    """The FX graphs of one arm, as wide as their operations; `words` say the same as the drawing."""

    arm: str
    pieces: tuple[Piece, ...]
    words: str
    whole: bool


@dataclass(frozen=True)
class Bar:
    """One arm of a quantity: a bar to the median, a line over the quartiles, dots for single blocks."""

    arm: str
    median: int
    low: int
    high: int
    dots: tuple[int, ...]
    words: str
    short: str


@dataclass(frozen=True)
class Bars:
    """A quantity before and after on one axis that begins at zero. `differs` is false inside the noise."""

    quantity: str
    bars: tuple[Bar, Bar]
    verdict: str
    noise: str
    direction: str

    @property
    def differs(self) -> bool:
        """Whether the difference is outside the noise."""
        return self.direction != "same"


@dataclass(frozen=True)
class Interval:
    """The relative change of one model between `low` and `high`; the middle of the drawing is no change."""

    model: str
    low: float
    high: float
    middle: float
    direction: str
    words: str
    verdict: str


def strips(before: Counts, after: Counts) -> tuple[Strip, Strip]:
    """The graphs of both arms at one scale."""
    scale = max(before.ops, after.ops, 1)
    cuts = max(len(before.ops_per_graph), len(after.ops_per_graph), 1) - 1
    gap = min(_WIDEST_CUT, _ALL_CUTS / max(cuts, 1))
    unit = (WIDTH - gap * cuts) / scale
    longest = max(_length(counts, unit, gap) for counts in (before, after))
    shrink = min(1.0, WIDTH / longest)
    return _strip("before", before, unit, gap, shrink), _strip("after", after, unit, gap, shrink)


def speed_bars(row: SpeedRow) -> Iterator[Bars]:
    """Cold start and every configuration of steady state."""
    if row.cold is not None:
        total = row.cold.total
        calls = plural(len(row.cold.calls), "call")
        yield _bars(f"cold start, first {calls}", total.wall_s, (), ())
        yield _bars("cold start, processor time", total.cpu_s, (), ())
        running = total.run_cpu_s if row.device == "cpu" else total.run_wall_s
        yield _bars("cold start without compiling", running, (), ())
    for steady in row.steady:
        words = f"steady, {steady.configuration}"
        yield _bars(words, steady.latency_s, steady.blocks_before_s, steady.blocks_after_s)


def counted(row: SpeedRow) -> tuple[tuple[str, ...], ...]:
    """What was counted rather than timed, as a table with its titles first; empty where nothing was."""
    columns: list[tuple[str, Callable[[Steady], tuple[float | None, float | None]], Callable[[float], str]]] = [
        (
            "calls a second",
            lambda each: (each.calls_per_s_before, each.calls_per_s_after),
            lambda value: f"{value:.4g}",
        ),
        ("peak memory", lambda each: (each.peak_bytes_before, each.peak_bytes_after), _mebibytes),
        *((title, functools.partial(_profiled, name), _number) for name, title in _PROFILED),
    ]
    filled = [each for each in columns if any(None not in each[1](steady) for steady in row.steady)]
    if not filled:
        return ()
    head = ("configuration", *(title for title, _, _ in filled))
    rows = (
        (steady.configuration, *(_pair(values(steady), shown) for _, values, shown in filled)) for steady in row.steady
    )
    return head, *rows


_PROFILED = (
    ("compiled_regions", "compiled regions a call"),
    ("kernel_launches", "kernel launches a call"),
    ("graph_launches", "CUDA graph launches a call"),
    ("kernels", "kernels a call"),
    ("syncs", "waits for the device a call"),
    ("copies_to_host", "copies to the host a call"),
)


def _profiled(name: str, steady: Steady) -> tuple[float | None, float | None]:
    if steady.profile_before is None or steady.profile_after is None:
        return None, None
    return getattr(steady.profile_before, name), getattr(steady.profile_after, name)


def _pair(values: tuple[float | None, float | None], shown: Callable[[float], str]) -> str:
    before, after = values
    return "" if before is None or after is None else f"{shown(before)} → {shown(after)}"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _mebibytes(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"


def intervals(values: Sequence[tuple[str, Compared]]) -> tuple[Interval, ...]:
    """The change of every model on one axis, the largest saving first."""
    edge = max((abs(value) for _, each in values for value in (each.difference.low, each.difference.high)), default=0)
    edge = min(max(edge, 0.02), 2.0)
    ordered = sorted(values, key=lambda item: item[1].difference.change)
    return tuple(_interval(model, compared, edge) for model, compared in ordered)


def _length(counts: Counts, unit: float, gap: float) -> float:
    drawn = counts.ops_per_graph[:_GRAPHS_DRAWN]
    return sum(max(_NARROWEST, ops * unit) for ops in drawn) + gap * max(len(drawn) - 1, 0)


def _strip(arm: str, counts: Counts, unit: float, gap: float, shrink: float) -> Strip:
    pieces: list[Piece] = []
    position = 0.0
    gap *= shrink
    drawn = counts.ops_per_graph[:_GRAPHS_DRAWN]
    for number, ops in enumerate(drawn):
        width = max(_NARROWEST, ops * unit) * shrink
        pieces.append(Piece("graph", round(position, 1), round(width, 1), _ops(ops)))
        position += width
        cause = view.cause_of_cut(counts, number)
        if cause and number < len(drawn) - 1:
            broken = not counts.ended_by or counts.ended_by[number] is not None
            pieces.append(Piece("cut" if broken else "return", round(position, 1), round(gap, 1), cause))
        position += gap
    return Strip(arm, tuple(pieces), _strip_words(arm, counts), counts.whole)


def _strip_words(arm: str, counts: Counts) -> str:
    if not counts.graphs:
        return f"{arm}: nothing captured"
    told = ", ".join(str(ops) for ops in counts.ops_per_graph[:_GRAPHS_TOLD])
    more = ", and more" if counts.graphs > _GRAPHS_TOLD else ""
    noun = "operation" if counts.ops_per_graph == (1,) else "operations"
    return f"{arm}: {plural(counts.graphs, 'graph')} with {told}{more} {noun}, {plural(counts.break_events, 'break')}"


def _ops(count: int) -> str:
    return plural(count, "operation")


def _bars(quantity: str, compared: Compared, before: Sequence[float], after: Sequence[float]) -> Bars:
    arms = (compared.before, compared.after)
    most = max(*(spread.high for spread in arms), *(spread.median for spread in arms), *before, *after)
    # One disturbed block must not make dwarfs of the bars: what lies beyond is at the edge.
    top = max(min(most, _LONGEST_TAIL * max(spread.median for spread in arms)), 1e-12)
    bars = tuple(
        _bar(arm, spread, blocks, WIDTH / (top * 1.02))
        for arm, spread, blocks in zip(("before", "after"), arms, (before, after), strict=True)
    )
    noise = f"noise {compared.difference.noise:.1%}, {plural(compared.difference.pairs, 'pair')}"
    return Bars(quantity, (bars[0], bars[1]), quantities.verdict_words(compared), noise, _direction(compared))


def _bar(arm: str, spread: Spread, blocks: Sequence[float], unit: float) -> Bar:
    quartiles = f"quartiles {quantities.duration(spread.low)} and {quantities.duration(spread.high)}"
    words = f"{arm}: median {quantities.duration(spread.median)}, {quartiles}, {plural(spread.count, 'measurement')}"
    dots = tuple(dict.fromkeys(round(block * unit) for block in blocks[:_DOTS] if block * unit <= WIDTH))
    median, low, high = (round(min(value * unit, WIDTH)) for value in (spread.median, spread.low, spread.high))
    return Bar(arm, median, low, high, dots, words, quantities.duration(spread.median))


def _interval(model: str, compared: Compared, edge: float) -> Interval:
    difference = compared.difference

    def place(value: float) -> float:
        return round(WIDTH / 2 * (1 + max(-1.0, min(1.0, value / edge)) * 0.98), 1)

    low, high, middle = (place(value) for value in (difference.low, difference.high, difference.change))
    return Interval(
        model,
        low,
        high,
        middle,
        _direction(compared),
        quantities.change_words(compared),
        quantities.verdict_words(compared),
    )


def _direction(compared: Compared) -> str:
    return {SpeedVerdict.LESS: "less", SpeedVerdict.MORE: "more"}.get(compared.difference.verdict, "same")
