"""The table: our numbers beside the published ones, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend_evaluation.paper.rows import NOT_RUN, Row, published
from graphmend_evaluation.results import SCHEMA_VERSION, Counts, ModelMeasurement, ModelRow, to_json

HEADINGS = ("row", "published", "graphs", "break events", "break sites", "eager", "compiled", "messages", "verdict")


@dataclass(frozen=True)
class Measured:
    """A row of the table with the measurements of its factories, in their order."""

    row: Row
    models: tuple[ModelRow, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one line each, beginning with the factory's name."""
        return tuple(
            f"{model.model.rpartition(':')[2]}: {problem}" for model in self.models for problem in model.problems
        )

    @property
    def whole(self) -> bool:
        """True when after the migration every call of every factory runs as one graph."""
        return all(model.after.counts is not None and model.after.counts.whole for model in self.models)


def cells(measured: Measured) -> tuple[str, ...]:
    """The row as text, one entry for each of `HEADINGS`."""
    first = measured.models[0]
    before, after = first.before.counts, first.after.counts
    return (
        measured.row.name,
        _published(measured.row),
        _change(before, after, lambda counts: counts.graphs + counts.recompiled_graphs),
        _change(before, after, lambda counts: counts.break_events),
        _change(before, after, lambda counts: len(counts.sites)),
        _eager(measured),
        _compiled(measured),
        _messages(first),
        _verdict(measured),
    )


def lines(results: Sequence[Measured]) -> Iterator[str]:
    """The table for a terminal, then what is wrong and what is left."""
    rows = [HEADINGS, *(cells(measured) for measured in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)
    yield from _remarks(results)


def markdown(results: Sequence[Measured], about: dict[str, str]) -> str:
    """The table as a Markdown document."""
    told = ", ".join(f"{name} {value}" for name, value in about.items() if name != "date")
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(measured) for measured in results)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    hub = "\n".join(
        f"- {name}: {published()[name].breaks} breaks published; not run: its code or weights need the model hub"
        for name in NOT_RUN
    )
    remarks = "\n".join(f"- {line.strip()}" for line in _remarks(results) if line.strip())
    return (
        f"# The published table, {about['date']}\n\n{told}.\n\n"
        "Small models with random weights and the same break sites; `torch.compile` with a counting backend,\n"
        "`dynamic=False`, capture flags off. *Published* is the number of breaks in the paper and the percentage that\n"
        "its authors' tool removed; it counts graphs less one. *Eager* compares outputs, exceptions, messages, state\n"
        "and random numbers before and after, bit for bit; *compiled* compares with eager within each dtype's\n"
        "tolerance; *messages* counts log records and warnings of the first call.\n\n"
        f"{table}\n\n{remarks}{chr(10) if remarks else ''}\n## Rows that need the network\n\n{hub}\n"
    )


def as_json(results: Sequence[Measured], about: dict[str, str]) -> dict[str, Any]:
    """The measurements in full. The schema is that of `graphmend_evaluation.results`."""
    return {
        "schema": SCHEMA_VERSION,
        "about": about,
        "rows": [
            {
                "row": measured.row.name,
                "stands_for": list(measured.row.stands_for),
                "published": [to_json(published()[model]) for model in measured.row.stands_for],
                "whole_after": measured.whole,
                "problems": list(measured.problems),
                "models": [to_json(model) for model in measured.models],
            }
            for measured in results
        ],
        "not_run": list(NOT_RUN),
    }


def about_this_run(results: Sequence[Measured]) -> dict[str, str]:
    """Date, versions and machine."""
    versions = next((dict(model.after.versions) for each in results for model in each.models if model.after.ok), {})
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        **versions,
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
    }


def _published(row: Row) -> str:
    found = {(published()[model].breaks, published()[model].fixed_percent) for model in row.stands_for}
    return ", ".join(f"{breaks} (-{percent}%)" for breaks, percent in sorted(found)) or "-"


def _change(before: Counts | None, after: Counts | None, number: Any) -> str:
    return " -> ".join("?" if counts is None else str(number(counts)) for counts in (before, after))


def _eager(measured: Measured) -> str:
    compared = [model.after.against_base for model in measured.models]
    if any(comparison is None for comparison in compared):
        return "?"
    return "identical" if all(comparison and comparison.identical for comparison in compared) else "DIFFERENT"


def _compiled(measured: Measured) -> str:
    calls = [call for model in measured.models for call in model.after.calls]
    if not calls:
        return "?"
    return "as eager" if all(call.compiled_problem is None for call in calls) else "DIFFERENT"


def _messages(model: ModelRow) -> str:
    """Eager before, eager after, compiled after, in the first call."""

    def spoken(measurement: ModelMeasurement) -> tuple[str, str]:
        if not measurement.calls:
            return "?", "?"
        call = measurement.calls[0]
        return str(len(call.eager_messages)), str(len(call.compiled_messages))

    (before, _), (after, compiled) = spoken(model.before), spoken(model.after)
    return f"{before} -> {after}, compiled {compiled}"


def _verdict(measured: Measured) -> str:
    if measured.problems:
        return "PROBLEM"
    counts = measured.models[0].after.counts
    if measured.whole or counts is None:
        return "one graph"
    return f"still breaks at {len(counts.sites)} site{'' if len(counts.sites) == 1 else 's'}"


def _remarks(results: Sequence[Measured]) -> Iterator[str]:
    for measured in results:
        for problem in measured.problems:
            yield f"{measured.row.name}: {problem}"
        for model in measured.models:
            if model.fewer_ops and model.before.counts is not None and model.after.counts is not None:
                ops = f"{model.before.counts.ops} to {model.after.counts.ops}"
                yield f"{model.model.rpartition(':')[2]} captures fewer operations, from {ops}: see that none was lost"
    for measured in results:
        counts = measured.models[0].after.counts
        for site in counts.sites if counts is not None else ():
            yield f"{measured.row.name} still breaks at {site.path}:{site.line}: {site.kind}: {site.source}"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
