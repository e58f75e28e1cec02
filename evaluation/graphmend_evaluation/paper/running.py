"""Measure rows: before and after, then what was asked for beside that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.compilations import Compiled
from graphmend_evaluation.compiling import compile_with_inductor
from graphmend_evaluation.flags import FlagRow, measure_flags
from graphmend_evaluation.isolation import Policy, evaluate_model, in_parallel
from graphmend_evaluation.paper.prepare import Arms
from graphmend_evaluation.paper.rows import Row
from graphmend_evaluation.paper.table import Measured, now
from graphmend_evaluation.results import ModelRow


@dataclass(frozen=True)
class Options:
    """`jobs` models at a time; `inductor` and `flags` add a child process each for the migrated arm."""

    jobs: int = 1
    inductor: bool = False
    flags: bool = False


@dataclass(frozen=True)
class _One:
    row: ModelRow
    inductor: Compiled | None
    flags: FlagRow | None


def measure_rows(
    rows: Sequence[Row], arms: Arms, folder: Path, policy: Policy, options: Options, say: Callable[[str], None]
) -> tuple[Measured, ...]:
    """All rows, model by model. A model that fails costs its own row."""
    models = [(model, number == 0) for row in rows for number, model in enumerate(row.models)]
    say(f"Compiling {len(models)} models before and after, {options.jobs} at a time")
    found: dict[str, _One] = {}

    def measure(number: int, policy: Policy) -> None:
        model, is_first = models[number]
        own = folder / f"{number:03d}"
        found[model] = _measure(model, arms, own, policy, options, is_first=is_first)
        row = found[model].row
        seconds = row.before.seconds + row.after.seconds
        state = "measured" if row.ok else "; ".join(row.problems)
        say(f"  [{len(found)}/{len(models)}] {model.rpartition(':')[2]}: {state} ({seconds:.0f} s)")

    in_parallel(measure, len(models), jobs=options.jobs, policy=policy)
    date = now()
    return tuple(_put_together(row, [found[model] for model in row.models], date) for row in rows)


def _measure(model: str, arms: Arms, folder: Path, policy: Policy, options: Options, *, is_first: bool) -> _One:
    row = evaluate_model(arms.before, arms.after, model, folder=folder, policy=policy)
    after = row.after.counts
    inductor, flags = None, None
    if options.inductor and after is not None and len(row.after.calls) > 1:
        headers = folder.parent / "headers"
        inductor = compile_with_inductor(arms.after, model, folder=folder / "inductor", headers=headers, policy=policy)
    if options.flags and is_first and after is not None and not after.whole:
        flags = measure_flags(arms.after, model, folder=folder / "flags", policy=policy)
    return _One(row, inductor, flags)


def _put_together(row: Row, found: Sequence[_One], date: str) -> Measured:
    inductor = tuple(each.inductor for each in found if each.inductor is not None)
    return Measured(row, tuple(each.row for each in found), inductor, found[0].flags, date)
