"""A trace beside the findings of its lines, in each form, and against a baseline."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.trace import document, documents, text
from graphmend_codemod.trace.document import LIBRARY, Reason, Recompiled, Skipped, SourceLine
from graphmend_codemod.trace.join import Joined, Remedy, join
from tests.trace.samples import project, traced

Captured = pytest.CaptureFixture[str]
SARIF = Path(__file__).parent.parent / "data/sarif-2.1.0-rtm.5.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with its trace; the current folder."""
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "trace.json").write_text(document.as_json(traced(tmp_path)))
    return tmp_path


def joined(folder: Path) -> Joined:
    return join(traced(folder), load_settings(folder), cache=False, file="t.json")


def test_site_stands_beside_the_fix_of_its_line(folder: Path) -> None:
    branch, printed = joined(folder).answers
    assert (branch.remedy, branch.code) == (Remedy.FIX, "GM102")
    assert "torch.where" in branch.diff
    assert (printed.remedy, printed.code) == (Remedy.FIX, "GM201")


def test_text_shows_source_cause_cost_and_fix(folder: Path) -> None:
    lines = list(text.full(joined(folder), Paint()))
    shown = "\n".join(lines)
    assert lines[0] == "model.py:6:8: GB0170 Data-dependent branching"
    assert lines[1] == "6 |     if x.sum() > 0:"
    assert lines[2] == "  |        ^^^^^^^^^^^"
    assert "= cost: broke 2 frames, 3 more compilations (2 graphs), 3.2 s of compiling" in shown
    assert "= called by: model.py:13 forward" in shown
    assert "gb/gb0170.html" in shown
    assert lines[-1].startswith(
        "2 break sites, 3 graph breaks: 2 fixable with `graphmend fix --trace t.json`. 4 graphs"
    )


def test_sites_beyond_the_dearest_have_a_line_each(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--top", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count("= cost: ") == 1
    assert "1 other site (--top 2 shows all in full)\n  model.py:14:9: GB0059 Failed to trace" in out
    assert "`print`" not in out.partition("other site")[2]
    assert ": GM201 fix\n" in out


def test_change_of_the_line_is_shown_before_functions_that_it_adds(folder: Path) -> None:
    found = joined(folder)
    first, *others = found.answers
    helper = "".join(f"+    helper {number}\n" for number in range(40))
    diff = f"--- a\n+++ b\n@@ -1,2 +1,42 @@\n import torch\n{helper}@@ -5,3 +45,4 @@\n+    if is_compiling():\n"
    shown = list(text.full(replace(found, answers=(replace(first, diff=diff), *others)), Paint()))
    at = shown.index("      @@ -5,3 +45,4 @@")
    assert shown[at + 1] == "      +    if is_compiling():"
    assert shown[at + 2] == "      @@ -1,2 +1,42 @@"
    assert "      and 14 lines more: `graphmend fix --trace t.json --diff`" in shown


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("self.hop", "numpy.int64", "write `int(self.hop)` here"),
        ("length", "numpy.float32", "write `float(length)` here"),
        ("self.hop", "int", ""),
        ("self.hop", "numpy.ndarray", ""),
        ("hop", "numpy.int64", ""),  # another name than the line's
        ("self.ho", "numpy.int64", ""),
    ],
)
def test_number_of_numpy_that_the_run_knew_is_named(folder: Path, name: str, kind: str, told: str) -> None:
    found = traced(folder)
    site = replace(found.sites[0], source="    pad = ceil(length / self.hop)", facts=(document.Fact(name, kind),))
    site = replace(
        site,
        own=SourceLine("model.py", 15, "forward"),
        own_source="return y - 1",
        place=SourceLine("model.py", 15, "f"),
    )
    (answer,) = join(replace(found, sites=(site,)), load_settings(folder), cache=False).answers
    assert (told in answer.steps[0]) if told else all("NumPy" not in step for step in answer.steps)


