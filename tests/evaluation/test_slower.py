"""What counts as slower, and which change is to blame for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_evaluation.changes import Mark
from graphmend_evaluation.evaluation import Cause, Source
from graphmend_evaluation.remembered_rows import RowMemory
from graphmend_evaluation.results import Counts, ModelMeasurement, ModelRow, Status
from graphmend_evaluation.slower import options_for, slower
from graphmend_evaluation.speed.options import SpeedOptions
from graphmend_evaluation.speed.results import SpeedRow
from graphmend_evaluation.speed.together import cold_result, steady_result
from graphmend_evaluation.stage import Model, Stage, WorkTrees

NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)


def timed(steady: float = 1.0, cold: float = 1.0, *, starts: int = 4) -> SpeedRow:
    """A row whose head takes so many times as long as its base, with a little noise."""

    def blocks(factor: float) -> list[list[dict[str, object]]]:
        return [[{"seconds": [0.01 * factor * noise], "calls_per_s": 100 / factor} for noise in NOISE]]

    def start(factor: float, number: int) -> dict[str, object]:
        seconds = 10.0 * factor * NOISE[number]
        call = {"wall": seconds, "cpu": seconds, "compile": [0.0, 0.0]}
        return {"calls": [call], "compilations": 1, "peak_bytes": None}

    starts_of = [[start(factor, number) for number in range(starts)] for factor in (1.0, cold)]
    state = steady_result("inductor", blocks(1.0), blocks(steady), [None, None], [None, None])
    return SpeedRow(
        "m", Status.OK, "", 1.0, device="cpu", backend="inductor", cold=cold_result(*starts_of), steady=(state,)
    )


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (timed(), ()),
        (timed(0.5, 0.5), ()),
        (timed(1.04, 1.08), ()),
        (timed(1.5), ("steady state",)),
        (timed(1.0, 1.5), ("cold start",)),
        (timed(1.5, 1.5), ("steady state", "cold start")),
        (timed(1.0, 1.5, starts=2), ()),  # too few to tell
        (None, ()),
    ],
)
def test_a_model_is_slower_outside_the_noise_and_the_tolerance(row: SpeedRow | None, found: tuple[str, ...]) -> None:
    assert tuple(each.partition(" 1")[0] for each in slower(row)) == found


def test_a_cold_start_may_take_longer_where_a_region_is_one_operator() -> None:
    assert slower(timed(1.0, 1.3), outlined=True) == ()
    assert slower(timed(1.0, 1.3))
    assert slower(timed(1.0, 1.5), outlined=True)


def test_only_what_is_slower_is_measured_again() -> None:
    wanted = SpeedOptions(cold=4, rounds=20)
    steady, cold = options_for(timed(1.5), wanted), options_for(timed(1.0, 1.5), wanted)
    assert (steady.cold, steady.rounds) == (0, 20)
    assert (cold.cold, cold.rounds) == (4, 0)
    assert steady.configurations == ("inductor",)


BASE = "def forward(x):\n    a(x)\n\n\n\n\n\n\n\n\n    b(x)\n\n\n\n\n\n\n\n\n    c(x)\n"
PLACES = {"GM101": 2, "GM201": 11, "GM301": 20}
MARKS = tuple(Mark(rule, "m.py", line, line, "forward") for rule, line in PLACES.items())
COUNTS = Counts(1, (1,), 0, 0, (), 0, (), None, (None,))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A stage that has judged a model with three changes, with numbers of an earlier run."""
    texts = {"base": BASE, "head": BASE.replace("(x)\n", "(x, 2)\n"), "trial": BASE}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(text)
    memory = RowMemory(tmp_path / "memory", "base")
    arm = ModelMeasurement("m:make", Status.OK, "", 0.0, counts=COUNTS, files=("m.py",))
    memory.write("m:make", {"m.py": texts["head"].encode()}, ModelRow("m:make", arm, arm))
    arms = WorkTrees(tmp_path / "base", tmp_path / "head", tmp_path / "trial")
    found = Stage(arms, tmp_path / "out", memory=memory)
    found.judge([Model("m:make", Source.OPTION)], ["m.py"], MARKS)
    return found


def reads(*slow: str) -> Callable[[Path], bool]:
    """A model that is slow when its file has one of these texts."""
    return lambda tree: any(each in (tree / "m.py").read_text() for each in slow)


def test_the_module_of_helpers_is_there_whatever_is_tried(tmp_path: Path) -> None:
    for name, model, helpers in (
        ("base", BASE, ""),
        ("head", BASE.replace("(x)\n", "(x, 2)\n"), "b"),
        ("trial", BASE, ""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(model)
        (tmp_path / name / "helpers.py").write_text(helpers)
    memory = RowMemory(tmp_path / "memory", "base")
    arm = ModelMeasurement("m:make", Status.OK, "", 0.0, counts=COUNTS, files=("helpers.py", "m.py"))
    contents = {path: (tmp_path / "head" / path).read_bytes() for path in ("m.py", "helpers.py")}
    memory.write("m:make", contents, ModelRow("m:make", arm, arm))
    assert memory.read("m:make", {**contents, "helpers.py": b"other"}) is None
    stage = Stage(
        WorkTrees(tmp_path / "base", tmp_path / "head", tmp_path / "trial", "helpers.py"),
        tmp_path / "out",
        memory=memory,
    )
    judged = stage.judge([Model("m:make", Source.OPTION)], ["m.py", "helpers.py"], MARKS)
    assert {each.path for each in judged.changes} == {"m.py"}
    seen: list[str] = []

    def is_slow(tree: Path) -> bool:
        seen.append((tree / "helpers.py").read_text())
        return "b(x, 2)" in (tree / "m.py").read_text()

    (found,) = stage.slower_changes("m:make", "steady state +50%", is_slow)
    assert found.change.rules == ("GM201",)
    assert set(seen) == {"b"}


@pytest.mark.parametrize(
    ("slow", "rules"),
    [(("b(x, 2)",), ["GM201"]), (("a(x, 2)", "c(x, 2)"), ["GM101", "GM301"]), (("c(x, 2)",), ["GM301"])],
)
def test_the_rule_that_makes_a_model_slower_is_found(
    stage: Stage, tmp_path: Path, slow: tuple[str, ...], rules: list[str]
) -> None:
    found = stage.slower_changes("m:make", "steady state +50%", reads(*slow))
    assert sorted(rule for each in found for rule in each.change.rules) == rules
    assert {(each.cause, each.detail) for each in found} == {(Cause.SLOWER, "steady state +50%")}
    assert (tmp_path / "trial" / "m.py").read_text() == BASE, "the trial is left as it was"


def test_all_changes_go_where_no_rule_alone_is_slow_often_enough_to_tell(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmend_evaluation.stage._MOST_TIMINGS", 1)
    found = stage.slower_changes("m:make", "slow", reads("b(x, 2)"))
    assert sorted(rule for each in found for rule in each.change.rules) == ["GM101", "GM201", "GM301"]
