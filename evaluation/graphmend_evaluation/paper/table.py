"""The table: our numbers beside the published ones, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphmend_evaluation.compilations import Compiled
from graphmend_evaluation.flags import FlagRow
from graphmend_evaluation.machine import this_machine
from graphmend_evaluation.paper.hub import NotRun
from graphmend_evaluation.paper.rows import Row, published
from graphmend_evaluation.results import Counts, ModelMeasurement, ModelRow, Status, from_json, to_json

TABLE_SCHEMA = 2
HEADINGS = (
    "row",
    "published",
    "graphs",
    "break events",
    "break sites",
    "eager",
    "compiled",
    "Inductor",
    "messages",
    "with flags",
    "verdict",
)


@dataclass(frozen=True)
class Measured:
    """A row of the table with the measurements of its factories, in their order.

    `inductor` has each factory with several calls after the migration, empty where that was not asked for; `flags` is
    None where it was not asked for or nothing breaks. `date` is that of the measurement.
    """

    row: Row
    models: tuple[ModelRow, ...]
    inductor: tuple[Compiled, ...] = ()
    flags: FlagRow | None = None
    date: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one line each, beginning with the factory's name."""
        found = [f"{model.model.rpartition(':')[2]}: {problem}" for model in self.models for problem in model.problems]
        return (*found, *(f"Inductor: {problem}" for compiled in self.inductor for problem in compiled.problems))

    @property
    def seconds(self) -> float:
        """How long all child processes of the row took, one after the other."""
        arms = sum(model.before.seconds + model.after.seconds for model in self.models)
        return arms + sum(each.seconds for each in self.inductor) + (0.0 if self.flags is None else self.flags.seconds)

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
        " -> ".join("?" if each is None else str(each) for each in graphs(first)),
        _change(before, after, lambda counts: counts.break_events),
        _change(before, after, lambda counts: len(counts.sites)),
        _eager(measured),
        _compiled(measured),
        _inductor(measured),
        _messages(first),
        _with_flags(measured),
        _verdict(measured),
    )


def graphs(model: ModelRow) -> tuple[int | None, int | None]:
    """FX graphs before and after, as the published table counts them; None where nothing was counted.

    Of a single call that is every graph. Of several it is those of first compilations: the others are of new shapes.
    """
    found = []
    for measured in (model.before, model.after):
        counts = measured.counts
        more = 0 if counts is None or len(measured.calls) > 1 else counts.recompiled_graphs
        found.append(None if counts is None else counts.graphs + more)
    return found[0], found[1]


