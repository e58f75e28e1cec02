"""`graphmend migrate --record` with a real model: recorded, fixed by what the run shows, measured, recorded again."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.migrate.saved import earlier_migration
from graphmend_codemod.repository.checkout import open_checkout
from tests.repository.tools import Repository, empty_repository, isolate, run, untouched

MODEL = """\
import logging
import time

import numpy as np
import torch
from torch import nn

logger = logging.getLogger(__name__)
STARTED = time.time_ns()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("slow path")
        return self.steps(sorted_rows(self.linear(x), STARTED))

    def steps(self, y: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            y = torch.from_numpy(np.unwrap(y.numpy(), axis=0))
            y = torch.from_numpy(np.interp(y.numpy(), [0.0, 1.0], [0.0, 2.0]))
        return y


def sorted_rows(y, started):
    return torch.from_numpy(np.sort_complex(y.numpy()).real.astype("float32")) * (started > 0)


def make():
    return Model(), (torch.randn(3, 4),)
"""
"""The log call has a safe fix. A run tells of `np.unwrap`, and of `sorted_rows`, whose operator holds for the recorded
process alone, since another one starts at another time. `np.interp` is behind a break in a loop, which hides it."""


WRONG = """\
import itertools

import numpy as np
import torch
from torch import nn

COUNTS = itertools.count(1)


@torch.compiler.disable
def counted(x):
    return x * next(COUNTS)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        steps = torch.from_numpy(np.unwrap(x.numpy(), axis=0))
        y = self.linear(x) + steps
        y = counted(y)
        return y * 2


def make():
    return Model(), (torch.randn(3, 4),), {"gradients": True}
"""
"""A gradient runs the operator of `counted` once more, which then gives something else: no recorded call shows that."""
ALONE = """\
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.unwrap(x.numpy(), axis=0)) + x


def make():
    return Model(), (torch.randn(3, 4),)
