"""Rounds of recorded runs: what is recorded, which files change, what a verdict reverts, what is said at the end."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

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
from graphmend_codemod.trace import document
from graphmend_evaluation.counting import Call
from graphmend_evaluation.loading import Model
from graphmend_evaluation.tracing import model_runs
from tests.repository.tools import Repository, empty_repository, untouched

MODEL = """\
import logging

import numpy as np
import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("slow path")
        return self.steps(x)

    def steps(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = torch.from_numpy(np.unwrap(x.numpy(), axis=0))
            x = torch.from_numpy(np.interp(x.numpy(), [0.0, 1.0], [0.0, 2.0]))
        return x
"""
BREAKS = ('    logger.warning("slow path")', "np.unwrap", "np.interp")
SHAPES = {"zoo.model:narrow": (3, 4), "zoo.model:wide": (3, 6)}
_NUMBER = itertools.count()


class Recording:
    """Counts the breaks that the text shows in place of measuring, and really records, in this process."""

    def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
        self.trees = trees
        self.wanted = wanted
        self.recorded = 0

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        before, after = (self.breaks(root) for root in (self.trees.base, self.trees.head))
        arms = [MeasuredVersion(count, count + 1, not count, (), "") for count in (before, after)]
        return Measured(tuple(ModelResult(name, arms[0], arms[1], ()) for name in self.wanted.named))

    def breaks(self, root: Path) -> int:
        text = (root / "zoo/model.py").read_text()
        plain = [each for each in BREAKS if f"not torch.compiler.is_compiling():\n        {each}" not in text]
        return sum(f"{each.partition('.')[2]}" in text for each in plain) - text.count("_recorded_operator(_")

    def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        self.recorded += 1
        return tuple(self.one(each) for each in models)

    def one(self, name: str) -> RecordedModel:
        root = self.trees.head
        part = self.trees.folder / f"{next(_NUMBER)}.json"
        part.parent.mkdir(exist_ok=True)
        rows, columns = SHAPES[name]
        calls = tuple(Call((torch.randn(count, columns),)) for count in (rows, rows, 2 * rows))
        with torch.no_grad():
            model_runs.compiled_run(Model(made(root), calls, False), root, part)
            trace = document.read(part)
            watched = model_runs.plain_run(Model(made(root), calls, False), root, trace)
        return RecordedModel(name, replace(trace, watched=watched))

    def finish(self, measured: Measured) -> Measured:
        return measured


def made(root: Path) -> torch.nn.Module:
    name = f"recorded_round_{next(_NUMBER)}"
    spec = importlib.util.spec_from_file_location(name, root / "zoo/model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    model: torch.nn.Module = module.Model()
    return model


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = empty_repository(tmp_path / "mymodels")
    repository.write("zoo/__init__.py", "")
    repository.write("zoo/model.py", MODEL)
    repository.commit()
    return repository


def recorded(
    repository: Repository,
    *names: str,
    measure: type[Recording] = Recording,
    rounds: int = 3,
    paths: tuple[str, ...] = (),
    dry_run: bool = False,
) -> Migration:
    request = MigrationOptions(
        repository.folder,
        load_settings,
        branch="mend",
        wanted=Wanted(named=names),
        record=rounds,
        paths=tuple(map(Path, paths)),
        dry_run=dry_run,
    )
    with untouched(repository, but=None if dry_run or paths else "mend"):
        return migrate(request, measure=measure)


def rules(outcome: Migration) -> list[tuple[str, int]]:
    return [(commit.rule.code, commit.round) for commit in outcome.commits]


def test_it_ends_when_nothing_breaks(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow")
    assert rules(outcome) == [("GM201", 0), ("GM801", 1), ("GM801", 2)]
    assert [(each.before, each.after) for each in outcome.rounds] == [(2, 1), (1, 0)]
    assert outcome.left_breaks == ()


def test_two_models_of_one_class_share_an_operator(repository: Repository) -> None:
    """Each run had one number of columns, so an operator of either alone would ask for that."""
    outcome = recorded(repository, *SHAPES, rounds=1, dry_run=True)
    (fix,) = outcome.rounds[0].fixes
    assert outcome.rounds[0].recorded == tuple(SHAPES)
    assert fix.holds_for[:2] == ("x: 2 dimensions, cpu", "x.dtype in (torch.float32, torch.float64)")
    assert not [each for each in fix.holds_for if "shape" in each]


def test_what_another_round_would_fix_is_said_when_there_is_none(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow", rounds=1)
    (left,) = outcome.left_breaks
    assert "np.interp" in repository.show("mend:zoo/model.py").decode().splitlines()[left.line - 1]
    assert left.reason == "GM801: a further round may fix it: `--record 2`"


class Reverting(Recording):
    """Sends back the fix of the log call, once the first recorded run was fixed."""

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        found = super().verdict(sites, changed)
        line = MODEL.splitlines().index('        logger.warning("slow path")') + 1
        there = any(each.code == "GM201" for each in sites.fixed)
        culprit = Culprit("zoo/model.py", line, line, "its break is still there (a model)")
        return replace(found, culprits=(culprit,)) if there and self.recorded else found


def test_a_fix_is_reverted_below_those_of_recorded_runs(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow", measure=Reverting)
    assert rules(outcome) == [("GM801", 1), ("GM801", 2)]
    assert [each.finding.code for each in outcome.taken_back] == ["GM201"]
    text = repository.show("mend:zoo/model.py").decode()
    assert '\n        logger.warning("slow path")\n' in text
    assert text.count("@_recorded_operator(") == 2


class RevertingFirst(Recording):
    """Sends back the fix of the log call that the source alone led to."""

    reason = "what was measured (a model)"
    harmless = False

    def culprit(self, line: int) -> Culprit:
        return Culprit("zoo/model.py", line, line, self.reason, self.harmless)

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        found = super().verdict(sites, changed)
        line = MODEL.splitlines().index('        logger.warning("slow path")') + 1
        there = any(each.code == "GM201" for each in sites.fixed)
        return replace(found, culprits=(self.culprit(line),) * (there and not self.recorded))


class WithoutEffect(RevertingFirst):
    harmless = True


class Wrong(RevertingFirst):
    pass


def test_a_fix_without_effect_may_come_back_in_the_form_that_a_run_asks_for(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow", measure=WithoutEffect, dry_run=True)
    assert ("GM201", 1) in rules(outcome)
    assert outcome.taken_back == ()


def test_a_fix_above_a_loop_waits_for_what_breaks_in_the_rounds(repository: Repository) -> None:
    whole = MODEL.replace("        return self.steps(x)\n\n    def steps(self, x: torch.Tensor) -> torch.Tensor:\n", "")
    repository.write("zoo/model.py", whole)
    repository.commit()
    outcome = recorded(repository, "zoo.model:narrow", dry_run=True)
    assert rules(outcome) == [("GM801", 1), ("GM201", 2), ("GM801", 2)]
    assert outcome.left_breaks == ()


def test_a_fix_that_was_wrong_does_not_come_back(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow", measure=Wrong, dry_run=True)
    assert rules(outcome) == [("GM801", 1), ("GM801", 2)]
    assert [each.finding.code for each in outcome.taken_back] == ["GM201"]
    assert [each.reason for each in outcome.left_breaks] == [f"GM201: reverted after evaluation: {Wrong.reason}"]


class RevertingRecorded(Recording):
    """Sends back whatever a recorded run fixed."""

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        culprits = tuple(
            Culprit(each.path, each.span.start_line, each.span.end_line, "the eager result changed (a model)")
            for each in sites.fixed
            if each.code == "GM801"
        )
        return replace(super().verdict(sites, changed), culprits=culprits)


def test_fixes_of_recorded_runs_are_reverted_and_not_made_again(repository: Repository) -> None:
    outcome = recorded(repository, "zoo.model:narrow", measure=RevertingRecorded)
    assert rules(outcome) == [("GM201", 0)]
    (only,) = outcome.rounds
    assert [each.reverted for each in only.fixes] == ["the eager result changed (a model)"]
    assert "reverted after evaluation: the eager result changed" in outcome.left_breaks[0].reason
    assert "np.unwrap" in repository.show("mend:zoo/model.py").decode()


def test_files_outside_of_the_paths_are_left_alone_and_said(repository: Repository) -> None:
    repository.write("other/model.py", MODEL)
    repository.commit()
    outcome = recorded(repository, "zoo.model:narrow", paths=("other",), dry_run=True)
    assert {path for commit in outcome.commits for path in commit.files} == {"other/model.py"}
    assert outcome.rounds == ()
    reasons = [each.reason for each in outcome.left_breaks]
    assert reasons
    assert all("outside of the paths that the migration is limited to" in each for each in reasons)


class Failing(Recording):
    """Cannot record one of the models."""

    def one(self, name: str) -> RecordedModel:
        return super().one(name) if name.endswith("narrow") else RecordedModel(name, None, "no result after 600 s")


def test_a_model_that_cannot_be_recorded_is_said(repository: Repository) -> None:
    outcome = recorded(repository, *SHAPES, measure=Failing, rounds=1, dry_run=True)
    assert outcome.rounds[0].recorded == ("zoo.model:narrow",)
    assert outcome.rounds[0].failed == ("zoo.model:wide: no result after 600 s",)
    assert [(each.kind, each.models) for each in outcome.left_breaks if not each.path] == [
        ("not recorded", ("zoo.model:wide",))
    ]
