"""Speed as text: lines for a terminal and a Markdown page. Beside each number stands its noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graphmend_evaluation.speed.results import ColdCall, Compared, ProfileCounts, SpeedRow, SpeedVerdict, Spread, Steady

_WORDS = {
    SpeedVerdict.NO_DIFFERENCE: "no difference",
    SpeedVerdict.TOO_FEW: "too few repetitions to tell",
}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LEGEND = (
    "*Before* is the base, *after* the migrated code, with the same weights and inputs. ± is half the distance of the\n"
    "quartiles, as a share of the median. A change is that of paired measurements, in brackets its 99 % interval\n"
    "(with fewer than six pairs the lowest and the highest). *No difference* means that it is inside the noise: the\n"
    "larger of half the interval and what two processes of the same code are apart.\n"
)
_COLD_LEGEND = (
    "Each repetition is a fresh process with caches of its own, in which only something trivial was compiled before.\n"
    "*Run* is the same with compilation subtracted. CPU seconds hold those of the C++ compiler.\n"
)
_NEVER_ON_GPU = (
    "Measured on a CPU. Nothing on this page has run on a GPU: launches of kernels and CUDA graphs, waits for the\n"
    'device, copies to the host, `mode="reduce-overhead"` and all times on a GPU are still to be measured.\n'
)


def lines(rows: Sequence[SpeedRow]) -> Iterator[str]:
    """A short answer for each model, for a terminal."""
    for row in rows:
        if row.message:
            yield f"{row.model}: {row.message}"
        if row.cold is not None:
            yield f"{row.model}: cold start, four calls: {change_words(row.cold.total.cpu_s)} of CPU time"
        for steady in row.steady:
            yield f"{row.model}: steady, {steady.configuration}: {change_words(steady.latency_s)} a call"
        for remark in row.remarks:
            yield f"{row.model}: {remark}"


def markdown(rows: Sequence[SpeedRow]) -> str:
    """The whole page."""
    first = rows[0]
    parts = [f"# Speed before and after, {first.date.partition('T')[0]}\n", _about(rows)]
    if all(row.device != "cuda" for row in rows):
        parts.append(_NEVER_ON_GPU)
    parts += [
        _LEGEND,
        "## Steady state\n",
        _table(_STEADY_HEADINGS, [_steady(row, each) for row, each in _steadies(rows)]),
    ]
    parts += ["## Counts per call\n", _table(_COUNT_HEADINGS, [_counts(row, each) for row, each in _steadies(rows)])]
    cold = [(row, call) for row in rows if row.cold is not None for call in (row.cold.total, *row.cold.calls)]
    parts += ["## Cold start\n", _COLD_LEGEND, _table(_COLD_HEADINGS, [_cold(row, call) for row, call in cold])]
    parts += [_compilations(rows), _remarks(rows)]
    return "\n".join(part for part in parts if part)


def seconds_words(spread: Spread) -> str:
    """`1.23 ms ±4 %`."""
    return f"{seconds(spread.median)} ±{spread.noise:.0%}".replace("%", " %")


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    scale, unit = next((each for each in _UNITS if abs(value) >= each[0]), _UNITS[-1])
    return f"{value / scale:.3g} {unit}"


def change_words(compared: Compared) -> str:
    """`-12 % (-14 to -10)`, or `no difference` with the noise it is inside of."""
    found = compared.difference
    if found.verdict in _WORDS:
        return f"{_WORDS[found.verdict]} ({found.change:+.0%}, noise {found.noise:.0%})".replace("%", " %")
    return f"{found.change:+.0%} ({100 * found.low:+.0f} to {100 * found.high:+.0f}, noise {found.noise:.0%})".replace(
        "%", " %"
    )


def _about(rows: Sequence[SpeedRow]) -> str:
    first = rows[0]
    told = [" ".join(version) for version in first.versions]
    if first.machine is not None:
        machine = first.machine
        told.append(f"{machine.processor}, {machine.cores} cores, {machine.system}")
        told += [part for part in (machine.gpu, machine.driver and f"driver {machine.driver}", machine.clocks) if part]
    loads = [load for row in rows if row.machine is not None for load in row.machine.load]
    busy = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "unknown"
    return f"{', '.join(told)}; load average while it was measured {busy}.\n"


def _steadies(rows: Sequence[SpeedRow]) -> Iterator[tuple[SpeedRow, Steady]]:
    for row in rows:
        for steady in row.steady:
            yield row, steady


_STEADY_HEADINGS = ("model", "configuration", "before", "after", "change", "calls/s", "peak memory")


def _steady(row: SpeedRow, steady: Steady) -> tuple[str, ...]:
    return (
        _name(row),
        steady.configuration,
        seconds_words(steady.latency_s.before),
        seconds_words(steady.latency_s.after),
        change_words(steady.latency_s),
        f"{steady.calls_per_s_before:.4g} → {steady.calls_per_s_after:.4g}",
        f"{_mebibytes(steady.peak_bytes_before)} → {_mebibytes(steady.peak_bytes_after)}",
    )


_COUNT_HEADINGS = (
    "model",
    "configuration",
    "compiled regions",
    "kernel launches",
    "CUDA graphs",
    "waits",
    "copies to host",
)


def _counts(row: SpeedRow, steady: Steady) -> tuple[str, ...]:
    def both(of: Callable[[ProfileCounts], float | None]) -> str:
        values = [None if each is None else of(each) for each in (steady.profile_before, steady.profile_after)]
        return "-" if values == [None, None] else " → ".join("?" if value is None else f"{value:g}" for value in values)

    return (
        _name(row),
        steady.configuration,
        both(lambda counts: counts.compiled_regions),
        both(lambda counts: counts.kernel_launches),
        both(lambda counts: counts.graph_launches),
        both(lambda counts: counts.syncs),
        both(lambda counts: counts.copies_to_host),
    )


_COLD_HEADINGS = ("model", "call", "CPU before", "CPU after", "change", "wall", "change", "run, CPU", "change")


def _cold(row: SpeedRow, call: ColdCall) -> tuple[str, ...]:
    return (
        _name(row),
        str(call.number or "1 to 4"),
        seconds_words(call.cpu_s.before),
        seconds_words(call.cpu_s.after),
        change_words(call.cpu_s),
        _both(call.wall_s),
        change_words(call.wall_s),
        _both(call.run_cpu_s),
        change_words(call.run_cpu_s),
    )


def _both(compared: Compared) -> str:
    return f"{seconds_words(compared.before)} → {seconds_words(compared.after)}"


def _compilations(rows: Sequence[SpeedRow]) -> str:
    told = [
        f"- {_name(row)}: {row.cold.compilations_before} → {row.cold.compilations_after} compilations in four calls"
        for row in rows
        if row.cold is not None
    ]
    return "\n".join(told) + "\n" if told else ""


def _remarks(rows: Sequence[SpeedRow]) -> str:
    told = [
        f"- {_name(row)}: {line}" for row in rows for line in (*([row.message] if row.message else []), *row.remarks)
    ]
    return "## Remarks\n\n" + "\n".join(told) + "\n" if told else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "Not measured.\n"
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows]) + "\n"


def _name(row: SpeedRow) -> str:
    return row.model.rpartition(":")[2]


def _mebibytes(value: int | None) -> str:
    return "?" if value is None else f"{value / 2**20:.0f} MiB"
