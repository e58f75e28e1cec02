"""`graphmend pr --from`: a branch that `graphmend migrate` made earlier is proposed as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.cli.pr import _EPILOG
from graphmend_codemod.core.report_folder import report_folder
from graphmend_codemod.migrate.saved import earlier_migration
from graphmend_codemod.repository.checkout import open_checkout
from graphmend_evaluation.reporting import write_reports
from tests.evaluation import report_samples
from tests.forge.tools import TOKEN, Hub, Ran, run
from tests.repository.tools import BROKEN, untouched


@pytest.fixture
def zoo(hub: Hub, capsys: pytest.CaptureFixture[str]) -> Hub:
    """A clone in which `migrate` has made the branch `mended`."""
    hub.clone.git("remote", "set-url", "origin", f"{hub.server.url}/octo/zoo.git")
    assert main(["migrate", str(hub.clone.folder), "--branch", "mended", "--no-evaluate", "--jobs", "1"]) == 0
    return hub


def propose(hub: Hub, *options: str, branch: str = "mended") -> Ran:
    command = ["pr", str(hub.clone.folder), "--from", branch, "--forge", "github", "--api-url", hub.fake.url]
    return run(*command, *options, token=TOKEN)


def test_the_branch_is_pushed_as_it_is_with_the_report_of_its_migration(
    zoo: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmend_codemod.migrate.migration.migrate", None)
    with untouched(zoo.clone):
        ran = propose(zoo)
    assert ran.code == 0, ran
    assert "branch mended is used as `graphmend migrate` created it" in ran.out
    assert zoo.tip == zoo.clone.git("rev-parse", "mended")
    (pull,) = zoo.pulls
    assert pull.body.startswith("**2 break sites fixed in 1 file.**")
    assert "zoo/model.py:17" in pull.body


def test_the_documented_line_migrates_and_proposes(hub: Hub, tmp_path: Path) -> None:
    """Word for word as the help has it; only the forge of this test is named to git and to the command."""
    hub.clone.git("remote", "set-url", "origin", f"{hub.server.url}/octo/zoo.git")
    command = tmp_path / "bin/graphmend"
    command.parent.mkdir()
    forge = f'[ "$1" != pr ] || set -- "$@" --no-evaluate --forge github --api-url {hub.fake.url}'
    command.write_text(f'#!/bin/sh\n{forge}\nexec {sys.executable} -m graphmend_codemod "$@"\n')
    command.chmod(0o755)
    (line,) = (each.strip() for each in _EPILOG.splitlines() if "&&" in each)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "GITHUB_TOKEN": TOKEN}
    done = subprocess.run(
        ["sh", "-c", line], cwd=hub.clone.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "\nopened http" in done.stdout
    assert len(hub.pulls) == 1


def test_later_runs_without_it_know_the_pull_request(zoo: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    propose(zoo)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    zoo.clone.write("zoo/second.py", BROKEN)
    zoo.clone.commit()
    tip = zoo.clone.git("rev-parse", "HEAD")
    zoo.server.git("octo/zoo", "fetch", "--quiet", str(zoo.clone.folder), f"{tip}:main")
    assert zoo.pr().out.startswith("updated")
    assert "4 break sites" in zoo.pulls[0].body


def test_a_dry_run_tells_what_would_be_pushed(zoo: Hub) -> None:
    ran = propose(zoo, "--dry-run")
    assert (ran.code, zoo.pulls, zoo.tip) == (0, [], None)
    assert "would push branch" in ran.out


def test_an_evaluation_that_was_made_with_it_is_the_evidence(zoo: Hub) -> None:
    write_reports(report_samples.measured(), report_folder(zoo.clone.common, "report-mended") / "evaluation")
    earlier = earlier_migration(open_checkout(zoo.clone.folder), "mended")
    assert earlier.made.measured.evaluation == report_samples.measured()
    propose(zoo)
    assert report_samples.measured().models[0].name.rpartition(":")[2] in zoo.pulls[0].body


def test_a_branch_that_was_changed_since_is_not_proposed(zoo: Hub) -> None:
    zoo.clone.git("checkout", "--quiet", "mended")
    zoo.clone.write("notes.txt", "by hand\n")
    zoo.clone.commit()
    ran = propose(zoo)
    assert ran.code == 2
    assert "branch mended has changed since `graphmend migrate`" in ran.err
    assert zoo.tip is None


def test_a_base_that_moved_on_is_a_base_all_the_same(zoo: Hub) -> None:
    zoo.clone.write("README", "more\n")
    tip = zoo.clone.commit()
    zoo.server.git("octo/zoo", "fetch", "--quiet", str(zoo.clone.folder), f"{tip}:main")
    ran = propose(zoo)
    assert ran.code == 0, ran
    assert "a run without --from rebases" in ran.err


def test_a_branch_from_somewhere_else_is_not_proposed(zoo: Hub) -> None:
    zoo.clone.write("zoo/mine.py", BROKEN)
    zoo.clone.commit("Not pushed")
    assert main(["migrate", str(zoo.clone.folder), "--branch", "private", "--no-evaluate", "--jobs", "1"]) == 0
    ran = propose(zoo, branch="private")
    assert ran.code == 2
    assert "is not on main of octo/zoo" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_base_that_the_clone_does_not_know_is_told(zoo: Hub, tmp_path: Path) -> None:
    zoo.clone.git("clone", "--quiet", str(zoo.server.root / "octo/zoo.git"), str(tmp_path / "other"))
    (tmp_path / "other/README").write_text("more\n")
    for command in (("add", "--all"), ("commit", "--quiet", "-m", "More"), ("push", "--quiet")):
        zoo.clone.git("-C", str(tmp_path / "other"), *command)
    ran = propose(zoo)
    assert ran.code == 2
    assert "has commits that this clone lacks" in ran.err


@pytest.mark.parametrize("what", ["branch", "report", "old"])
def test_what_is_missing_is_named(zoo: Hub, what: str) -> None:
    report = report_folder(zoo.clone.common, "report-mended") / "report.json"
    if what == "report":
        report.unlink()
    if what == "old":
        report.write_text(json.dumps({**json.loads(report.read_text()), "schema": 0}))
    ran = propose(zoo, branch="nothing" if what == "branch" else "mended")
    assert ran.code == 2
    words = {"branch": "has no branch nothing", "report": "say with --report", "old": "is not a report of this version"}
    assert words[what] in ran.err


def test_an_address_has_no_branch_to_take(hub: Hub) -> None:
    ran = hub.pr("--from", "mended")
    assert ran.code == 2
    assert "--from needs a clone" in ran.err


@pytest.mark.parametrize("option", [("--select", "GM1"), ("--model", "zoo.model:make"), ("--unsafe-fixes",)])
def test_what_only_a_migration_can_do_is_refused(zoo: Hub, option: tuple[str, ...]) -> None:
    ran = propose(zoo, *option)
    assert ran.code == 2
    assert "--from takes an existing branch" in ran.err