def test_break_in_a_library_is_told_apart_with_the_line_that_calls_it(folder: Path) -> None:
    found = traced(folder)
    site = found.sites[1]
    inner = SourceLine("site-packages/zoo/layers.py", 7, "forward", LIBRARY)
    moved = replace(site, place=inner, own=SourceLine("model.py", 15, "forward"), own_source="return y - 1", source="")
    answered = join(replace(found, sites=(found.sites[0], moved)), load_settings(folder), cache=False)
    assert answered.answers[1].remedy is Remedy.LIBRARY
    shown = "\n".join(text.full(answered, Paint()))
    assert shown.index("In libraries and torch") > shown.index("model.py:6:8")
    assert "= called in: model.py:15 forward  return y - 1" in shown
    assert "The break is in zoo, not in this project" in shown


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("../vision/zoo/layers.py", "`../vision/zoo`"),
        ("/opt/zoo/layers.py", "`/opt/zoo`"),
        ("C:/zoo/layers.py", "`C:/zoo`"),
        ("site-packages/zoo.py", "zoo.py"),
    ],
)
def test_break_in_a_checkout_beside_the_project_names_its_folder(folder: Path, path: str, named: str) -> None:
    found = traced(folder)
    moved = replace(
        found.sites[1],
        place=SourceLine(path, 7, "forward", LIBRARY),
        own=SourceLine("model.py", 15, "forward"),
        own_source="return y - 1",
        source="",
    )
    (answer,) = join(replace(found, sites=(moved,)), load_settings(folder), cache=False).answers
    assert any(f"The break is in {named}, not in this project" in step for step in answer.steps)


def test_break_in_code_of_no_file_is_not_said_to_be_a_library_s(folder: Path) -> None:
    trace = traced(folder)
    place = SourceLine("<string>", 4, "f", LIBRARY)
    site = replace(trace.sites[0], place=place, own=None, own_source="", stack=(place,))
    answer = join(replace(trace, sites=(site,)), load_settings(folder), cache=False).answers[0]
    assert answer.steps[0].startswith("The code is in no file (`python -c`, `exec`)")


def test_page_without_jinja_is_told_of_before_anything_runs(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["trace", "--html", "page.html", "--", "no-such-program"]) == 2
    assert "the page needs jinja2; run `pip install jinja2`" in capsys.readouterr().err


def test_foreign_text_cannot_move_the_cursor(folder: Path) -> None:
    found = traced(folder)
    evil = replace(found.sites[0], source="x = '\x1b[2J\u202e'", kind="\x1b]0;title\x07", reason="\x1b[31m")
    answered = Joined(replace(found, sites=(evil,)), joined(folder).answers[:1])
    assert "\x1b" not in "".join(text.full(answered, Paint()))
    assert "\x1b" not in "".join(documents.github_commands(answered, folder)) + documents.markdown(answered)


