"""The speed benchmark, on a package of three files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import page, speed
from benchmarks.commands import COMMIT, NEXT_COMMIT, ROOT
from benchmarks.corpus import SourceText, near_length, sample
from benchmarks.outcome import Machine, Outcome, Peer, Target
from benchmarks.timing import Run, RunError, Spread, timed

CLEAN = """
import torch
from torch import nn


class Clean(nn.Module):
    def forward(self, x):
        return x + 1
"""
BREAKING = """
import torch
from torch import nn


class Breaking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + 1
        return x
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "clean.py").write_text(CLEAN)
    (folder / "breaking.py").write_text(BREAKING)
    return folder


@pytest.mark.slow
def test_page_and_raw_numbers_of_a_small_package_are_written(package: Path, tmp_path: Path) -> None:
    written, results = tmp_path / "page.md", tmp_path / "results"
    wheel = shutil.make_archive(str(tmp_path / "wheel"), "zip", ROOT, "graphmend_codemod")
    small = ["--repetitions", "1", "--clean-files", "1", "--short-repetitions", "1", "--no-peers", "--wheel", wheel]
    code = speed.main(["--package", str(package), *small, "--page", str(written), "--results", str(results)])

    raw = json.loads(next(results.glob("*-speed.json")).read_text())
    assert code == (0 if all(target["met"] for target in raw["targets"]) and not raw["not_measured"] else 1)
    assert raw["corpus"]["files"] == 3
    assert raw["same_findings"]
    assert [*raw["clean_files"]] == ["src/small/clean.py"]
    assert (package / "clean.py").read_text() == CLEAN
    assert {len(raw["runs"][name]) for name in (COMMIT, NEXT_COMMIT)} == {1}
    assert (package / "breaking.py").read_text() == BREAKING
    assert [target["name"] for target in raw["targets"]][1].endswith("from a compiled wheel")
    assert all(run["cpu"] > 0 and run["peak_bytes"] > 0 for runs in raw["runs"].values() for run in runs)
    text = written.read_text()
    assert raw["machine"]["date"] in text
    assert text.count("| met |") == sum(target["met"] for target in raw["targets"])
    assert text.count("| **not met** |") == sum(not target["met"] for target in raw["targets"])


def test_file_that_is_no_wheel_is_told_in_one_line(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert speed.main(["--package", str(package), "--wheel", str(package / "clean.py")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_package_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.main(["--package", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def outcome(*targets: Target, peers: tuple[Peer, ...] = (), same_findings: bool = True) -> Outcome:
    run = Run(wall=2.0, cpu=2.0, peak_bytes=1)
    return Outcome(
        machine=Machine("2000-01-01", "Processor", 2, "System", "3", 0.0, 0.0),
        versions={},
        corpus={"files": 3, "lines": 30, "bytes": 300},
        same_findings=same_findings,
        targets=targets,
        not_measured={},
        clean_files={},
        peers=peers,
        runs={"ast.parse": (run,), "check --no-cache --jobs 1": (run,)},
    )


def target(counted: float, *, at_least: bool = False) -> Target:
    return Target("speed", "times", 2.0, Spread(counted, counted, counted), counted, at_least=at_least)


def test_missed_target_is_named_first() -> None:
    found = outcome(target(2.5), target(1.5))
    assert not found.met
    text = page.render(found, "raw.json")
    assert "**1 of 2 targets missed:** speed." in text
    assert "| 2.50 | 2.50 to 2.50 | **not met** |" in text
    assert "| 1.50 | 1.50 to 1.50 | met |" in text


def test_target_to_reach_is_met_from_its_limit_on() -> None:
    assert not target(1.9, at_least=True).met
    assert target(2.0, at_least=True).met
    assert target(2.0).met


def test_findings_that_differ_are_told_and_count_as_missed() -> None:
    found = outcome(target(1.0), same_findings=False)
    assert not found.met
    assert "**Findings differ" in page.render(found, "raw.json")


def test_page_tells_when_the_machine_was_not_quiet() -> None:
    quiet = outcome(target(1.0))
    busy = replace(quiet, machine=replace(quiet.machine, load_before=1.5))
    assert "others were at work" in page.render(busy, "raw.json")
    assert "others were at work" not in page.render(quiet, "raw.json")


def test_peer_that_fails_is_a_row() -> None:
    failed = Peer("tool", "1", "work", 3, 1.0, failed="exit code 7: no")
    slow = Peer("slow", "1", "work", 1, 0.5, cpu=8.0, wall=9.0)
    text = page.render(outcome(target(1.0), peers=(failed, slow)), "raw.json")
    assert "| tool | 1 | work | 3 | failed: exit code 7: no |  |  |" in text
    assert "| slow | 1 | work | 1 (50.0% of the bytes), scaled up | 8.00 | 9.00 | 4.00 |" in text


def test_child_that_takes_too_long_is_ended_with_its_own_children(tmp_path: Path) -> None:
    program = "import os, subprocess; print(os.getpid(), flush=True); subprocess.run(['sleep', '60'])"
    with pytest.raises(RunError, match="took longer than 1 s"):
        timed([sys.executable, "-c", program], folder=tmp_path, environment=os.environ, limit=1.0)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert program not in left


def test_child_that_fails_is_told_with_its_last_line(tmp_path: Path) -> None:
    program = "import sys; print('first\\nlast', file=sys.stderr); sys.exit(7)"
    with pytest.raises(RunError, match="exit code 7: last"):
        timed([sys.executable, "-c", program], folder=tmp_path, environment=os.environ)


def test_crash_is_not_taken_for_the_exit_code_of_findings(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="ValueError: broken"):
        timed(
            [sys.executable, "-c", "raise ValueError('broken')"], folder=tmp_path, environment=os.environ, codes=(0, 1)
        )


def test_sample_has_files_of_all_sizes() -> None:
    files = tuple(SourceText(f"{size:03}.py", size, size, False) for size in range(100))
    assert [file.size for file in sample(files, 4)] == [12, 37, 62, 87]
    assert sample(files[:3], 4) == files[:3]


def test_files_with_a_forward_come_first_and_then_those_of_the_length() -> None:
    files = (SourceText("a", 1, 300, False), SourceText("b", 1, 200, True), SourceText("c", 1, 310, True))
    assert [file.path for file in near_length(files, 300, 3)] == ["c", "b", "a"]