def lines(results: Sequence[Measured]) -> Iterator[str]:
    """The table for a terminal, then what is wrong and what is left."""
    rows = [HEADINGS, *(cells(measured) for measured in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)
    yield from remarks(results)
    yield took(results)


def markdown(results: Sequence[Measured], not_run: Sequence[NotRun], about: dict[str, str]) -> str:
    """The table as a Markdown document."""
    told = ", ".join(f"{name} {value}" for name, value in about.items() if name != "date")
    hub = "\n".join(
        f"- {each.model}: {published()[each.model].breaks} breaks published; {each.reason}" for each in not_run
    )
    told_below = "\n".join(f"- {line.strip()}" for line in remarks(results) if line.strip())
    return (
        f"# The published table, {about['date']}\n\n{told}.\n\n"
        "Small models with random weights and the same break sites; `torch.compile` with a counting backend,\n"
        "`dynamic=False`, capture flags off. *Published* is the number of breaks in the paper and the percentage that\n"
        "its authors' tool removed; it counts graphs less one. *Eager* compares outputs, exceptions, messages, state\n"
        "and random numbers before and after, bit for bit; *compiled* compares with eager within each dtype's\n"
        "tolerance, *Inductor* does the same with that backend and torch's own choice of dynamic sizes, after the\n"
        "migration; *messages* counts log records and warnings of the first call.\n\n"
        f"{as_markdown(results)}\n\n{told_below}{chr(10) * 2 if told_below else ''}{took(results)}\n"
        + (f"\n## Rows that were not run\n\n{hub}\n" if not_run else "")
    )


def as_markdown(results: Sequence[Measured]) -> str:
    """Only the table; columns of what was not asked for are left out."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(measured) for measured in results)]
    unasked = [column for column in range(len(HEADINGS)) if all(row[column] == "-" for row in rows[2:])]
    kept = [[cell for column, cell in enumerate(row) if column not in unasked] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in kept)


def as_json(results: Sequence[Measured], not_run: Sequence[NotRun], about: dict[str, str]) -> dict[str, Any]:
    """The measurements in full. Each part has the schema of its class."""
    return {
        "schema": TABLE_SCHEMA,
        "about": about,
        "rows": [
            {
                "published": [to_json(published()[model]) for model in measured.row.stands_for],
                "whole_after": measured.whole,
                "problems": list(measured.problems),
                **_without_files(to_json(measured)),
            }
            for measured in results
        ],
        "not_run": [to_json(each) for each in not_run],
    }


def read_json(data: dict[str, Any]) -> tuple[tuple[Measured, ...], tuple[NotRun, ...]]:
    """The reverse of `as_json`.

    Raises `KeyError`, `TypeError` or `ValueError` for another schema.
    """
    if data["schema"] != TABLE_SCHEMA:
        raise ValueError(f"schema {data['schema']}, not {TABLE_SCHEMA}")
    fields = ("row", "models", "inductor", "flags", "date")
    rows = tuple(from_json(Measured, {name: row[name] for name in fields}) for row in data["rows"])
    return rows, tuple(from_json(NotRun, each) for each in data["not_run"])


def _without_files(measured: dict[str, Any]) -> dict[str, Any]:
    """Without the hundreds of files that each model imports, and without stacks, which have paths of a machine."""
    for model in measured["models"]:
        for arm in ("before", "after"):
            model[arm]["files"] = []
            _shorten(model[arm]["calls"])
    for compiled in measured["inductor"]:
        _shorten(compiled["calls"])
    return measured


def _shorten(calls: Sequence[dict[str, Any]]) -> None:
    for call in calls:
        for error in ("eager_error", "compiled_error"):
            call[error] = None if call[error] is None else str(call[error]).partition("\n")[0]


def now() -> str:
    """Date and time of day."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def about_this_run(results: Sequence[Measured]) -> dict[str, str]:
    """Date, versions and machine."""
    versions = next((dict(model.after.versions) for each in results for model in each.models if model.after.ok), {})
    machine = this_machine()
    return {
        "date": now(),
        **versions,
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.system}",
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
    if not all(comparison and comparison.identical for comparison in compared):
        return "DIFFERENT"
    calls = sum(len(model.after.calls) for model in measured.models)
    return f"identical, {calls} call{'' if calls == 1 else 's'}"


def _compiled(measured: Measured) -> str:
    calls = [call for model in measured.models for call in model.after.calls]
    if not calls:
        return "?"
    return "as eager" if all(call.compiled_problem is None for call in calls) else "DIFFERENT"


def _inductor(measured: Measured) -> str:
    if not measured.inductor:
        return "-"
    unmeasured = [compiled for compiled in measured.inductor if compiled.status is not Status.OK]
    if unmeasured:
        return f"no result: {unmeasured[0].status.value}"
    if any(compiled.problems for compiled in measured.inductor):
        return "DIFFERENT"
    most = max(_most_recompiles(compiled) for compiled in measured.inductor)
    return f"as eager, {most} recompile{'' if most == 1 else 's'}"


def _most_recompiles(compiled: Compiled) -> int:
    return 0 if compiled.counts is None else compiled.counts.recompiles


def _with_flags(measured: Measured) -> str:
    best = None if measured.flags is None else measured.flags.best
    if measured.flags is None:
        return "-"
    return "no flag helps" if best is None else f"{measured.flags.breaks} -> {best.breaks}, {best.setting}"


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
        return "one graph" if counts is None else counts.whole_words
    return f"still breaks at {len(counts.sites)} site{'' if len(counts.sites) == 1 else 's'}"


def took(results: Sequence[Measured]) -> str:
    """How long each row took."""
    seconds = ", ".join(f"{each.row.name} {each.seconds:.0f}" for each in results)
    return f"Seconds of each row, for both arms and all that was asked for beside them: {seconds}."


def remarks(results: Sequence[Measured]) -> Iterator[str]:
    """What is wrong and what is left, a line each."""
    for measured in results:
        for problem in measured.problems:
            yield f"{measured.row.name}: {problem}"
        for model in measured.models:
            if model.fewer_ops and model.before.counts is not None and model.after.counts is not None:
                ops = f"{model.before.counts.ops} to {model.after.counts.ops}"
                yield f"{model.model.rpartition(':')[2]} captures fewer operations, from {ops}: see that none was lost"
        yield from _failing_already(measured)
        for line in () if measured.flags is None else measured.flags.advice:
            yield f"{measured.row.name}, advice: {line}"
    for measured in results:
        counts = measured.models[0].after.counts
        for site in counts.sites if counts is not None else ():
            yield f"{measured.row.name} still breaks at {site.path}:{site.line}: {site.kind}: {site.source}"


def _failing_already(measured: Measured) -> Iterator[str]:
    """What compiling gets wrong before the migration too, and is no problem of it."""
    for model in measured.models:
        for number, (old, new) in enumerate(zip(model.before.calls, model.after.calls, strict=False), 1):
            if old.compiled_problem is not None and new.compiled_problem is not None:
                name = model.model.rpartition(":")[2]
                problem = " ".join(new.compiled_problem.split())[:100]
                yield f"{name}: compiled call {number} fails before the migration and after: {problem}"
