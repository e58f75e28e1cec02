"""The tables of models at their real size: what starting takes, a call takes, and the host asks of a GPU in a call."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from graphmend_evaluation.paper.full import FullRow
from graphmend_evaluation.paper.table import graphs
from graphmend_evaluation.speed.results import Cold, Compared, ProfileCounts, SpeedRow, SpeedVerdict, Steady

_LEGEND = """\
Each number is before -> after `graphmend fix`, with the same random weights and inputs. *Breaks* are those that
Dynamo counts in the first four calls. *Cold start* is four calls of a fresh process with empty caches, compilation
included; *without compiling* leaves out the time in which torch compiles. Several models compile at the same time,
each on a core of its own; a call is timed while nothing else runs, by events on the GPU's stream. *Eager* compares
results of both arms bit for bit, *compiled* each arm's compiled result with its own eager one within the dtype's
tolerance."""
_COUNTS = """\
What the host asks of the GPU in one call: kernels that it launches one by one, CUDA graphs that it launches, waits
for the GPU, and copies to the host. Memory is the most that a call has allocated, weights included."""
_EAGER = "eager"


def sections(rows: Sequence[FullRow]) -> Iterator[str]:
    """Paragraphs and tables in Markdown."""
    timed = [(row, batch, speed) for row in rows for batch, speed in (("1", row.one), ("large", row.many)) if speed]
    if not timed:
        return
    summary = _summary([speed for _, _, speed in timed])
    if summary:
        yield summary
    yield _LEGEND
    yield _table(_START, [_start(*each) for each in timed])
    configurations = list(dict.fromkeys(each.configuration for _, _, speed in timed for each in speed.steady))
    yield _table(
        ("model", "batch", *(f"a call, {name}" for name in configurations)),
        [_calls(row, batch, speed, configurations) for row, batch, speed in timed if speed.steady],
    )
    counted = [(row, batch, each) for row, batch, speed in timed for each in speed.steady if each.profile_before]
    if any(on_gpu(row) for row in rows):
        yield _COUNTS
        yield _table(_ASKED, [_asked(*each) for each in counted if each[2].configuration != _EAGER])
    remarks = [f"- {row.model}, batch {batch}: {line}" for row, batch, speed in timed for line in _remarks(speed)]
    if remarks:
        yield "\n".join(dict.fromkeys(remarks))


def on_gpu(row: FullRow) -> bool:
    """Whether any of its times comes from a GPU."""
    return any(speed is not None and speed.device == "cuda" for speed in (row.one, row.many))


def _summary(speeds: Sequence[SpeedRow]) -> str:
    """How many got faster and slower, and the median change."""
    told = []
    for name in dict.fromkeys(each.configuration for speed in speeds for each in speed.steady):
        if name != _EAGER:
            told.append(_changes(name, [_latency(speed, name) for speed in speeds]))
    colds = [speed.cold.total.wall_s for speed in speeds if speed.cold is not None]
    return "\n".join(line for line in [_changes("cold start", colds), *told] if line)


def _changes(what: str, found: Sequence[Compared | None]) -> str:
    known = [each for each in found if each is not None]
    if not known:
        return ""
    ratios = [each.after.median / each.before.median for each in known]
    less = sum(each.difference.verdict is SpeedVerdict.LESS for each in known)
    more = sum(each.difference.verdict is SpeedVerdict.MORE for each in known)
    verdicts = f"; {less} faster, {more} slower beyond noise" if less or more else ""
    return (
        f"- {what}: {len(known)} measured, after / before {statistics.median(ratios):.2f} (median), "
        f"{min(ratios):.2f} to {max(ratios):.2f}{verdicts}"
    )


def _latency(speed: SpeedRow, configuration: str) -> Compared | None:
    return next((each.latency_s for each in speed.steady if each.configuration == configuration), None)


_START = (
    "model",
    "weights",
    "device",
    "batch",
    "breaks",
    "graphs",
    "eager",
    "compiled",
    "cold start",
    "without compiling",
)


def _start(row: FullRow, batch: str, speed: SpeedRow) -> tuple[str, ...]:
    device = (speed.machine.gpu if speed.machine is not None else "") or "processor"
    cold = speed.cold
    breaks = "-" if cold is None or cold.breaks is None else _arrow(*cold.breaks)
    cells = ("-", "-") if cold is None else (_compared(cold.total.wall_s), _compared(cold.total.run_wall_s))
    return (row.model, row.weights[:12], device, batch, breaks, _graphs(row, cold), *_results(row, cold), *cells)


def _graphs(row: FullRow, cold: Cold | None) -> str:
    if row.row is not None:
        before, after = graphs(row.row)
        return f"{'?' if before is None else before} -> {'?' if after is None else after}"
    return "-" if cold is None or cold.graphs is None else _arrow(*cold.graphs)


def _results(row: FullRow, cold: Cold | None) -> tuple[str, str]:
    against = None if row.row is None else row.row.after.against_base
    same = against.identical if against is not None else None if cold is None else cold.eager_equal
    eager = "?" if same is None else "identical" if same else "DIFFERENT"
    differs = ("", "") if cold is None else cold.compiled_differs
    compiled = "-" if cold is None else " -> ".join("beyond tolerance" if each else "close" for each in differs)
    return eager, compiled if len(set(map(bool, differs))) == 2 or cold is None else compiled.partition(" ->")[0]


def _calls(row: FullRow, batch: str, speed: SpeedRow, configurations: Sequence[str]) -> tuple[str, ...]:
    found = [_latency(speed, name) for name in configurations]
    return (row.model, batch, *("-" if each is None else _compared(each) for each in found))


_ASKED = ("model", "batch", "configuration", "launches", "CUDA graphs", "waits", "copies to the host", "memory")


def _asked(row: FullRow, batch: str, steady: Steady) -> tuple[str, ...]:
    def both(of: Callable[[ProfileCounts], float | None]) -> str:
        values = [None if each is None else of(each) for each in (steady.profile_before, steady.profile_after)]
        return " -> ".join("?" if value is None else f"{value:g}" for value in values)

    memory = [None if each is None else each / 2**20 for each in (steady.peak_bytes_before, steady.peak_bytes_after)]
    return (
        row.model,
        batch,
        steady.configuration,
        both(lambda counts: counts.kernel_launches),
        both(lambda counts: counts.graph_launches),
        both(lambda counts: counts.syncs),
        both(lambda counts: counts.copies_to_host),
        " -> ".join("?" if each is None else f"{each:.0f}" for each in memory) + " MiB",
    )


def _remarks(speed: SpeedRow) -> Iterator[str]:
    if speed.message:
        yield speed.message
    for name, line in zip(("before", "after"), speed.cold.compiled_differs if speed.cold else (), strict=False):
        if line:
            yield f"compiled, {name}: {line}"
    yield from speed.remarks


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _arrow(before: object, after: object) -> str:
    return f"{before} -> {after}"


def _compared(value: Compared) -> str:
    times = f"{_seconds(value.before.median)} -> {_seconds(value.after.median)}"
    if value.difference.verdict in (SpeedVerdict.LESS, SpeedVerdict.MORE):
        return f"{times} ({value.difference.change:+.0%}, noise {value.difference.noise:.0%})"
    if value.difference.verdict is SpeedVerdict.NO_DIFFERENCE:
        return f"{times} ({value.difference.verdict.value})"
    return f"{times} ({value.after.median / value.before.median - 1:+.0%}, once)"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.2f} ms"
