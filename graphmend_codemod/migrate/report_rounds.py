"""The rounds of recorded runs in a migration's report: lines for the terminal, Markdown and values for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.evaluation.rounds import LeftBreak, RecordedFix, Round
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.reporting.markdown import code, escaped
from graphmend_codemod.reporting.report import plural

_LEFT_SHOWN = 10


def terminal_lines(outcome: Migration, paint: Paint) -> Iterator[str]:
    """What each round did, and what still breaks, for a terminal."""
    if not (outcome.rounds or outcome.left_breaks):
        return
    yield ""
    for each in outcome.rounds:
        yield f"Recorded run {each.number}: {round_words(each)}"
    for failed in dict.fromkeys(one for each in outcome.rounds for one in each.failed):
        yield f"  {paint.yellow(printable(f'not recorded: {failed}'))}"
    if outcome.left_breaks:
        yield f"Still breaking when recorded: {plural(len(outcome.left_breaks), 'place')}"
        for left in outcome.left_breaks[:_LEFT_SHOWN]:
            yield f"  {printable(f'{place_of(left)}: {left.kind}')}"
            yield f"    {printable(left.reason)}"
        if len(outcome.left_breaks) > _LEFT_SHOWN:
            yield f"  and {len(outcome.left_breaks) - _LEFT_SHOWN} more, in the report"


def markdown(outcome: Migration) -> Iterator[str]:
    """The sections of the report, one text for each block."""
    if outcome.rounds:
        yield "## Recorded runs"
        yield "\n".join(_table(outcome.rounds))
    for each in outcome.rounds:
        rows = [f"- {fix_words(fix)}" for fix in each.fixes]
        rows += [f"- not recorded: {escaped(one)}" for one in each.failed]
        if rows:
            yield f"### Recorded run {each.number}"
            yield "\n".join(rows)
    if outcome.left_breaks:
        yield "## Still breaking when recorded"
        yield "Line numbers refer to the branch."
        yield "\n".join(f"- {left_words(each)}" for each in outcome.left_breaks)


def as_values(outcome: Migration) -> dict[str, Any]:
    """The fields of `report.json`."""
    return {
        "rounds": [dataclasses.asdict(each) for each in outcome.rounds],
        "left_breaks": [dataclasses.asdict(each) for each in outcome.left_breaks],
    }


def from_values(document: Mapping[str, Any]) -> tuple[tuple[Round, ...], tuple[LeftBreak, ...]]:
    """The reverse of `as_values`; none where a report has none. KeyError or TypeError where it has others."""
    rounds = tuple(
        Round(
            **{
                **each,
                "recorded": tuple(each["recorded"]),
                "failed": tuple(each["failed"]),
                "fixes": tuple(RecordedFix(**{**fix, "holds_for": tuple(fix["holds_for"])}) for fix in each["fixes"]),
            }
        )
        for each in document.get("rounds", ())
    )
    left = (LeftBreak(**{**each, "models": tuple(each["models"])}) for each in document.get("left_breaks", ()))
    return rounds, tuple(left)


def round_words(each: Round) -> str:
    """`1 model, graph breaks 4 -> 2; of 3 fixes 1 reverted (26.8 s)`."""
    reverted = f", {each.reverted} reverted" if each.reverted else ""
    fixes = f"{len(each.fixes)} fix{'' if len(each.fixes) == 1 else 'es'}{reverted}"
    breaks, took = f"graph breaks {each.before} -> {each.after}", f"{each.seconds:g} s"
    return f"{plural(len(each.recorded), 'model')}, {breaks}; {fixes} ({took})"


def fix_words(fix: RecordedFix) -> str:
    """A fix in Markdown: its place, what it holds for, and why it did not stay."""
    function = f" in {code(fix.function)}" if fix.function else ""
    words = f"{fix.rule} {code(f'{fix.path}:{fix.line}')}{function}"
    if fix.holds_for:
        words += f": an operator from a recorded run, for {', '.join(map(code, fix.holds_for))}"
    return f"{words}. **Reverted**: {escaped(fix.reverted)}" if fix.reverted else words


def place_of(left: LeftBreak) -> str:
    """`zoo/model.py:12`, or the models where there is no place."""
    return f"{left.path}:{left.line}" if left.path else ", ".join(left.models)


def left_words(left: LeftBreak) -> str:
    """A break that is left, in Markdown."""
    function = f" in {code(left.function)}" if left.function else ""
    models = f" ({', '.join(map(code, left.models))})" if left.path else ""
    return f"{code(place_of(left))}{function}: {escaped(left.kind)}{models}. {escaped(left.reason)}"


def _table(rounds: Sequence[Round]) -> Iterator[str]:
    yield "| run | models recorded | breaks before | breaks after | fixes kept | reverted | seconds |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for each in rounds:
        numbers = (each.number, len(each.recorded), each.before, each.after, each.kept, each.reverted, each.seconds)
        yield f"| {' | '.join(f'{number:g}' for number in numbers)} |"
