"""The XLA view as text: lines for a terminal and a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graphmend_evaluation.speed.results import Difference, SpeedVerdict
from graphmend_evaluation.xla.correlation import correlation
from graphmend_evaluation.xla.results import Correlation, XlaArm, XlaRow, XlaRun

_HEADINGS = (
    "model",
    "arm",
    "breaks",
    "FX graphs",
    "HLO graphs",
    "runs a call",
    "copies to host a call",
    "what it says",
)
_LEGEND = (
    '*Compiled* is `torch.compile(backend="openxla", dynamic=False)`, *lazy* is lazy tracing without it; numbers are\n'
    "*compiled / lazy*. Each arm and mode ran in a process of its own. HLO graphs are compilations over all calls;\n"
    "runs of an HLO graph and copies to the host are means of passes in which nothing new was compiled, and no result\n"
    "was read: every copy is the model's own.\n\n"
    "- *split in Dynamo only*: lazy tracing runs the call as one HLO graph, so the break is in Python alone.\n"
    "- *a real host read*: Python needs a value of the device, which must wait for it.\n"
    "- *a split in lowering*: an operation that torch_xla cannot lower runs on the CPU, and splits the graph.\n"
)


def lines(rows: Sequence[XlaRow]) -> Iterator[str]:
    """A short answer for each model, for a terminal."""
    for row in rows:
        for name, arm in (("before", row.before), ("after", row.after)):
            yield f"{row.model}, {name}: {arm.words if arm.ok else arm.message}"
    for found in correlations(rows):
        yield f"{found.of}: {found.words}"


def correlations(rows: Sequence[XlaRow]) -> tuple[Correlation, ...]:
    """Break counts against run time, over the models that were measured on both sides."""
    pairs = [(row.before.openxla, row.after.openxla, row.before.lazy) for row in rows if row.ok]
    known = [(old, new, lazy) for old, new, lazy in pairs if old is not None and new is not None and lazy is not None]
    removed = [float(old.break_events - new.break_events) for old, new, _ in known]
    breaks = [float(old.break_events) for old, _, _ in known]
    return (
        correlation(
            "break events removed, and compiled time after as a share of before",
            removed,
            [new.seconds / old.seconds for old, new, _ in known],
        ),
        correlation(
            "break events before, and compiled time as a share of the time of lazy tracing",
            breaks,
            [old.seconds / lazy.seconds for old, _, lazy in known],
        ),
    )


def markdown(rows: Sequence[XlaRow], machine: str) -> str:
    """The whole page. `machine` is one line about where it ran."""
    first = rows[0]
    told = ", ".join(f"{name} {version}" for name, version in first.versions)
    body = [cells(row, name, arm) for row in rows for name, arm in (("before", row.before), ("after", row.after))]
    table = "\n".join("| " + " | ".join(line) + " |" for line in [_HEADINGS, ("---",) * len(_HEADINGS), *body])
    found = "\n".join(f"- {each.of}: {each.words}" for each in correlations(rows))
    return (
        f"# The XLA view, {first.date.partition('T')[0]}\n\n{told}, PJRT device {first.device}; {machine}.\n\n"
        f"{_LEGEND}\n{table}\n\n## Breaks and run time\n\nSpearman's rank correlation over models.\n\n{found}\n\n"
        "## Time per call\n\nMedian, ± half the distance of the quartiles. Four processes, one for each arm and\n"
        "mode, were timed in turn, every other round backwards; a change is that of rounds, with a 99 % interval.\n\n"
        f"{_times(rows)}"
    )


def cells(row: XlaRow, name: str, arm: XlaArm) -> tuple[str, ...]:
    """One arm as text, an entry for each heading."""
    model = row.model.rpartition(":")[2]
    if not arm.ok:
        return (model, name, "?", "?", "?", "?", "?", arm.message)

    def both(of: Callable[[XlaRun], float]) -> str:
        return " / ".join("?" if run is None else f"{of(run):g}" for run in (arm.openxla, arm.lazy))

    def compiled(of: Callable[[XlaRun], float]) -> str:
        return "?" if arm.openxla is None else f"{of(arm.openxla):g}"

    return (
        model,
        name,
        compiled(lambda run: run.break_events),
        compiled(lambda run: run.fx_graphs),
        both(lambda run: run.hlo_graphs),
        both(lambda run: run.executions),
        both(lambda run: run.transfers),
        arm.words,
    )


def _times(rows: Sequence[XlaRow]) -> str:
    headings = ("model", "compiled before", "compiled after", "change", "lazy before", "lazy after", "change")
    body = [
        (
            row.model.rpartition(":")[2],
            *(_time(run) for run in (row.before.openxla, row.after.openxla)),
            _change(row.compiled),
            *(_time(run) for run in (row.before.lazy, row.after.lazy)),
            _change(row.lazy),
        )
        for row in rows
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [headings, ("---",) * len(headings), *body]) + "\n"


def _time(run: XlaRun | None) -> str:
    if run is None or not run.seconds:
        return "?"
    return f"{run.seconds * 1000:.3g} ms ±{run.noise:.0%}".replace("%", " %")


def _change(found: Difference | None) -> str:
    if found is None:
        return "?"
    if found.verdict not in (SpeedVerdict.LESS, SpeedVerdict.MORE):
        return "no difference"
    return f"{found.change:+.0%} ({found.low:+.0%} to {found.high:+.0%})".replace("%", " %")
