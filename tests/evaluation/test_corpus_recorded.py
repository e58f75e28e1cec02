"""The arm of a corpus with recorded runs: which rows are recorded, fixed and measured in which round."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphmend_codemod.trace.document import Totals, Trace, as_json
from graphmend_evaluation.recording_rounds import TRACE
from graphmend_evaluation.results import Counts
from graphmend_evaluation.survey.corpus_page import Measured, answer, markdown
from graphmend_evaluation.survey.corpus_recorded import Recorded, measured
from graphmend_evaluation.survey.row import Row, append, read
from graphmend_evaluation.survey.worker import in_fork

MODULE = """
import numpy
import torch


def order(rows):
    return numpy.lexsort((rows, rows % 2)).astype("int64")


class Scale(torch.nn.Module):
    def forward(self, x):
        found = torch.from_numpy(order(x.detach().numpy()))
        return x[found] * 2


def made():
    return Scale(), [(torch.arange(4.0),), (torch.arange(7.0),)]
"""
EMPTY = Trace("1", "tiny", False, (), Totals(0, 0, 0, 0, 0, 0, 0.0), (), (), (), ())


class Worker:
    """Writes rows as the worker does: `breaks` of each row behind each round; a row without any is not recorded."""

    def __init__(self, breaks: dict[str, list[int]]) -> None:
        self.calls: list[tuple[str, str, list[str]]] = []
        self._breaks = breaks

    def __call__(self, root: Path, out: Path, rows: Sequence[str], *more: str) -> None:
        self.calls.append((root.name, out.name, list(rows)))
        for each in rows:
            if "--record" in more:
                (out / each).mkdir(parents=True)
                (out / each / TRACE).write_text(as_json(EMPTY))
                ok = bool(self._breaks[each])
                kept = dataclasses.replace(_row(each, 1), seconds=10.0)
                append(out / "results.jsonl", kept if ok else Row(each, each, "failed", "raises", 10.0))
            else:
                out.mkdir(exist_ok=True)
                append(out / "results.jsonl", _row(each, self._breaks[each].pop(0)))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder with an installed package and what was measured of it."""
    (tmp_path / "base" / "tiny").mkdir(parents=True)
    (tmp_path / "base" / "tiny" / "__init__.py").write_text(MODULE)
    (tmp_path / "rows-base").mkdir()
    for name in ("A:eval", "B:eval", "C:eval"):
        append(tmp_path / "rows-base" / "results.jsonl", _row(name, 3))
    return tmp_path


def test_what_still_breaks_is_recorded_again_and_what_cannot_be_recorded_is_left_out(work: Path) -> None:
    worker = Worker({"A:eval": [0], "B:eval": [2, 1], "C:eval": []})

    found = measured(work, ["A:eval", "B:eval", "C:eval"], 2, worker)

    assert worker.calls == [
        ("base", "recorded", ["A:eval", "B:eval", "C:eval"]),
        ("A:eval", "after-recorded", ["A:eval"]),
        ("B:eval", "after-recorded", ["B:eval"]),
        ("B:eval", "recorded-2", ["B:eval"]),
        ("B:eval", "after-recorded-2", ["B:eval"]),
    ]
    assert {name: each.row.breaks for name, each in found.items() if each.row} == {"A:eval": 0, "B:eval": 1}
    assert found["C:eval"] == Recorded(None, "raises", 10.0)
    assert 10.0 < found["A:eval"].seconds < 20.0 < found["B:eval"].seconds


def test_an_interrupted_run_goes_on_and_another_number_of_rounds_begins_anew(work: Path) -> None:
    measured(work, ["A:eval"], 1, Worker({"A:eval": [1]}))

    again, others = Worker({"A:eval": [1]}), Worker({"A:eval": [1, 0]})
    found = measured(work, ["A:eval"], 1, again)
    more = measured(work, ["A:eval"], 2, others)

    assert again.calls == []
    assert found["A:eval"].row is not None
    assert found["A:eval"].row.breaks == 1
    assert [out for _, out, _ in others.calls] == ["recorded", "after-recorded", "recorded-2", "after-recorded-2"]
    assert more["A:eval"].row is not None
    assert more["A:eval"].row.whole


@pytest.mark.slow
def test_a_call_that_no_rule_knows_is_an_operator_behind_a_recorded_run(work: Path) -> None:
    """With the class that records rows of transformers, on a package of one module."""

    def worker(root: Path, out: Path, rows: Sequence[str], *more: str) -> None:
        for name in rows:
            row = in_fork(name, lambda name: _measure(root, out, work / "rows-base", name, *more), out, 120.0)
            append(out / "results.jsonl", row)

    (work / "rows-base" / "results.jsonl").unlink()
    worker(work / "base", work / "rows-base", ["A:eval"], "--first")
    found = measured(work, ["A:eval"], 1, worker)

    assert read(work / "rows-base" / "results.jsonl")[0].breaks == 2
    row = found["A:eval"].row
    assert row is not None
    assert (row.whole, row.differences, row.compiled) == (True, (), None)
    assert "_operator" in (work / "head-recorded" / "A:eval" / "tiny" / "__init__.py").read_text()


def _measure(root: Path, out: Path, against: Path, name: str, *more: str) -> Row:
    from graphmend_evaluation.loading import Factory
    from graphmend_evaluation.survey.measuring import Measuring
    from graphmend_evaluation.survey.recording import Recording

    sys.path.insert(0, str(root))
    from tiny import made  # type: ignore[import-not-found]

    kind = Recording if "--record" in more else Measuring
    compared = None if more else against
    return kind(root, out, compared, 1).measured(name, "Scale", Factory(root, "tiny:made", made))


def test_the_page_counts_what_recorded_runs_make_whole() -> None:
    broken = _row("X", 2)
    rows = [
        Measured("A:eval", broken, _row("A", 0), None),
        Measured("B:eval", broken, broken, broken, recorded=Recorded(_row("B", 0), "", 30.0)),
        Measured("C:eval", broken, broken, broken, recorded=Recorded(_row("C", 1), "", 30.0)),
        Measured("D:eval", broken, broken, broken, recorded=Recorded(None, "raises", 5.0)),
    ]

    page = markdown(rows, {})

    assert "1 (25%) with opaque ones as well, 2 (50%) with what recorded runs of each row tell." in answer(rows)
    assert "| `B` eval | 2 | 2 | 2 | 0 | 34 |" in page
    assert "| `D` eval | 2 | 2 | 2 |  | 8 |" in page
    assert "## Rows that could not be recorded\n\n- `D:eval`: raises\n" in page
    assert "GM112" not in page
    assert rows[1].to_json()["recorded"]["row"]["type"] == "B"


def test_a_row_that_fails_behind_a_recorded_run_is_a_problem_and_one_not_recorded_is_none() -> None:
    broken = _row("X", 2)
    failed = Measured("A:eval", broken, broken, broken, recorded=Recorded(Row("A", "A", "failed", "no", 1.0), "", 1.0))

    assert failed.problems == ("recorded: failed: no",)
    assert Measured("A:eval", broken, broken, broken, recorded=Recorded(None, "raises", 1.0)).problems == ()


def _row(name: str, breaks: int) -> Row:
    counts = Counts(breaks + 1, (), 0, breaks, (), 0, (), None)
    return Row(name, "X", "ok", "", 1.0, None, counts)
