"""`graphmend migrate --model`: graph breaks measured before and after, and models that cannot be measured."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.evaluation.port import (
    Culprit,
    Measured,
    MeasuredVersion,
    ModelResult,
    RecordedModel,
    Sites,
    Trees,
    Wanted,
)
from graphmend_codemod.migrate.migration import MigrationOptions, migrate
from graphmend_codemod.migrate.outcome import Migration
from tests.repository.tools import BROKEN, COMMAND, Repository, default_branch, report_of, run, untouched
from tests.tools.processes import nothing_runs

FACTORIES = """\
import os
import sys
import time

import torch

from zoo.model import Model


def good():
    return Model(), (torch.ones(2, 4),)


def raises():
    raise ValueError("no weights here")


def exits():
    os._exit(3)


def hangs():
    with open(os.environ["HANGS_AT"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def repository(repository: Repository) -> Repository:
    repository.write("zoo/factories.py", FACTORIES)
    repository.commit()
    return repository


class FakeJudge:
    """Counts the breaks that the text shows, in place of a compiler."""

    def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
        self._trees = trees
        self._wanted = wanted

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        roots = (self._trees.base, self._trees.head)
        breaks = [("torch.where" not in (root / "zoo/model.py").read_text()) + 1 for root in roots]
        arms = [MeasuredVersion(count, count + 1, False, ("zoo/model.py:15 log",), "") for count in breaks]
        lost = MeasuredVersion(None, None, False, (), "ValueError: no weights here")
        first, *others = self._wanted.named
        models = (
            ModelResult(first, arms[0], arms[1], (), (("python", "3.11.7"), ("torch", "2.13.0"))),
            *(ModelResult(model, lost, lost, (f"before: {lost.message}",)) for model in others),
        )
        return Measured(models)

    def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        return ()

    def finish(self, measured: Measured) -> Measured:
        return measured


def test_measured_breaks_are_in_the_report_and_in_every_commit(repository: Repository) -> None:
    wanted = Wanted(named=("zoo.factories:good", "zoo.factories:raises"))
    request = MigrationOptions(repository.folder, load_settings, branch="mend", wanted=wanted)
    with untouched(repository, but="mend"):
        outcome = migrate(request, measure=FakeJudge)
    assert [arm.breaks for arm in (outcome.models[0].before, outcome.models[0].after)] == [2, 1]
    for commit in ("mend", "mend~1"):
        body = repository.git("show", "--no-patch", "--format=%b", commit)
        assert "Graph breaks of the whole branch, before -> after with python 3.11.7, torch 2.13.0:\n" in body
        assert "  zoo.factories:good  2 -> 1\n" in body
        assert "  zoo.factories:raises  not measured\n" in body
    markdown, document = report_of(repository, "mend")
    assert markdown.startswith("# graphmend: 2 break sites fixed in 1 file, graph breaks 2 -> 1 in 1 model\n")
    assert "| `zoo.factories:good` | 2 | 1 | 3 | 2 | no |" in markdown
    assert "- still breaks at `zoo/model.py:15 log`" in markdown
    assert document["models"][0]["before"]["graph_breaks"] == 2
    assert document["models"][1]["after"]["error"] == "ValueError: no weights here"


class SlowJudge(FakeJudge):
    """Calls a text slower that selects, and names the place if it is asked to."""

    def finish(self, measured: Measured) -> Measured:
        model = "zoo/model.py"
        slow = "torch.where" in (self._trees.head / model).read_text()
        found = next(number for number, line in enumerate(BROKEN.splitlines(), 1) if "if " in line and ".sum()" in line)
        culprit = Culprit(model, found, found, "it makes compiled code slower (zoo.factories:good: steady state +50%)")
        models = tuple(
            replace(each, steady="10 ms -> 15 ms (+50%)", problems=("slower: steady state +50%",)) if slow else each
            for each in measured.models
        )
        return replace(measured, models=models, slower=(culprit,) if slow and self._wanted.revert_slower else ())


def timed(repository: Repository, *, keep_slower: bool = False, keep: bool = False, speed: bool = True) -> Migration:
    wanted = Wanted(named=("zoo.factories:good",), speed=speed)
    request = MigrationOptions(
        repository.folder, load_settings, branch="mend", wanted=wanted, keep=keep, keep_slower=keep_slower
    )
    with untouched(repository, but="mend"):
        return migrate(request, measure=SlowJudge)


def test_a_fix_that_is_measured_slower_is_taken_back_and_the_report_says_so(repository: Repository) -> None:
    outcome = timed(repository)
    assert [each.finding.code for each in outcome.taken_back] == ["GM101"]
    assert "torch.where" not in repository.git("show", "mend:zoo/model.py")
    assert [commit.rule.code for commit in outcome.commits] == ["GM201"]
    markdown, document = report_of(repository, "mend")
    assert "it makes compiled code slower (zoo.factories:good: steady state +50%)" in markdown
    assert document["taken_back"][0]["reason"].startswith("it makes compiled code slower")
    assert "| `zoo.factories:good` | 2 | 2 | 3 | 3 | no | not measured | not measured |" in markdown
    assert document["models"][0]["steady_state"] is None


@pytest.mark.parametrize("options", [{"keep_slower": True}, {"keep": True}, {"speed": False}])
def test_a_fix_that_is_measured_slower_stays_if_that_is_asked_for_or_nobody_asks(
    repository: Repository, options: dict[str, bool]
) -> None:
    outcome = timed(repository, **options)
    assert outcome.taken_back == ()
    assert "torch.where" in repository.git("show", "mend:zoo/model.py")
    markdown, document = report_of(repository, "mend")
    assert "| `zoo.factories:good` | 2 | 1 | 3 | 2 | no | not measured | 10 ms -> 15 ms (+50%) |" in markdown
    assert "- **slower: steady state +50%**" in markdown
    assert document["models"][0]["steady_state"] == "10 ms -> 15 ms (+50%)"


def test_models_of_the_settings_are_measured_unless_told_otherwise(repository: Repository) -> None:
    repository.write("pyproject.toml", "[tool.graphmend]\nmodels = ['zoo.factories:good']\n")
    repository.commit()
    request = MigrationOptions(repository.folder, load_settings, branch="mend", dry_run=True)
    measured = migrate(request, measure=FakeJudge).models
    assert [result.model for result in measured] == ["zoo.factories:good"]
    named = MigrationOptions(
        repository.folder, load_settings, branch="mend", dry_run=True, wanted=Wanted(("zoo.factories:raises",))
    )
    assert [result.model for result in migrate(named, measure=FakeJudge).models] == ["zoo.factories:raises"]
    without = MigrationOptions(repository.folder, load_settings, branch="mend", dry_run=True, evaluate=False)
    assert migrate(without, measure=FakeJudge).models == ()


def test_what_changed_in_the_checkout_while_models_ran_is_a_remark(repository: Repository) -> None:
    class Writing(FakeJudge):
        def finish(self, measured: Measured) -> Measured:
            repository.write(".git/hooks/post-checkout", "#!/bin/sh\n")
            return measured

    wanted = Wanted(named=("zoo.factories:good",))
    request = MigrationOptions(repository.folder, load_settings, branch="mend", wanted=wanted)
    (remark,) = migrate(request, measure=Writing).remarks
    assert "your checkout changed while models ran: .git/hooks/post-checkout; if that was not you" in remark


def test_a_real_model_loses_its_breaks(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    with untouched(repository, but=default_branch()):
        assert run(repository, "--model", "zoo.factories:good") == 0
    assert "zoo.factories:good: graph breaks 2 -> 0" in capsys.readouterr().out
    markdown, document = report_of(repository)
    assert "| `zoo.factories:good` | 2 | 0 | 2 | 1 | yes |" in markdown
    assert document["models"][0]["after"]["one_graph"] is True
    assert document["models"][0]["problems"] == []


def test_a_factory_that_raises_or_exits_costs_its_own_row(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("raises", "exits", "missing")
    options = [option for name in names for option in ("--model", f"zoo.factories:{name}")]
    with untouched(repository):
        # Nothing to fix for this rule: each model is measured once.
        assert run(repository, "--select", "GM301", *options) == 0
    told = capsys.readouterr().out
    for name in names:
        assert f"zoo.factories:{name}: not measured\n" in told
    assert "ValueError: no weights here (zoo/factories.py:15)" in told
    assert "exit code 3" in told
    assert "zoo.factories:missing cannot be imported" in told


@pytest.mark.slow
def test_a_factory_that_hangs_is_stopped_in_time(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HANGS_AT", str(tmp_path / "pid"))
    with untouched(repository):
        code = run(repository, "--select", "GM301", "--model", "zoo.factories:hangs", "--model-timeout", "20")
    assert code == 0
    assert "no result after 20 s" in capsys.readouterr().out
    assert (tmp_path / "pid").exists()
    assert nothing_runs(f"{tmp_path}/tmp/")


def test_an_interruption_while_measuring_ends_the_model_too(repository: Repository, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with untouched(repository):
        process = subprocess.Popen(
            [*COMMAND, str(repository.folder), "--model", "zoo.factories:hangs"],
            env={**os.environ, "HANGS_AT": str(pid)},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(pid)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "graphmend: interrupted; nothing was changed\n"
    assert nothing_runs(f"{tmp_path}/tmp/")


def test_measuring_without_torch_names_the_extra(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with untouched(repository):
        assert run(repository, "--model", "zoo.factories:good") == 2
    told = capsys.readouterr().err
    assert "run `pip install 'graphmend[eval]" in told
    assert "in the environment of your models, or pass --no-evaluate" in told


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
