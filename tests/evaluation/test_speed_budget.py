"""How long a model may be timed, and what processes share of what compilers keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_evaluation.speed.budget import Budget
from graphmend_evaluation.speed.caches import copy_caches, drop_caches

HEADERS = "tmp/torchinductor_me/precompiled_headers"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for a test to set."""
    now = [100.0]
    monkeypatch.setattr("graphmend_evaluation.speed.budget.time.monotonic", lambda: now[0])
    return now


def test_one_more_is_begun_only_if_the_longest_one_would_fit(clock: list[float]) -> None:
    limit = Budget(100.0)
    for seconds in (10.0, 30.0):
        with limit.one():
            clock[0] += seconds
    assert limit.allows(2)
    clock[0] += 1
    assert not limit.allows(2)
    assert limit.allows(1)
    assert limit.left()
    clock[0] += 60
    assert not limit.left()
    assert str(limit) == "the 100 s for one model"


def test_no_limit_is_never_used_up(clock: list[float]) -> None:
    limit = Budget(None)
    clock[0] += 1e9
    assert limit.left()
    assert limit.allows(2)


def test_caches_are_copied_and_compiled_headers_linked(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("inductor/a/kernel.so", f"{HEADERS}/x.h.gch", "tmp/else"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("old")
    (target / "inductor/a").mkdir(parents=True)
    (target / "inductor/a/used.so").write_text("in use")
    copy_caches(source, target)
    copy_caches(source, target)
    assert (target / "inductor/a/kernel.so").read_text() == "old"
    assert not (target / "inductor/a/kernel.so").samefile(source / "inductor/a/kernel.so")
    assert (target / "inductor/a/used.so").read_text() == "in use"
    assert (target / HEADERS / "x.h.gch").samefile(source / HEADERS / "x.h.gch")
    assert not (target / "tmp/else").exists()
    drop_caches(target)
    assert list(target.iterdir()) == []
    assert (source / HEADERS / "x.h.gch").read_text() == "old"


def test_what_a_process_may_be_using_is_not_overwritten(tmp_path: Path) -> None:
    for folder, text in (("source", "new"), ("target", "loaded")):
        (tmp_path / folder / "inductor").mkdir(parents=True)
        (tmp_path / folder / "inductor" / "kernel.so").write_text(text)
    copy_caches(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target/inductor/kernel.so").read_text() == "loaded"
