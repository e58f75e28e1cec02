"""Capture flags as advice: what a real child says of small models, and how trials are judged."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_evaluation.compilations import COUNTING, Compilations, Compiled, Way
from graphmend_evaluation.compiling import compile_in_ways
from graphmend_evaluation.flags import SCALARS, SHAPES, FlagRow, FlagVerdict, flag_row, measure_flags
from graphmend_evaluation.isolation import Policy
from graphmend_evaluation.results import CallResult, Counts, SkippedFrame, Status, from_json, to_json

MODELS = """
    import time

    import torch


    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x * x.max().item()


    class Whole(torch.nn.Module):
        def forward(self, x):
            return x + 1


    def scaled():
        return Scaled(), [(torch.rand(3),), (torch.rand(3),), (torch.rand(4),)]


    def whole():
        return Whole(), (torch.rand(3),)


    def refused():
        raise ValueError("no model today")


    def hangs():
        time.sleep(60)
"""
CALL = CallResult(None, None, None, (), ())
COUNTS = Counts(2, (1, 1), 0, 1, (), 1, (), None)
PLAIN = Compiled(Way("as it is"), Status.OK, "", 1.0, COUNTS, (CALL,))


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    root = tmp_path / "worktree"
    root.mkdir()
    (root / "measured.py").write_text(textwrap.dedent(MODELS))
    return root


def judged(*tried: Compiled, plain: Compiled = PLAIN) -> FlagRow:
    return flag_row(Compilations("m:f", Status.OK, "", 1.0, (plain, *tried)))


def trial(breaks: int, *flags: str, recompiles: int = 1, call: CallResult = CALL) -> Compiled:
    way = Way(" and ".join(flags), flags)
    return Compiled(way, Status.OK, "", 1.0, replace(COUNTS, break_events=breaks, recompiles=recompiles), (call,))


def test_flag_that_takes_the_break_away_is_found_in_a_real_model(worktree: Path, tmp_path: Path) -> None:
    row = measure_flags(worktree, "measured:scaled", folder=tmp_path / "out")
    assert (row.status, row.breaks) == (Status.OK, 1), row
    verdicts = {each.setting: each.verdict for each in row.trials}
    assert verdicts[SCALARS] is FlagVerdict.HELPS
    assert verdicts[SHAPES] is FlagVerdict.NO_DIFFERENCE
    assert len(row.trials) == 4
    assert row.best is not None
    assert row.best.flags == (SCALARS,)
    assert row.advice[0] == (
        f"set torch._dynamo.config.{SCALARS} = True at the place that compiles measured:scaled: "
        "1 -> 0 breaks, results right"
    )
    assert from_json(FlagRow, json.loads(json.dumps(to_json(row)))) == row


def test_model_without_breaks_is_not_asked(worktree: Path, tmp_path: Path) -> None:
    row = measure_flags(worktree, "measured:whole", folder=tmp_path / "out")
    assert (row.status, row.breaks, row.trials, row.advice) == (Status.OK, 0, (), ())


def test_factory_that_raises_costs_the_row_only(worktree: Path, tmp_path: Path) -> None:
    row = measure_flags(worktree, "measured:refused", folder=tmp_path / "out")
    assert row.status is Status.FAILED
    assert "no model today" in row.message


def test_child_that_hangs_is_ended(worktree: Path, tmp_path: Path) -> None:
    found = compile_in_ways(worktree, "measured:hangs", [Way("a")], folder=tmp_path / "out", policy=Policy(timeout=0.5))
    assert found.status is Status.TIMEOUT
    assert found.compiled == ()


def test_flag_that_changes_results_breaks_the_model() -> None:
    row = judged(trial(0, SCALARS, call=replace(CALL, compiled_difference="[0]: other")))
    assert [each.verdict for each in row.trials] == [FlagVerdict.BREAKS_THE_MODEL]
    assert row.best is None
    assert row.advice == (f"leave {SCALARS} off where m:f is compiled: call 1: [0]: other",)


def test_flag_under_which_the_process_dies_breaks_the_model() -> None:
    row = judged(Compiled(Way(SHAPES, (SHAPES,)), Status.CRASHED, "ended by SIGSEGV", 1.0))
    assert (row.trials[0].verdict, row.trials[0].problem) == (FlagVerdict.BREAKS_THE_MODEL, "ended by SIGSEGV")


def test_problem_that_is_there_without_a_flag_is_not_charged_to_it() -> None:
    wrong = replace(CALL, compiled_difference="[0]: other")
    row = judged(trial(1, SCALARS, call=wrong), plain=replace(PLAIN, calls=(wrong,)))
    assert row.trials[0].verdict is FlagVerdict.NO_DIFFERENCE


def test_more_breaks_are_told_and_not_advised() -> None:
    row = judged(trial(2, SHAPES))
    assert row.trials[0].verdict is FlagVerdict.MORE_BREAKS
    assert row.advice == ()


def test_fewest_breaks_and_then_fewest_flags_are_best() -> None:
    row = judged(trial(0, SCALARS, SHAPES), trial(0, SHAPES, recompiles=3))
    assert row.best is not None
    assert row.best.flags == (SHAPES,)
    (advice,) = row.advice
    assert advice.endswith("1 -> 0 breaks, results right, 2 more recompiles")


def test_skipped_frame_is_no_success() -> None:
    skipped = replace(COUNTS, break_events=0, skipped_frames=(SkippedFrame("a.py", 1, "f", "why"),))
    assert replace(PLAIN, counts=skipped).breaks == 1


def test_ways_travel_as_json() -> None:
    way = Way("x", (SCALARS,), None, COUNTING)
    assert from_json(Way, json.loads(json.dumps(to_json(way)))) == way
