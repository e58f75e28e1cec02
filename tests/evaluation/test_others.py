"""Models of other packages: halves that never move, an exam whose places are not kept, and totals of both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import git
import pytest
import torch

from graphmend_evaluation.counting import BreakRecorder
from graphmend_evaluation.others import builders, draw, page, result
from graphmend_evaluation.results import BreakSite, Counts
from graphmend_evaluation.survey.row import Row

MODULE = """
import logging

import torch

logger = logging.getLogger(__name__)


class Scale(torch.nn.Module):
    def forward(self, x):
        logger.warning("scaled")
        return x * 2, x.nonzero()  # its size leaves the model: nothing fixes that
"""
DRAWN = """
import random

import torch


class Scale(torch.nn.Module):
    def forward(self, x):
        print("drawn")
        return x * random.uniform(1.0, 2.0)  # Inductor of torch 2.13 computes with another number
"""
MATCHED = """
import numpy
import torch


def order(rows):
    return numpy.lexsort((rows, rows % 2)).astype("int64")


class Scale(torch.nn.Module):
    def forward(self, x):
        found = torch.from_numpy(order(x.detach().numpy()))
        return x[found] * 2


def check(tensors):
    for each in tensors:
        if each.sum() > 100:
            raise ValueError("too large")
        if each.sum() < -100:  # Dynamo does not get there: it leaves a loop to Python at the first break
            raise ValueError("too small")


class Looping(torch.nn.Module):
    def forward(self, x):
        check([x, x + 1])
        return x * 2


class Ending(Scale):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 1:
            raise SystemExit
        return super().forward(x)
"""
MORE = """

def looping():
    from tiny.scale import Looping

    return Looping(), (torch.tensor([1.0, 2.0], requires_grad=True),)


def ending():
    from tiny.scale import Ending

    return Ending(), (torch.tensor([1.0, 2.0], requires_grad=True),)
"""
EXAM = next(f"tiny{number}" for number in range(99) if builders.half(f"tiny{number}") == "exam")
BUILDER = '''"""A tiny package."""

import torch

SOURCE = "github:someone/tiny@{commit}"
IMPORTS = "tiny"


def scale():
    from tiny.scale import Scale

    return Scale(), (torch.tensor([1.0, 2.0], requires_grad=True),)
'''


def test_a_package_stays_in_its_half() -> None:
    names = [f"package{number}" for number in range(200)]
    halves = [builders.half(name) for name in names]

    assert 70 < halves.count("study") < 130
    assert [builders.half(name) for name in reversed(names)] == halves[::-1]


def test_every_builder_file_is_read_without_being_run() -> None:
    found = builders.packages()

    assert len({package.name for package in found}) == len(found) > 40
    assert all(package.models for package in found)


def test_a_source_without_a_commit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('SOURCE = "github:someone/tiny@main"\nIMPORTS = "tiny"\n')

    with pytest.raises(builders.BuilderError, match="SOURCE must be"):
        builders.read(path)


def test_of_an_exam_model_no_place_is_kept() -> None:
    row = measured("secret.py", 7, "if secret_name:")

    kept = json.dumps(result.result("p", "m", "exam", row).to_json())

    assert "secret" not in kept
    assert result.result("p", "m", "exam", row).own_events == 3


def test_events_outside_the_package_are_not_its_own() -> None:
    inside, outside = measured("a.py", 7, "x"), measured("/lib/other.py", 7, "x")
    results = [result.result("p", name, "study", row) for name, row in (("inside", inside), ("outside", outside))]

    assert [each.model for each in draw.drawn(results)] == ["inside"]


def test_of_many_models_of_a_package_the_seed_draws_the_same_few() -> None:
    many = [result.result("p", f"m{number}", "study", measured("a.py", 7, "x")) for number in range(9)]
    drawn = draw.drawn(many)

    assert len(drawn) == draw.MOST_OF_A_PACKAGE
    assert drawn == draw.drawn(many[::-1])


def test_a_finding_on_a_branch_covers_its_header_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    if x:\n        y = int(x)\n    return y\n")
    finding = {"path": "a.py", "location": {"line": 2}, "end_location": {"line": 3}}

    spans = result.covered(tmp_path, [finding])

    assert result.silent_events(measured("a.py", 2, "if x:"), spans) == 0
    assert result.silent_events(measured("a.py", 3, "y = int(x)"), spans) == 3


def test_what_a_fix_replaces_is_not_silent(tmp_path: Path) -> None:
    for arm, text in (("base", "a\nb\nc\n"), ("head", "a\nif d:\n    b\nc\n")):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "a.py").write_text(text)
    finding = {"path": "a.py", "location": {"line": 3}, "end_location": {"line": 3}}

    spans = result.covered(tmp_path / "base", [finding], tmp_path / "head")

    assert spans == {"a.py": {2, 3}}


def test_both_halves_are_reported_side_by_side() -> None:
    before = [result.result("p", "m", half, measured("a.py", 7, "x.item()")) for half in ("study", "exam")]
    whole = Row("m", "p", "ok", "", 1.0, counts=Counts(1, (4,), 0, 0, (), 0, (), None))
    pairs = [page.Pair(each, result.result("p", "m", each.half, whole), 1) for each in before]

    study, exam = page.totals(pairs)
    text = page.markdown(pairs, {})

    assert "events 3 -> 0" in study
    assert "silent events 1 of 3" in exam
    assert "## Exam" in text
    assert text.count("x.item()") == 0


@pytest.mark.slow
def test_a_model_is_measured_before_and_after_the_fixes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, data = run_of(tmp_path, MODULE)

    (row,) = data["models"]
    assert code == 0, capfd.readouterr().out
    assert row["before"]["events"] == 2
    assert row["after"]["events"] == 1
    assert row["after"]["eager equal"]


@pytest.mark.slow
def test_inductor_may_compile_the_graphs(tmp_path: Path) -> None:
    _, data = run_of(tmp_path, DRAWN, "--backend", "inductor", "--no-fix")

    (row,) = data["models"]
    assert data["about"]["backend"] == "inductor"
    assert row["before"]["events"] == 1
    assert "differ" in row["before"]["compiled"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_is_counted_as_well(tmp_path: Path) -> None:
    recorder = BreakRecorder(tmp_path)
    with recorder.recording():
        computed = torch.compile(lambda x: x.sin() + 1, backend=recorder.inductor)(torch.ones(2))

    assert recorder.counts().ops_per_graph == (2,)
    assert torch.allclose(computed, torch.ones(2).sin() + 1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A work folder after a run with `--recorded 2`, and what was written: a package in either half."""
    folder = tmp_path_factory.mktemp("recorded")
    code, data = run_of(folder, MATCHED, "--recorded", "2", names=("tiny", EXAM), more=MORE)
    assert code == 0
    return folder, data


