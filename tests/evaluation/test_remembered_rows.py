"""Rows that an interrupted evaluation measured, and when they are known again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_evaluation.remembered_rows import RowMemory
from graphmend_evaluation.results import ModelMeasurement, ModelRow, Status

BEFORE = ModelMeasurement("m:f", Status.OK, "", 1.5, files=("model.py", "parts.py"))
ROW = ModelRow("m:f", BEFORE, replace(BEFORE, seconds=2.0))
CHANGED = {"model.py": b"a = 1\n", "other.py": b"b = 2\n"}


@pytest.fixture
def memory(tmp_path: Path) -> RowMemory:
    memory = RowMemory(tmp_path / "rows", "base")
    memory.write("m:f", CHANGED, ROW)
    return memory


@pytest.mark.parametrize(
    "changed",
    [CHANGED, {**CHANGED, "other.py": b"b = 3\n"}, {"model.py": CHANGED["model.py"]}, {**CHANGED, "new.py": b""}],
)
def test_a_row_is_known_while_what_its_model_imports_is_the_same(memory: RowMemory, changed: dict[str, bytes]) -> None:
    assert memory.read("m:f", changed) == ROW


@pytest.mark.parametrize(
    "changed", [{**CHANGED, "model.py": b"a = 2\n"}, {"other.py": CHANGED["other.py"]}, {**CHANGED, "parts.py": b""}]
)
def test_a_row_is_measured_again_when_what_its_model_imports_changed(
    memory: RowMemory, changed: dict[str, bytes]
) -> None:
    assert memory.read("m:f", changed) is None


def test_rows_of_another_base_or_model_are_others(memory: RowMemory, tmp_path: Path) -> None:
    assert memory.read("m:g", CHANGED) is None
    assert RowMemory(tmp_path / "rows", "later").read("m:f", CHANGED) is None


def test_a_row_that_cannot_be_read_is_measured_again(memory: RowMemory, tmp_path: Path) -> None:
    for file in (tmp_path / "rows").iterdir():
        file.write_text("{")
    assert memory.read("m:f", CHANGED) is None
