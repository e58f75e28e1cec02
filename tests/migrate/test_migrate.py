"""`graphmend migrate`: from a repository to a branch with commits and a report."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.report_folder import report_folder
from tests.repository.tools import (
    BROKEN,
    COMMAND,
    Repository,
    broken_repository,
    default_branch,
    isolate,
    report_of,
    run,
    untouched,
)


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return broken_repository(tmp_path / "mymodels")


def test_each_rule_gets_one_commit_on_a_branch_of_today(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder)
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    subjects = repository.subjects(default_branch())
    assert subjects == [
        "graphmend: GM101 select with torch.where instead of branching (1 site, 1 file)",
        "graphmend: GM201 keep log and warning calls out of the graph (1 site, 1 file)",
    ]
    assert repository.git("rev-parse", f"{default_branch()}~2") == repository.git("rev-parse", "main")
    assert "torch.where" in repository.show(f"{default_branch()}~1:zoo/model.py").decode()
    assert (
        "is_compiling():\n            logger.warning"
        not in repository.show(f"{default_branch()}~1:zoo/model.py").decode()
    )
    fixed = repository.show(f"{default_branch()}:zoo/model.py").decode()
    assert "torch.where" in fixed
    assert "torch.compiler.is_compiling():\n            logger.warning" in fixed
    told = capsys.readouterr()
    assert f"Branch {default_branch()} has 2 commits from main" in told.out
    assert "2 break sites fixed in 1 file." in told.out
    assert f"git log --reverse -p main..{default_branch()}" in told.out
    assert f"git branch -D {default_branch()}" in told.out
    assert told.err == ""


def test_the_branch_is_what_fixing_the_checkout_would_have_written(repository: Repository) -> None:
    assert run(repository, "--branch", "mend") == 0
    assert main(["fix", str(repository.folder), "--no-cache"]) == 1
    assert repository.show("mend:zoo/model.py") == (repository.folder / "zoo/model.py").read_bytes()


def test_commit_bodies_say_what_changes_and_why_it_is_safe_in_72_columns(repository: Repository) -> None:
    run(repository, "--branch", "mend")
    for commit in ("mend", "mend~1"):
        body = repository.git("show", "--no-patch", "--format=%b", commit)
        assert "Why it is safe: in eager mode" in body
        assert "Under torch.compile:" in body
        assert "graphmend rule GM" in body
        assert max(map(len, body.splitlines())) <= 72


def test_the_report_begins_with_the_answer_and_links_each_site(repository: Repository) -> None:
    assert run(repository) == 0
    markdown, document = report_of(repository)
    assert markdown.startswith("# graphmend: 2 break sites fixed in 1 file\n\nBranch `graphmend/")
    links = re.findall(r"\[`(zoo/model\.py):(\d+)`\]\(([^)#]+)#L(\d+)\)", markdown)
    assert [(path, line) for path, line, _, _ in links] == [("zoo/model.py", "17"), ("zoo/model.py", "15")]
    for path, line, target, anchor in links:
        assert (report_folder(repository.common, "report") / target).resolve() == repository.folder / path
        assert line == anchor
    assert f"git log --reverse -p main..{default_branch()}" in markdown
    assert f"git branch -D {default_branch()}" in markdown
    assert document["schema"] == 1
    assert document["sites_fixed"] == 2
    assert document["branch"] == default_branch()
    commits = document["commits"]
    assert isinstance(commits, list)
    assert [commit["commit"] for commit in commits] == repository.git(
        "log", "--reverse", "--format=%H", f"main..{default_branch()}"
    ).splitlines()


def test_lines_in_the_report_are_those_of_the_base_although_earlier_rules_moved_them(repository: Repository) -> None:
    second = BROKEN.replace('        logger.warning("slow path")\n', "").replace("Model", "Second")
    log = '        logger.warning("at the end")\n'
    repository.write("zoo/model.py", second.replace("        return y\n", f"{log}        return y\n"))
    repository.commit()
    assert run(repository) == 0
    markdown, _ = report_of(repository)
    line = (repository.folder / "zoo/model.py").read_text().splitlines().index(log.rstrip("\n")) + 1
    assert f"`zoo/model.py:{line}`" in markdown.partition("### GM201")[2]


def test_a_site_that_is_left_alone_is_reported_with_its_reason(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("zoo/model.py", BROKEN.replace("        logger.warning(", "        seen = logger.warning("))
    repository.commit()
    assert run(repository) == 0
    markdown, document = report_of(repository)
    assert "## Not fixed" in markdown
    assert "Not applied: " in markdown
    left = document["left"]
    assert isinstance(left, list)
    assert [(one["rule"], one["path"], one["line"]) for one in left] == [("GM201", "zoo/model.py", 15)]
    assert f"1 x {left[0]['reason']}" in capsys.readouterr().out


def test_nothing_to_fix_makes_no_branch_and_exits_with_0(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(repository) == 0
    repository.git("merge", "--quiet", default_branch())
    repository.git("branch", "--quiet", "-D", default_branch())
    capsys.readouterr()
    with untouched(repository):
        assert run(repository) == 0
    assert "Nothing to fix in " in capsys.readouterr().out


def test_a_migration_without_a_fix_says_what_would_help(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("zoo/model.py", BROKEN.replace("y = y * 2", "y = print(y)"))
    repository.commit()
    assert run(repository, "--select", "GM101") == 0
    told = capsys.readouterr().out
    assert "What would help:\n  - 1 site without a known type" in told
    assert "  - `graphmend trace -- python your_script.py` shows" in told
    assert "## What would help" in report_of(repository)[0]


def test_a_dry_run_says_what_it_would_commit_and_writes_nothing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    isolate(monkeypatch, tmp_path, identity=False)
    objects = sorted((repository.common / "objects").rglob("*"))
    with untouched(repository):
        assert run(repository, "--dry-run") == 0
    assert sorted((repository.common / "objects").rglob("*")) == objects
    assert not report_folder(repository.common, "any").parent.exists()
    told = capsys.readouterr().out
    assert "would get 2 commits" in told
    assert "graphmend: GM101 select with torch.where instead of branching (1 site, 1 file)" in told


def test_options_limit_rules_paths_and_the_base(repository: Repository) -> None:
    repository.write("other.py", BROKEN)
    repository.commit()
    assert run(repository, "--branch", "rules", "--select", "GM2") == 0
    assert repository.git("log", "--format=%s", "main..rules").startswith("graphmend: GM201 ")
    assert repository.git("diff", "--name-only", "main", "rules").splitlines() == ["other.py", "zoo/model.py"]
    assert run(repository, "--branch", "paths", "--paths", "other.py", "zoo/clean.py") == 0
    assert repository.git("diff", "--name-only", "main", "paths") == "other.py"
    assert run(repository, "--branch", "base", "--base", "main~1") == 0
    assert repository.git("rev-parse", "base~2") == repository.git("rev-parse", "main~1")
    assert main(["migrate", str(repository.folder / "zoo"), "--branch", "inside", "--no-cache"]) == 0
    assert repository.git("diff", "--name-only", "main", "inside") == "zoo/model.py"


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--paths", "nowhere.py"], "nowhere.py: does not exist at main"),
        (["--paths", "../outside"], "../outside: is outside the repository"),
        (["--base", "nothing"], "no commit is called 'nothing'"),
        (["--branch", "a b"], "not a name that git allows for a branch"),
        (["--branch", "main"], "branch main exists already"),
        (["--model", "model"], "must look like package.module:factory"),
        (["--select", "GM9"], "unknown rule code `GM9`"),
        (["--report", "zoo/model.py"], "cannot write the report there"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_at_once(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: Sequence[str],
    cause: str,
) -> None:
    monkeypatch.chdir(repository.folder)
    with untouched(repository):
        assert run(repository, *options) == 2
    told = capsys.readouterr()
    assert cause in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_settings_are_those_of_the_commit_and_mistakes_name_the_users_file(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("pyproject.toml", "[tool.graphmend]\nselect = ['GM1']\n")
    repository.commit()
    repository.write("pyproject.toml", "[tool.graphmend]\nselect = ['GM2']\n")
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert repository.subjects(default_branch())[0].startswith("graphmend: GM101 ")
    repository.write("pyproject.toml", "[tool.graphmend]\nslect = ['GM1']\n")
    repository.commit()
    capsys.readouterr()
    with untouched(repository):
        assert run(repository, "--branch", "again") == 2
    assert f"{repository.folder}/pyproject.toml: [tool.graphmend] has no setting `slect`" in capsys.readouterr().err


def test_a_report_can_go_elsewhere(repository: Repository, tmp_path: Path) -> None:
    with untouched(repository, but=default_branch()):
        assert run(repository, "--report", str(tmp_path / "new" / "report")) == 0
    assert {file.name for file in (tmp_path / "new" / "report").iterdir()} == {"report.md", "report.json"}
    assert not report_folder(repository.common, "any").parent.exists()


def test_a_pipe_gets_no_progress_and_a_terminal_gets_one_line(repository: Repository) -> None:
    done = subprocess.run([*COMMAND, str(repository.folder), "--dry-run"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "rb", closefd=True) as shown:
        done = subprocess.run(
            [*COMMAND, str(repository.folder), "--dry-run"],
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
            check=False,
        )
        os.close(terminal)
        told = shown.read1(100_000).decode()
    assert done.returncode == 0
    assert "\r\x1b[K[1/2] GM101 select with torch.where" in told
    assert told.endswith("\r\x1b[K")
    assert "\n" not in told


def test_the_commands_to_review_and_undo_work_from_where_the_user_stands(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder.parent)
    assert run(repository) == 0
    commands = [line.partition(":")[2].strip() for line in capsys.readouterr().out.splitlines()[-2:]]
    for command in commands:
        subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert default_branch() not in repository.git("branch", "--list")


def test_the_report_is_shown_in_a_browser_when_that_is_asked_for(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def opened(address: str) -> bool:
        shown.append(address)
        return False

    monkeypatch.setattr("webbrowser.open", opened)
    assert run(repository, "--open") == 0
    page = report_folder(repository.common, f"report-{default_branch().replace('/', '-')}") / "report.md"
    assert shown == [page.resolve().as_uri()]
    assert f"no browser was found; open {page} yourself" in capsys.readouterr().err