@pytest.mark.slow
def test_a_recorded_run_of_a_model_gives_its_fixes(recorded: tuple[Path, dict[str, Any]]) -> None:
    row = named(recorded[1], "tiny.scale")
    page = (recorded[0] / "results" / f"{recorded[1]['about']['date'].partition(' ')[0]}-recorded-2.md").read_text()

    assert row["before"]["events"] == 2
    assert row["after"]["events"] == 0
    assert row["after"]["opaque operators"] == 1
    assert row["after"]["eager equal"]
    assert row["after"]["compiled"] is None
    assert "`graphmend trace --calls`" in page


@pytest.mark.slow
def test_what_a_break_hid_is_recorded_and_fixed_in_the_next_round(recorded: tuple[Path, dict[str, Any]]) -> None:
    first = result.read(recorded[0] / "work" / "after-recorded" / "results.jsonl")["tiny.looping"].row

    row = named(recorded[1], "tiny.looping")

    assert first.breaks
    assert row["after"]["events"] == 0
    assert row["after"]["eager equal"]


@pytest.mark.slow
def test_a_model_that_cannot_be_recorded_counts_as_before(recorded: tuple[Path, dict[str, Any]]) -> None:
    row = named(recorded[1], "tiny.ending")

    assert not row["recorded"]
    assert row["before"]["events"] == row["after"]["events"] == 3
    assert recorded[1]["totals"][0].endswith("1 not recorded, counted as before")


@pytest.mark.slow
def test_of_an_exam_model_neither_trace_nor_fixed_code_is_left(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, data = recorded
    left = [
        path.relative_to(folder) for path in (folder / "work").rglob("*") if path.name in ("trace.json", "scale.py")
    ]

    assert named(data, f"{EXAM}.scale")["after"]["events"] == 0
    assert [path for path in left if EXAM in str(path)] == [Path("work", "base", EXAM, "tiny", "scale.py")]
    assert Path("work", "recorded", "tiny", "scale", "trace.json") in left


def named(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The row of a model."""
    (row,) = [each for each in data["models"] if each["model"] == key]
    return dict(row)


def run_of(
    tmp_path: Path, module: str, *options: str, names: Sequence[str] = ("tiny",), more: str = ""
) -> tuple[int, dict[str, Any]]:
    """The runner's exit code, and what it writes of packages that have a module."""
    from graphmend_evaluation.others.__main__ import main

    repository = git.Repo.init(tmp_path / "mirrors" / "someone+tiny" / "repo", initial_branch="main")
    with repository.config_writer() as settings:
        settings.set_value("user", "name", "tester")
        settings.set_value("user", "email", "tester@localhost")
    folder = Path(repository.working_dir) / "tiny"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "scale.py").write_text(module)
    repository.git.add(".")
    repository.git.commit("--quiet", "--message", "base")
    shutil_git = Path(repository.working_dir) / ".git"
    models = tmp_path / "models"
    models.mkdir()
    for name in names:
        (models / f"{name}.py").write_text(BUILDER.format(commit=repository.head.commit.hexsha) + more)
    (tmp_path / "bare" / "someone+tiny").mkdir(parents=True)
    shutil_git.rename(tmp_path / "bare" / "someone+tiny" / "repo")

    places = ["--builders", str(models), "--mirrors", str(tmp_path / "bare"), "--work", str(tmp_path / "work")]
    code = main([*places, "--results", str(tmp_path / "results"), *options])

    (data,) = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*.json")]
    return code, data


def measured(path: str, line: int, source: str) -> Row:
    site = BreakSite(path, line, "forward", source, "GB0001", "kind", "reason", 3)
    counts = Counts(2, (4, 4), 0, 3, (site,), 0, (), "secret error")
    return Row("m", "p", "ok", "", 1.0, counts=counts, compiled="secret difference")