def test_json_has_the_answer_in_each_site(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["sites"][0]["answer"]["code"] == "GM102"
    assert data["sites"][0]["answer"]["diff"].startswith("--- a/model.py")


def test_sarif_names_lines_columns_and_kinds(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--format", "sarif"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 6, "startColumn": 8, "endColumn": 19}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {"GB0059", "GB0170"}


def with_asides(folder: Path) -> Joined:
    """A trace of a function that was compiled again and of one that was skipped, in the project and in a library."""
    found = joined(folder)
    library = SourceLine("site-packages/lib/a.py", 3, "forward", LIBRARY)
    own, why = SourceLine("model.py", 12, "forward"), (Reason("size", "size 0 of x was 2 and is 3", 2),)
    trace = replace(
        found.trace,
        recompiled=(Recompiled(own, 2, 1.5, why), Recompiled(library, 1, 1.0, ())),
        skipped=(Skipped(own, "Graph break under GenericContextWrappingVariable", 3), Skipped(library, "no", 1)),
    )
    return replace(found, trace=trace)


AGAIN = "recompiled 2 times, 1.5 s: size 0 of x was 2 and is 3"
IN_PYTHON = "skipped by Dynamo, runs in eager mode (3 times): Graph break under GenericContextWrappingVariable"


def test_annotations_tell_of_recompilations_and_skipped_functions_of_the_project(folder: Path) -> None:
    found = with_asides(folder)
    told = list(documents.github_commands(found, folder))
    assert told[2:] == [
        f"::notice file=model.py,line=12,title=A function was compiled again::{AGAIN}",
        f"::notice file=model.py,line=12,title=A function runs in eager mode as a whole::{IN_PYTHON}",
    ]
    assert list(documents.github_commands(found, folder, frozenset())) == []


def test_sarif_tells_of_recompilations_and_skipped_functions(folder: Path) -> None:
    log = json.loads(documents.sarif(with_asides(folder), folder))
    jsonschema.validate(log, json.loads(SARIF.read_text(encoding="utf-8")))
    (run,) = log["runs"]
    notes = run["results"][2:]
    assert [(note["ruleId"], note["level"], note["message"]["text"]) for note in notes] == [
        ("recompiled", "note", AGAIN),
        ("skipped-frame", "note", IN_PYTHON),
    ]
    assert {note["ruleId"] for note in notes} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_code_quality_report_is_what_gitlab_documents(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--format", "gitlab"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    entries = json.loads(documents.code_quality(with_asides(folder), folder))
    assert [entry["check_name"] for entry in entries] == ["GB0170", "GB0059", "recompiled", "skipped-frame"]
    assert {entry["severity"] for entry in entries} <= {"info", "minor", "major", "critical", "blocker"}
    assert [entry["location"]["lines"]["begin"] for entry in entries] == [6, 14, 12, 12]
    assert len({entry["fingerprint"] for entry in entries}) == 4
    for entry in entries:
        assert all(isinstance(entry[key], str) and entry[key] for key in ("description", "check_name", "fingerprint"))
        assert entry["location"]["path"] == "model.py"  # from the top of the repository, without `./`


def test_github_annotates_the_line(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--format", "github"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("::warning file=model.py,line=6,col=8,title=graph break GB0170::Data-dependent branching")


def test_markdown_has_a_row_for_each_site_and_its_fix(folder: Path, capsys: Captured) -> None:
    assert main(["trace", "--show", "trace.json", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert out.count("| `model.py:") == 2
    assert out.count("```diff") == 2


def test_markdown_names_what_dynamo_left_to_python(folder: Path) -> None:
    found = joined(folder)
    skipped = Skipped(SourceLine("model.py", 12, "forward"), "Graph break under GenericContextWrappingVariable", 1)
    told = documents.markdown(replace(found, trace=replace(found.trace, skipped=(skipped,))))
    assert "- `model.py:12`: Graph break under GenericContextWrappingVariable" in told


def test_baseline_is_written_first_and_then_fails_on_a_new_site_alone(folder: Path, capsys: Captured) -> None:
    show = ["trace", "--show", "trace.json", "--baseline", "breaks.json"]
    assert main(show) == 0
    capsys.readouterr()
    assert main(show) == 0
    assert "no break site that breaks.json does not have" in capsys.readouterr().err
    data = json.loads((folder / "breaks.json").read_text())
    data["sites"] = [row for row in data["sites"] if "GB0170" not in row["kind"]]
    (folder / "breaks.json").write_text(json.dumps(data))
    capsys.readouterr()
    assert main(show) == 1
    captured = capsys.readouterr()
    assert "new graph break: model.py:6 in helper: GB0170 Data-dependent branching" in captured.err
    assert "model.py:14" not in captured.out
    assert main([*show, "--update-baseline"]) == 0
    assert main(show) == 0


@pytest.mark.parametrize(
    ("options", "note"),
    [((), "nothing was compiled: no torch.compile was called"), (("-E",), "nothing was recorded: no Python of")],
)
def test_run_that_nobody_could_listen_to_is_told_from_one_that_compiles_nothing(
    folder: Path, capsys: Captured, options: Sequence[str], note: str
) -> None:
    assert main(["trace", "--", sys.executable, *options, "-c", "pass"]) == 0
    assert note in capsys.readouterr().err


def test_program_that_fails_at_once_leaves_an_earlier_trace_alone(folder: Path, capsys: Captured) -> None:
    before = (folder / "trace.json").read_text()
    assert main(["trace", "--", sys.executable, "missing.py"]) == 2
    assert "trace.json is left as it was: this run compiled nothing" in capsys.readouterr().err
    assert (folder / "trace.json").read_text() == before
    assert main(["trace", "-o", "new.json", "--", sys.executable, "missing.py"]) == 2
    assert document.read(folder / "new.json").totals.compilations == 0


def test_commands_that_are_told_name_the_file_of_the_trace(folder: Path, capsys: Captured) -> None:
    (folder / "trace.json").rename(folder / "night run.json")
    for form in ("text", "github", "markdown", "sarif"):
        assert main(["trace", "--show", "night run.json", "--format", form]) == 0
        assert "graphmend fix --trace 'night run.json'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to trace; write `graphmend trace -- python your_script.py`"),
        (["--show", "trace.json", "--", "python"], "a command and --show cannot be traced together"),
        (["--show", "trace.json", "--update-baseline"], "--update-baseline needs --baseline FILE"),
        (["-o", "none/t.json", "--", "python"], "none/t.json: there is no folder none"),
        (["--html", ".", "--show", "trace.json"], ".: is a folder; name a file"),
        (["--baseline", "pyproject.toml", "--", "no-such-program"], "pyproject.toml: is not a baseline"),
        (["--show", "none.json"], "record one with `graphmend trace -o none.json -- python your_script.py`"),
        (["--", "no-such-program"], "no-such-program: not found: activate the environment that has it"),
        (["--", "./no-such-program"], "./no-such-program: cannot be run: No such file or directory"),
    ],
)
def test_mistake_is_told_in_one_line(folder: Path, capsys: Captured, arguments: list[str], message: str) -> None:
    assert main(["trace", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
