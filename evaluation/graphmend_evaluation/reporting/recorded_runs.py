"""The rounds of recorded runs as Markdown: what each did, for which calls its operators hold, and what still breaks."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend_codemod.evaluation.rounds import LeftBreak, RecordedFix
from graphmend_evaluation.evaluation import Evaluation
from graphmend_evaluation.reporting.words import cell, code, plain

HEAD = "| run | models recorded | breaks | fixes kept | reverted | seconds |\n|---:|---:|---:|---:|---:|---:|"


def rows(evaluation: Evaluation) -> Iterator[str]:
    """A row of a table for each round."""
    for each in evaluation.rounds:
        breaks = f"{each.before} → {each.after}"
        cells = (each.number, len(each.recorded), breaks, each.kept, each.reverted, f"{each.seconds:g}")
        yield f"| {' | '.join(cell(str(one)) for one in cells)} |"


def fixes(evaluation: Evaluation) -> Iterator[str]:
    """A line for each fix of each round, and for each model that could not be recorded."""
    for each in evaluation.rounds:
        yield from (f"- run {each.number}: {_fix(fix)}" for fix in each.fixes)
        yield from (f"- run {each.number}: not recorded: {plain(failed)}" for failed in each.failed)


def left(evaluation: Evaluation) -> Iterator[str]:
    """A line for each place that the last run broke at, with the reason that it is not fixed."""
    yield from (f"- {_left(each)}" for each in evaluation.left_breaks)


def _fix(fix: RecordedFix) -> str:
    words = f"{plain(fix.rule)} {code(f'{fix.path}:{fix.line}')}"
    if fix.holds_for:
        words += f", an operator for {', '.join(map(code, fix.holds_for))}"
    return f"{words}: **reverted**, {plain(fix.reverted)}" if fix.reverted else words


def _left(left: LeftBreak) -> str:
    models = ", ".join(map(code, left.models))
    if not left.path:
        return f"{models}: {plain(left.kind)}. {plain(left.reason)}"
    return f"{code(f'{left.path}:{left.line}')}: {plain(left.kind)}, in {models}. {plain(left.reason)}"
