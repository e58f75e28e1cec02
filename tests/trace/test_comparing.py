"""The same run before and after a fix: comparison, `--rerun`, the trace that a repository keeps, and the badge."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.trace import baseline, document
from graphmend_codemod.trace.compare import Comparison
from graphmend_codemod.trace.document import Trace
from tests.repository.tools import Repository, default_branch, empty_repository, isolate
from tests.trace.samples import project, traced

Captured = pytest.CaptureFixture[str]
SCRIPT = "import sys\nprint('ran', 'torch.where' in open('model.py').read())\nsys.exit(int(sys.argv[1]))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose run is recorded with its command, which says whether the fix is there; the current folder."""
    isolate(monkeypatch, tmp_path)
    folder = project(empty_repository(tmp_path / "repo").folder)
    (folder / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)
    record(folder)
    return folder


def record(folder: Path, code: str = "0", *, command: bool = True) -> None:
    trace = traced(folder)
    if command:
        trace = dataclasses.replace(trace, arguments=(sys.executable, "train.py", code), folder=".")
    (folder / "trace.json").write_text(document.as_json(trace))


def without_last(trace: Trace) -> Trace:
    totals = dataclasses.replace(trace.totals, sites=1, events=2, compilations=3, seconds=1.5)
    return dataclasses.replace(trace, sites=trace.sites[:1], totals=totals)


def test_comparison_says_what_is_gone_and_what_is_new(tmp_path: Path) -> None:
    whole = traced(project(tmp_path))
    assert list(Comparison(whole, without_last(whole)).lines()) == [
        "3 graph breaks -> 2, 2 sites -> 1, 5 compilations -> 3, compiling 5.0 s -> 1.5 s (1 gone, 0 new)."
    ]
    assert list(Comparison(without_last(whole), whole).lines())[1:] == [
        "  new: model.py:14 in forward: GB0059 Failed to trace builtin operator"
    ]
    last = dataclasses.replace(whole, sites=whole.sites[1:])
    told = list(Comparison(without_last(whole), last).lines())[1]
    assert told.endswith("Failed to trace builtin operator (a break that is gone may have hidden it)")


def test_shown_trace_is_compared_with_an_older_one(folder: Path, capsys: Captured) -> None:
    (folder / "after.json").write_text(document.as_json(without_last(traced(folder))))
    assert main(["trace", "--no-cache", "--show", "after.json", "--compare", "trace.json"]) == 0
    assert "3 graph breaks -> 2" in capsys.readouterr().out


def test_fixed_program_runs_again_and_is_compared(folder: Path, capfd: Captured) -> None:
    assert main(["fix", "--no-cache", "--trace", "trace.json", "--rerun"]) == 1
    told = capfd.readouterr()
    assert "ran True" in told.out
    assert "3 graph breaks -> 0, 2 sites -> 0" in told.err
    assert document.read(folder / "trace.after.json").totals.sites == 0


def test_program_that_fails_after_the_fix_is_told_of(folder: Path, capfd: Captured) -> None:
    record(folder, "3")
    assert main(["fix", "--no-cache", "--trace", "trace.json", "--rerun"]) == 2
    assert "ended with exit code 3" in capfd.readouterr().err


def test_trace_without_its_command_is_refused_before_anything_changes(folder: Path, capsys: Captured) -> None:
    record(folder, command=False)
    before = (folder / "model.py").read_bytes()
    assert main(["fix", "--no-cache", "--trace", "trace.json", "--rerun"]) == 2
    assert "--keep-command" in capsys.readouterr().err
    assert (folder / "model.py").read_bytes() == before


def test_command_of_a_trace_that_only_the_settings_name_is_never_run(folder: Path, capsys: Captured) -> None:
    (folder / "pyproject.toml").write_text('[tool.graphmend]\ntrace = "trace.json"\n')
    assert main(["fix", "--no-cache", "--rerun"]) == 2
    assert "name the trace with --trace" in capsys.readouterr().err


