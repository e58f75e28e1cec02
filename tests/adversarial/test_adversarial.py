"""Hostile modules in eager mode: nobody can tell a fixed project from the original.

Compiled, and every one of them: `python evaluation/benchmarks/adversarial.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.adversarial import running
from tests.adversarial.case import Case, all_cases
from tests.tools.behaviour import compared
from tests.tools.observe import Scenario

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Converting a tensor"),  # cases that trace code with branches on tensors
]

EVERY = 6
"""One case in so many, so that it takes seconds: the same ones, whatever cases are added."""

BATCHES = 8
_CASES = [case for case in all_cases() if crc32(case.title.encode()) % EVERY == 0]


def differences(case: Case, folder: Path) -> Iterator[str]:
    """What eager mode can tell, one line each."""
    before, after = folder / "before" / "project", folder / "after" / "project"
    fixed = running.fix(case.files, after)
    yield from fixed.problems
    if dict(fixed.files) == dict(case.files):
        return
    running.write(case.files, before)
    for scenario in (Scenario(case.training[0], "off"), Scenario(case.training[-1], "inner")):
        old = running.neutral(running.observed(case, before, scenario), before)
        new = running.neutral(running.observed(case, after, scenario), after)
        for number, pair in enumerate(zip(old, new, strict=True), 1):
            yield from compared(*pair, f"{case.title}, {scenario}, call {number}")


@pytest.mark.parametrize("batch", range(BATCHES))
def test_eager_mode_cannot_tell_a_fixed_project_from_the_original(batch: int, tmp_path: Path) -> None:
    found: list[str] = []
    for number, case in enumerate(_CASES[batch::BATCHES]):
        found += differences(case, tmp_path / str(number))
    assert not found, "\n".join(found[:10])


def test_all_groups_hold_cases() -> None:
    groups = {case.group for case in all_cases()}
    assert len(groups) > 20
    assert len(all_cases()) > 2000


def test_a_difference_is_seen(tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.title == "inplace: relu, keyword")
    other = dict(case.files)
    other["model.py"] = other["model.py"].replace("y = x - 1.0", "y = x - 2.0")
    for name, files in {"old": case.files, "new": other}.items():
        running.write(files, tmp_path / name / "project")
    old, new = (running.observed(case, tmp_path / name / "project", Scenario()) for name in ("old", "new"))
    lines = [line for pair in zip(old, new, strict=True) for line in compared(*pair, "call")]
    assert any("outcome" in line for line in lines)
