"""The survey: its rows survive an interruption, its page begins with the answer, and a type costs only its own row."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import git
import pytest

from graphmend_evaluation.isolation import clean_environment
from graphmend_evaluation.paper import prepare
from graphmend_evaluation.results import BreakSite, Counts, to_json
from graphmend_evaluation.survey import migrated, table
from graphmend_evaluation.survey.__main__ import forget_migration, main
from graphmend_evaluation.survey.row import Row, append, read
from tests.evaluation.report_samples import measured, troubled

pytest.importorskip("torch")
pytest.importorskip("transformers")

EVALUATION = Path(__file__).resolve().parents[2] / "evaluation"


def test_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    rows = [row("bert", breaks=2), Row("t5", "T5Model", "unbuilt", "no | input", 1.5)]
    for each in rows:
        append(tmp_path / "results.jsonl", each)

    assert read(tmp_path / "results.jsonl") == rows


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    append(tmp_path / "results.jsonl", row("bert"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"type": "t5", "model_cl')

    assert [each.type for each in read(tmp_path / "results.jsonl")] == ["bert"]


def test_a_skipped_frame_counts_as_a_break() -> None:
    skipped = row("bert", skipped=True)

    assert (skipped.breaks, skipped.whole) == (1, False)


def test_the_page_begins_with_the_answer() -> None:
    rows = table.pairs([row("t5", breaks=2), row("bert")], [row("t5"), row("bert")])

    page = table.markdown(rows, {"torch": "2.x"})

    assert page.splitlines()[2] == (
        "**Before: 1 of 2 model types break, with 2 breaks. Of 2 types compiled in both arms, 1 broke before with 2 "
        "breaks, and 0 break after with 0. No type has a problem among 2 compared in eager mode.**"
    )
    assert "| `t5` | `ModelOfT5` | 2 | 0 | 1 | 0 |" in page


def test_another_eager_result_and_a_second_arm_that_fails_are_problems() -> None:
    changed = Row("t5", "T5", "ok", "", 1.0, counts=row("t5").counts, differences=("call 1, .logits[0]: 1 is now 2",))
    rows = table.pairs([row("t5"), row("bert")], [changed, Row("bert", "Bert", "timeout", "no result after 9 s", 9.0)])

    page = table.markdown(rows, {})

    assert table.totals(rows).problems == 2
    assert "- `t5`: eager result changed: call 1, .logits[0]: 1 is now 2" in page
    assert "- `bert`: timeout after the migration: no result after 9 s" in page


@pytest.mark.slow
def test_both_arms_are_measured_and_done_types_are_left_out(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    append(before / "results.jsonl", row("t5"))

    first = worker(tmp_path, "--root", str(arm()), "--out", str(before), "t5", "bert")
    second = worker(tmp_path, "--root", str(arm()), "--out", str(after), "--against", str(before), "bert")

    assert [line.split()[0] for line in first.splitlines()] == ["bert"]
    assert "DIFFERENT" not in second
    (_, made), (again,) = read(before / "results.jsonl"), read(after / "results.jsonl")
    assert (made.status, again.status) == ("ok", "ok")
    assert made.choice == again.choice
    assert again.differences == ()


def test_another_migration_leaves_nothing_of_the_last_one(tmp_path: Path) -> None:
    repository = git.Repo.init(tmp_path / "repository", initial_branch="main")
    with repository.config_writer() as settings:
        settings.set_value("user", "name", "tester")
        settings.set_value("user", "email", "tester@localhost")
    repository.git.commit("--allow-empty", "--message", "base")
    repository.git.branch(prepare.BRANCH)
    repository.git.worktree("add", "--detach", str(tmp_path / "head"), prepare.BRANCH)
    (tmp_path / "after").mkdir()
    append(tmp_path / "after" / "results.jsonl", row("t5"))

    forget_migration(repository, tmp_path)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["repository"]
    assert [head.name for head in repository.heads] == ["main"]
    repository.git.worktree("add", "--detach", str(tmp_path / "head"), "main")


@pytest.mark.slow
def test_a_type_that_does_not_end_in_time_costs_only_its_row(tmp_path: Path) -> None:
    worker(tmp_path, "--root", str(arm()), "--out", str(tmp_path), "--timeout", "0.05", "bert")

    assert [(each.type, each.status) for each in read(tmp_path / "results.jsonl")] == [("bert", "timeout")]


def test_a_model_type_that_does_not_exist_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "base").mkdir()

    assert main(["--work", str(tmp_path), "--types", "bert,unicorn"]) == 2
    assert capsys.readouterr().err == "survey: transformers has no model type unicorn\n"


def row(name: str, *, breaks: int = 0, skipped: bool = False) -> Row:
    from graphmend_evaluation.results import SkippedFrame

    sites = (BreakSite("a.py", 3, "forward", "x.item()", "GB0001", "kind", "reason", breaks),) if breaks else ()
    frames = (SkippedFrame("a.py", 1, "forward", "why"),) if skipped else ()
    counts = Counts(1 + breaks, (4,) * (1 + breaks), 0, breaks, sites, 0, frames, None)
    return Row(name, f"ModelOf{name.capitalize()}", "ok", "", 1.0, counts=counts)


def arm() -> Path:
    """The folder of the installed package, as if it were a work tree."""
    spec = importlib.util.find_spec("transformers")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


def worker(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "graphmend_evaluation.survey.worker", *arguments],
        env={**clean_environment(os.environ, folder / "environment"), "PYTHONPATH": str(EVALUATION)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_migration_of_many_types_becomes_a_dated_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluation = troubled(measured())
    report = tmp_path / "report.json"
    report.write_text(json.dumps(to_json(evaluation)))
    code = migrated.main([str(report), "--results", str(tmp_path / "results")])
    (page,) = (tmp_path / "results").iterdir()
    text = page.read_text()
    assert page.name == f"{evaluation.date[:10]}-migrate.md"
    assert f"**{migrated.answer(evaluation)}**" in text
    assert migrated.answer(evaluation).startswith(f"{evaluation.breaks[0]} -> {evaluation.breaks[1]} graph breaks in ")
    assert migrated.answer(evaluation) in capsys.readouterr().out
    assert code == (1 if "CHANGED" in text else 0)
    assert "## Reverted" in text
    assert all(f"`{model.name}`" in text for model in evaluation.models)


def test_what_is_no_report_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_text("[]")
    assert migrated.main([str(tmp_path / "report.json"), "--results", str(tmp_path)]) == 2
    assert "is not a report.json of graphmend" in capsys.readouterr().err
