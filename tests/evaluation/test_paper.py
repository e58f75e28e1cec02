"""The published table's rows, work folder and views; what runs models is tried by `make demo`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_evaluation.compilations import Compiled, Way
from graphmend_evaluation.flags import FlagRow, FlagTrial, FlagVerdict
from graphmend_evaluation.paper import hub, models, prepare, rows, table
from graphmend_evaluation.paper.__main__ import main
from graphmend_evaluation.results import Comparison, ModelRow, Status
from tests.evaluation.test_results import AFTER, BEFORE, BROKEN, CALL, FAILED


def measured(name: str, *after: object) -> table.Measured:
    (row,) = rows.choose(name)
    return table.Measured(row, tuple(ModelRow(f"m:{name}", BEFORE, each) for each in after))  # type: ignore[arg-type]


def test_every_published_row_is_ours_or_told_not_to_run() -> None:
    here = [model for row in rows.ROWS for model in row.stands_for]
    assert len(here) == 21
    assert sorted([*here, *(model.name for model in hub.HUB_MODELS)]) == sorted(rows.published())


def test_every_row_has_its_factories() -> None:
    assert all(callable(getattr(models, factory)) for row in rows.ROWS for factory in row.factories)


def test_rows_are_chosen_by_name_in_the_order_of_the_table() -> None:
    assert [row.name for row in rows.choose("bart-float16, t5")] == ["t5", "bart-float16"]
    assert rows.choose(None) == rows.ROWS


@pytest.mark.parametrize("names", ["t6", "", "t5,nothing"])
def test_unknown_row_is_told_with_those_there_are(
    names: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--rows", names, "--work", str(tmp_path / "work")]) == 2
    assert "there are t5, whisper" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_folder_of_someone_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert main(["--rows", "t5", "--work", str(tmp_path)]) == 2
    assert "not empty and not ours" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_own_folder_is_emptied(tmp_path: Path) -> None:
    folder = prepare.new_folder(tmp_path / "work")
    (folder / "old").mkdir()
    assert not (prepare.new_folder(folder) / "old").exists()


def test_arms_are_two_folders_of_one_repository(tmp_path: Path) -> None:
    repository = prepare.copy_installed("libcst", tmp_path / "repository")
    assert not repository.is_dirty(untracked_files=True)
    repository.git.checkout("--quiet", "-b", prepare.BRANCH)
    (tmp_path / "repository" / "libcst" / "_added.py").write_text("")
    repository.git.add(".")
    repository.git.commit("--quiet", "--message", "Add a file")
    repository.git.checkout("--quiet", "main")
    arms = prepare.check_out(repository, tmp_path, changed=True)
    assert (arms.before / "libcst" / "__init__.py").is_file()
    assert not (arms.before / "libcst" / "_added.py").exists()
    assert (arms.after / "libcst" / "_added.py").is_file()


def test_package_that_is_not_installed_is_told(tmp_path: Path) -> None:
    with pytest.raises(prepare.PrepareError, match="no_such_package is not installed"):
        prepare.copy_installed("no_such_package", tmp_path)


def test_row_says_what_changed() -> None:
    found = dict(zip(table.HEADINGS, table.cells(measured("t5", AFTER)), strict=True))
    assert found == {
        "row": "t5",
        "published": "3 (-100%)",
        "graphs": "6 -> 1",
        "break events": "2 -> 0",
        "break sites": "1 -> 0",
        "eager": "identical, 1 call",
        "compiled": "as eager",
        "Inductor": "-",
        "messages": "1 -> 1, compiled 0",
        "with flags": "-",
        "verdict": "one graph",
    }


@pytest.mark.parametrize(
    ("after", "heading", "told"),
    [
        (replace(AFTER, counts=BROKEN), "verdict", "still breaks at 1 site"),
        (replace(AFTER, against_base=Comparison(("x",))), "eager", "DIFFERENT"),
        (replace(AFTER, calls=(replace(CALL, compiled_difference="x"),)), "compiled", "DIFFERENT"),
        (FAILED, "verdict", "PROBLEM"),
        (FAILED, "graphs", "6 -> ?"),
        (FAILED, "eager", "?"),
    ],
)
def test_row_hides_no_failure(after: object, heading: str, told: str) -> None:
    found = dict(zip(table.HEADINGS, table.cells(measured("t5", after)), strict=True))
    assert found[heading] == told


def test_problem_in_a_later_call_pattern_counts() -> None:
    result = measured("phi3-longrope", AFTER, AFTER, replace(AFTER, against_base=Comparison(("call 2, x",))))
    assert table.cells(result)[-1] == "PROBLEM"
    assert "phi3-longrope: phi3-longrope: eager result changed: call 2, x" in list(table.lines([result]))


NOT_RUN = [hub.NotRun(model.name, "no network") for model in hub.HUB_MODELS]
INDUCTOR = Compiled(Way("inductor", backend="inductor"), Status.OK, "", 1.0, AFTER.counts, (CALL, CALL, CALL))


def test_inductor_s_difference_is_a_problem() -> None:
    wrong = replace(INDUCTOR, calls=(CALL, replace(CALL, compiled_difference="x")))
    right, different = (replace(measured("t5", AFTER), inductor=(each,)) for each in (INDUCTOR, wrong))
    column = table.HEADINGS.index("Inductor")
    assert (table.cells(right)[column], table.cells(right)[-1]) == ("as eager, 0 recompiles", "one graph")
    assert (table.cells(different)[column], table.cells(different)[-1]) == ("DIFFERENT", "PROBLEM")
    assert different.problems == ("Inductor: call 2: x",)
    slow = replace(INDUCTOR, status=Status.TIMEOUT, message="no result after 600 s", counts=None, calls=())
    assert table.cells(replace(right, inductor=(slow,)))[column] == "no result: timeout"


def test_recompiled_graphs_count_for_a_single_call_only() -> None:
    after = replace(AFTER, counts=replace(BROKEN, graphs=3, recompiled_graphs=2))
    assert table.graphs(measured("t5", after).models[0])[1] == 5
    assert table.graphs(measured("t5", replace(after, calls=(CALL, CALL))).models[0])[1] == 3


def test_flags_that_help_are_shown_beside_the_numbers_without_them() -> None:
    trial = FlagTrial("capture_scalar_outputs", ("capture_scalar_outputs",), False, FlagVerdict.HELPS, 0, 0)
    flags = FlagRow("m:t5", Status.OK, "", 1.0, breaks=2, trials=(trial,))
    result = replace(measured("t5", replace(AFTER, counts=BROKEN)), flags=flags)
    found = dict(zip(table.HEADINGS, table.cells(result), strict=True))
    assert found["with flags"] == "2 -> 0, capture_scalar_outputs"
    assert found["verdict"] == "still breaks at 1 site"
    assert any("t5, advice: set torch._dynamo.config.capture_scalar_outputs" in line for line in table.lines([result]))


def test_what_failed_before_too_is_told_and_no_problem_of_the_migration() -> None:
    failing = replace(CALL, compiled_error="AssertionError: no")
    (row,) = rows.choose("t5")
    models = (ModelRow("m:t5", replace(BEFORE, calls=(failing,)), replace(AFTER, calls=(failing,))),)
    result = table.Measured(row, models)
    assert result.problems == ()
    told = "t5: compiled call 1 fails before the migration and after: AssertionError: no"
    assert told in list(table.lines([result]))


def test_markdown_names_versions_rows_and_what_did_not_run() -> None:
    text = table.markdown([measured("t5", AFTER)], NOT_RUN, {"date": "2030-01-02 03:04 UTC", "torch": "2.13.0"})
    assert text.startswith("# The published table, 2030-01-02 03:04 UTC\n\ntorch 2.13.0.\n")
    assert "| t5 | 3 (-100%) | 6 -> 1 |" in text
    assert "with flags" not in text
    assert all(f"- {each.model}: " in text for each in NOT_RUN)
    assert re.search(r"Seconds of each row, .*: t5 \d+\.", text)


def test_table_travels_as_json() -> None:
    results = (replace(measured("t5", AFTER), inductor=(INDUCTOR,), date="2030-01-02 03:04 UTC"),)
    data = json.loads(json.dumps(table.as_json(results, NOT_RUN, {"date": "2030-01-02"})))
    assert data["rows"][0]["whole_after"] is True
    read, left = table.read_json(data)
    assert [table.cells(each) for each in read] == [table.cells(each) for each in results]
    assert list(left) == NOT_RUN
