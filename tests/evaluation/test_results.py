"""Measurements as JSON, and what a row tells a reviewer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from graphmend_evaluation.results import (
    BreakSite,
    CallResult,
    Comparison,
    Counts,
    Message,
    ModelMeasurement,
    ModelRow,
    SkippedFrame,
    Status,
    from_json,
    to_json,
)

SITE = BreakSite("a/b.py", 3, "forward", "print(x)", "GB0059", "Failed to trace builtin operator", "reason", 2)
BROKEN = Counts(4, (2, 1, 1, 3), 2, 2, (SITE,), 1, (SkippedFrame("a/b.py", 1, "forward", "why"),), "Unsupported: no")
WHOLE = Counts(1, (7,), 0, 0, (), 0, (), None)
SKIPPED = SkippedFrame("a/b.py", 9, "helper", "why not")
CALL = CallResult(None, None, None, (Message("log", "WARNING", "told", "a/b.py:forward"),), ())
BEFORE = ModelMeasurement("m:f", Status.OK, "", 1.5, BROKEN, (CALL,), None, (("torch", "2.13.0"),))
AFTER = ModelMeasurement("m:f", Status.OK, "", 2.0, WHOLE, (CALL,), Comparison(()))
FAILED = ModelMeasurement("m:f", Status.TIMEOUT, "no result after 5 s", 5.0)


@pytest.mark.parametrize("value", [BEFORE, AFTER, FAILED], ids=["before", "after", "failed"])
def test_measurement_survives_json(value: ModelMeasurement) -> None:
    assert from_json(ModelMeasurement, json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize(
    "change",
    [{"status": "perhaps"}, {"seconds": "many"}, {"counts": {"graphs": 1}}, {"unknown": 1}, {"calls": 3}],
    ids=lambda change: next(iter(change)),
)
def test_json_that_is_no_measurement_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(ModelMeasurement, {**to_json(BEFORE), **change})


def test_row_without_problems_is_ok() -> None:
    assert ModelRow("m:f", BEFORE, AFTER).ok


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (FAILED, "after: no result after 5 s"),
        (replace(AFTER, against_base=Comparison(("call 1, x",))), "eager result changed: call 1, x"),
        (replace(AFTER, calls=(replace(CALL, compiled_difference="far off"),)), "compiled call 1: far off"),
        (replace(AFTER, calls=(replace(CALL, compiled_error="E: x"),)), "compiled call 1: E: x"),
        (
            replace(AFTER, calls=(replace(CALL, eager_error="E: x"),)),
            "compiled call 1: returns, where eager mode raises E: x",
        ),
        (replace(AFTER, counts=replace(WHOLE, graphs=0, ops_per_graph=())), "nothing is compiled any more"),
        (
            replace(AFTER, counts=replace(WHOLE, skipped_frames=(*BROKEN.skipped_frames, SKIPPED))),
            "`helper` is not compiled any more: why not",
        ),
    ],
)
def test_problem_is_told(after: ModelMeasurement, problem: str) -> None:
    row = ModelRow("m:f", BEFORE, after)
    assert row.problems == (problem,)
    assert not row.ok


def test_frames_that_were_skipped_before_are_no_news() -> None:
    other = replace(WHOLE, skipped_frames=(SKIPPED,))  # after one break is mended another one is met
    assert ModelRow("m:f", BEFORE, replace(AFTER, counts=other)).ok
    nothing = replace(WHOLE, graphs=0, ops_per_graph=(), skipped_frames=(SKIPPED,))
    assert ModelRow("m:f", replace(BEFORE, counts=nothing), replace(AFTER, counts=nothing)).ok


def test_compiled_problem_that_was_there_before_is_no_news() -> None:
    calls = (replace(CALL, compiled_difference="far off"),)
    assert ModelRow("m:f", replace(BEFORE, calls=calls), replace(AFTER, calls=calls)).ok


@pytest.mark.parametrize(
    "counts",
    [
        BROKEN,
        replace(WHOLE, graphs=0, ops_per_graph=()),
        replace(WHOLE, skipped_frames=(SkippedFrame("a.py", 1, "f", "why"),)),
        replace(WHOLE, strict_error="Unsupported: no"),
    ],
    ids=["breaks", "captures nothing", "skips a frame", "fails the strict verdict"],
)
def test_whole_means_captured_and_unbroken(counts: Counts) -> None:
    assert WHOLE.whole
    assert not counts.whole


def test_fewer_operations_than_before_are_noticed() -> None:
    assert not ModelRow("m:f", BEFORE, AFTER).fewer_ops
    assert ModelRow("m:f", BEFORE, replace(AFTER, counts=replace(WHOLE, ops_per_graph=(6,)))).fewer_ops