def test_branch_of_a_migration_runs_in_a_work_tree_of_its_own(folder: Path, capfd: Captured) -> None:
    Repository(folder).commit()
    assert main(["migrate", "--no-evaluate", "--trace", "trace.json", "--rerun"]) == 0
    told = capfd.readouterr()
    assert "ran True" in told.out
    assert "3 graph breaks -> 0" in told.err
    assert "torch.where" not in (folder / "model.py").read_text()


def test_migration_fixes_only_what_broke_in_the_trace_of_the_repository(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.graphmend]\ntrace = "trace.json"\n')
    model = folder / "model.py"
    model.write_text(
        model.read_text() + "\n\nclass Other(nn.Module):\n    def forward(self, x):\n        print(x.shape)\n"
    )
    repository = Repository(folder)
    repository.commit()
    assert main(["migrate", "--no-evaluate"]) == 0
    fixed = repository.show(f"{default_branch()}:model.py").decode()
    assert "torch.where" in fixed
    assert "forward(self, x):\n        print(x.shape)\n" in fixed


def test_commits_of_a_migration_come_in_the_order_of_cost(folder: Path) -> None:
    for dear in ("GM102", "GM201"):
        trace = traced(folder)
        sites = trace.sites if dear == "GM102" else trace.sites[::-1]
        (folder / "trace.json").write_text(document.as_json(dataclasses.replace(trace, sites=sites)))
        repository = Repository(folder)
        repository.commit()
        assert main(["migrate", "--no-evaluate", "--trace", "trace.json", "--branch", f"fix-{dear}"]) == 0
        subjects = repository.subjects(f"fix-{dear}")
        assert [dear in subject for subject in subjects] == [True, False]


def test_badge_counts_the_sites_of_traces_and_baselines(folder: Path, capsys: Captured) -> None:
    baseline.write(folder / "breaks.json", traced(folder))
    for name in ("trace.json", "breaks.json"):
        assert main(["trace", "--show", name, "--format", "badge"]) == 0
        assert capsys.readouterr().out.startswith("![graph breaks: 2](https://img.shields.io/badge/graph%20breaks-2-")
    (folder / "none.json").write_text("[]")
    assert main(["trace", "--show", "none.json", "--format", "badge"]) == 2
    assert "is neither a trace nor a baseline" in capsys.readouterr().err


def test_command_is_kept_only_where_asked(folder: Path) -> None:
    for more, kept in ((), []), (("--keep-command",), [sys.executable, "train.py", "0"]):
        main(["trace", "--no-cache", "-q", *more, "-o", "t.json", "--", sys.executable, "train.py", "0"])
        assert json.loads((folder / "t.json").read_text())["arguments"] == kept


def test_new_site_is_shown_with_what_changed_since_the_baseline(folder: Path, capsys: Captured) -> None:
    repository = Repository(folder)
    baseline.write(folder / "breaks.json", without_last(traced(folder)))
    model = (folder / "model.py").read_text()
    repository.write("model.py", model.replace('        print("done")\n', ""))
    repository.commit()
    repository.write("model.py", model)
    assert main(["trace", "--no-cache", "--show", "trace.json", "--baseline", "breaks.json"]) == 1
    said = capsys.readouterr().err
    assert "new graph break: model.py:14 in forward" in said
    assert ", which wrote breaks.json:\n" in said
    assert '    +        print("done")\n' in said


def test_new_site_in_a_new_file_is_said_to_be_one(folder: Path, capsys: Captured) -> None:
    baseline.write(folder / "breaks.json", without_last(traced(folder)))
    repository = Repository(folder)
    (folder / "model.py").rename(folder.parent / "model.py")
    repository.commit()
    (folder.parent / "model.py").rename(folder / "model.py")
    assert main(["trace", "--no-cache", "--show", "trace.json", "--baseline", "breaks.json"]) == 1
    assert "    the file is new since " in capsys.readouterr().err


def test_new_site_on_lines_that_did_not_change_is_said_to_be_one(folder: Path, capsys: Captured) -> None:
    baseline.write(folder / "breaks.json", without_last(traced(folder)))
    Repository(folder).commit()
    assert main(["trace", "--no-cache", "--show", "trace.json", "--baseline", "breaks.json"]) == 1
    assert "another input, setting or version of torch leads there" in capsys.readouterr().err