"""


def at(text: str) -> int:
    """The number of the line with the text."""
    return next(number for number, each in enumerate(MODEL.splitlines(), 1) if text in each)


@dataclass(frozen=True)
class Migrated:
    """A repository with the branch `whole`, the folder of its report, and what was printed."""

    repository: Repository
    report: Path
    printed: str

    @property
    def document(self) -> Any:
        """`report.json`."""
        return json.loads((self.report / "report.json").read_text())


def migrated_with(text: str, folder: Path, patch: pytest.MonkeyPatch) -> Migrated:
    isolate(patch, folder)
    repository = empty_repository(folder / "mymodels")
    repository.write("zoo/__init__.py", "")
    repository.write("zoo/model.py", text)
    repository.commit()
    options = ("--model", "zoo.model:make", "--record", "--branch", "whole", "--report", str(folder / "report"))
    with contextlib.redirect_stdout(io.StringIO()) as printed, untouched(repository, but="whole"):
        assert run(repository, *options) == 0
    return Migrated(repository, folder / "report", printed.getvalue())


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    with pytest.MonkeyPatch.context() as patch:
        yield migrated_with(MODEL, tmp_path_factory.mktemp("recorded"), patch)


def test_a_model_becomes_one_graph_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = migrated_with(ALONE, tmp_path, monkeypatch)
    (model,), (only,) = found.document["models"], found.document["rounds"]
    assert (model["before"]["graph_breaks"], model["after"]["graph_breaks"]) == (1, 0)
    assert model["after"]["one_graph"]
    assert model["after"]["opaque_operators"] == 1
    assert (only["before"], only["after"], only["recorded"]) == (1, 0, ["zoo.model:make"])
    assert only["fixes"][0]["holds_for"][0] == "x: torch.float32, 2 dimensions, cpu"
    assert found.document["left_breaks"] == []
    assert "Recorded run 1: 1 model, graph breaks 1 -> 0; 1 fix (" in found.printed
    assert len(found.repository.subjects("whole")) == 1


@pytest.mark.slow
def test_an_operator_that_is_wrong_is_found_beside_a_right_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = migrated_with(WRONG, tmp_path, monkeypatch).document
    (model,), (only,) = document["models"], document["rounds"]
    assert (model["before"]["graph_breaks"], model["after"]["graph_breaks"], model["problems"]) == (2, 1, [])
    right, wrong = only["fixes"]
    assert right["reverted"] == ""
    assert "gave other results when a gradient ran it again" in wrong["reverted"]
    assert wrong["reverted"] in document["left_breaks"][0]["reason"]


@pytest.mark.slow
def test_each_rule_and_recorded_run_has_a_commit(migrated: Migrated) -> None:
    subjects = migrated.repository.subjects("whole")
    assert [(each.split()[1], each.partition(", from ")[2]) for each in subjects] == [
        ("GM201", ""),
        ("GM801", "recorded run 1 (1 site, 1 file)"),
        ("GM801", "recorded run 2 (1 site, 1 file)"),
    ]
    body = migrated.repository.git("show", "--no-patch", "--format=%b", "whole~1")
    assert f"  zoo/model.py:{at('np.unwrap')}\n    y: 2 dimensions, cpu; y.dtype in" in body
    assert "y.shape[1] == 4" in body


@pytest.mark.slow
def test_the_runs_say_what_each_fixed_and_for_which_calls_it_holds(migrated: Migrated) -> None:
    first, second = migrated.document["rounds"]
    assert migrated.document["models"][0]["before"]["graph_breaks"] == 5
    assert [(each["before"], each["after"], each["recorded"]) for each in (first, second)] == [
        (4, 4, ["zoo.model:make"]),  # what `np.unwrap` hid breaks in its place
        (4, 2, ["zoo.model:make"]),
    ]
    kept, gone = first["fixes"]
    assert (kept["rule"], kept["line"], kept["reverted"]) == ("GM801", at("np.unwrap"), "")
    assert kept["holds_for"][:2] == ["y: 2 dimensions, cpu", "y.dtype in (torch.float32, torch.float64)"]
    assert [each for each in kept["holds_for"] if "shape" in each] == ["y.shape[1] == 4"]  # twice as many rows were
    assert gone["line"] == at("np.sort_complex")
    assert "its break is still there" in gone["reverted"]
    assert [(each["line"], each["reverted"]) for each in second["fixes"]] == [(at("np.interp"), "")]


@pytest.mark.slow
def test_a_reverted_operator_does_not_come_back_and_is_told_as_what_is_left(migrated: Migrated) -> None:
    text = migrated.repository.show("whole:zoo/model.py").decode()
    assert "_recorded_operator" in text
    assert "sorted_rows_operator" not in text
    (left,) = migrated.document["left_breaks"]
    assert text.splitlines()[left["line"] - 1].lstrip().startswith("return torch.from_numpy(np.sort_complex")
    assert left["reason"].startswith("GM801: reverted after evaluation: its break is still there")
    assert [each["line"] for each in migrated.document["taken_back"]] == [at("np.sort_complex")]


@pytest.mark.slow
def test_every_report_shows_the_runs(migrated: Migrated) -> None:
    markdown = (migrated.report / "report.md").read_text()
    assert "## Recorded runs\n\n| run | models recorded | breaks before |" in markdown
    assert "\n| 1 | 1 | 4 | 4 | 1 | 1 | " in markdown
    assert "## Still breaking when recorded" in markdown
    assert "Recorded run 1: 1 model, graph breaks 4 -> 4; 2 fixes, 1 reverted (" in migrated.printed
    evaluation = migrated.report / "evaluation"
    assert json.loads((evaluation / "report.json").read_text())["rounds"] == migrated.document["rounds"]
    assert "Recorded runs" in (evaluation / "report.html").read_text()


@pytest.mark.slow
def test_a_pull_request_of_the_branch_knows_the_runs(migrated: Migrated) -> None:
    found = earlier_migration(open_checkout(migrated.repository.folder), "whole", migrated.report).made
    assert [each.kept for each in found.rounds] == [1, 1]
    assert [each.round for each in found.commits] == [0, 1, 2]
    assert found.left_breaks[0].models == ("zoo.model:make",)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--record",), "--record has no model to run; name one with --model MODULE:FACTORY"),
        (("--record", "--no-evaluate", "--model", "zoo.model:make"), "--no-evaluate forbids that"),
        (("--record", "--trace", "trace.json", "--model", "zoo.model:make"), "--record makes traces of its own"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_one_line(
    repository: Repository, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with untouched(repository):
        assert run(repository, *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


@pytest.mark.parametrize("rounds", ["0", "-1", "many", "."])
def test_rounds_are_a_number(repository: Repository, rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(repository, f"--record={rounds}")
    assert f"takes a number of rounds above 0, not '{rounds}'" in capsys.readouterr().err


def test_a_pull_request_names_the_command_that_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pr", "--record"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--record belongs to `graphmend migrate`" in line
