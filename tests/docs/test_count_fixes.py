"""`scripts/count_fixes.py`: how many places and projects the index of rules shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_fixes.py"
LOGS = """
import logging

from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x):
        logger.warning("forward")
        {more}
        return x
"""


def counted(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_places_are_counted_by_rule_with_the_projects_that_have_them(tmp_path: Path) -> None:
    for name, more in (("one", "x = x[x > 0]"), ("two", "warnings = 1\n        logger.info('again')")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(LOGS.format(more=more))
    out = tmp_path / "seen.json"
    run = counted(f"one={tmp_path / 'one'}", f"two={tmp_path / 'two'}", "--out", str(out))
    assert run.returncode == 0, run.stderr
    record = json.loads(out.read_text())
    assert record["projects"] == ["one", "two"]
    assert record["rules"]["GM201"] == {"places": 3, "projects": 2}
    assert "GM703" not in record["rules"], "advice is no fix"


def test_each_file_of_a_folder_may_stand_for_a_project(tmp_path: Path) -> None:
    for name in ("one", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "model.py").write_text(LOGS.format(more=""))
    (tmp_path / "files" / "left.py").write_text(LOGS.format(more=""))
    (tmp_path / "files" / "right.py").write_text(LOGS.format(more="logger.info('again')"))
    out = tmp_path / "seen.json"
    run = counted(f"one={tmp_path / 'one'}", "--files", str(tmp_path / "files"), "--out", str(out))
    assert run.returncode == 0, run.stderr
    record = json.loads(out.read_text())
    assert record["projects"] == ["left", "one", "right"]
    assert record["rules"]["GM201"] == {"places": 4, "projects": 3}


@pytest.mark.parametrize("project", ["one", "one=/nowhere"])
def test_a_project_without_a_folder_is_refused(project: str) -> None:
    run = counted(project)
    assert run.returncode == 2
    assert "write NAME=FOLDER, with a folder that exists" in run.stderr
