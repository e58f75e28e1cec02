"""Fixes that do not earn their place: planted ones are found by evaluation, named, and taken back; the others stay."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from graphmend_codemod import rules
from graphmend_codemod.core.findings import Edit, EditForm, Replacement
from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.engine import judge as engine_module
from graphmend_codemod.evaluation.port import Wanted
from graphmend_codemod.migrate.migration import MigrationOptions, migrate
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.migrate.per_rule import Engine
from graphmend_codemod.rules.framework import registry
from graphmend_codemod.rules.framework.ask_table import CODES, QUESTIONS
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from tests.repository.tools import Repository, empty_repository, report_of, untouched

PLANTED = {
    101: "y = y + 1",
    102: "if y.sum() > 51 + 51:\n    self.note(y)",
    103: "if torch.compiler.is_compiling():\n    y = y.view(3, 5)",
    104: "if torch.compiler.is_compiling():\n    w = y.sum() * torch.ones(600, 600)\n"
    "    y = torch.minimum(y, (w @ w).sum().abs() + 1e30)",
}
"""What the planted rule writes for `if y.sum() > NUMBER: ...`: a wrong result, a break that stays, a failure, work."""

MODEL = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.seen = []

    def note(self, y):
        self.seen.append(y.shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x){told}
        if y.sum() > {number}:
            self.note(y)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return y + 1


def make():
    return Model(), [(torch.ones(2, 4),), (-torch.ones(2, 4),)]
"""
ALONE = MODEL[: MODEL.index("        if y.sum() > 0:")] + MODEL[MODEL.index("        return y") :]
"""The same with nothing to fix but the planted site."""

TOLD = '\n        logger.warning("slow path")'
PLANTED_LINE = MODEL.splitlines().index("        if y.sum() > {number}:") + 1


def planted_rule() -> Rule:
    rule = Rule(
        "gm999_planted",
        "planted (GM999): a rewrite for a test.\n\nIt is wrong.\n",
        title="plant a rewrite that does not earn its place",
        contract=Contract(Cost.NONE),
    )

    @rule.on(ast.If)
    def planted(site: Site, node: ast.If) -> Diagnostic | None:
        bound = node.test.comparators[0] if isinstance(node.test, ast.Compare) else None
        text = PLANTED.get(bound.value) if isinstance(bound, ast.Constant) and isinstance(bound.value, int) else None
        if text is None:
            return None
        return Diagnostic("a planted site", edit=Edit((Replacement(site.span(node), (text,)),), form=EditForm.ONE_PATH))

    return rule


@pytest.fixture
def planting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine with one rule more."""
    planted = ModuleType("planted")
    planted.rule = planted_rule()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"{rules.__name__}.planted", planted)
    asked = (("planted", "If", "", ""), *QUESTIONS)
    monkeypatch.setattr("graphmend_codemod.rules.framework.registry.QUESTIONS", asked)
    monkeypatch.setattr("graphmend_codemod.engine.judge.CODES", (*CODES, "GM999"))
    for each in (registry._questions, registry._asked_of, engine_module._selected):
        each.cache_clear()
    yield Engine(rules=(*all_rules(), planted.rule))
    for each in (registry._questions, registry._asked_of, engine_module._selected):
        each.cache_clear()


@pytest.fixture
def repository(isolated: None, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repository = empty_repository(tmp_path_factory.mktemp("planted") / "mymodels")
    repository.write("zoo/__init__.py", "")
    # One change more would cost the search for a culprit a process: only the model that needs none has a message.
    for name, number, told in (("wrong", 101, ""), ("useless", 102, TOLD), ("failing", 103, "")):
        repository.write(f"zoo/{name}.py", MODEL.format(number=number, told=told))
    repository.commit()
    return repository


def evaluated(
    repository: Repository, engine: Engine, *names: str, keep: bool = False, paths: tuple[str, ...] = ()
) -> Migration:
    wanted = Wanted(named=tuple(f"zoo.{name}:make" for name in names), jobs=2)
    request = MigrationOptions(
        repository.folder, load_settings, branch="mend", paths=tuple(map(Path, paths)), wanted=wanted, keep=keep
    )
    with untouched(repository, but=None if paths else "mend"):
        return migrate(request, engine=engine)


def test_a_rewrite_that_changes_results_is_found_and_taken_back(repository: Repository, planting: Engine) -> None:
    repository.write("zoo/alone.py", ALONE.format(number=101, told=""))
    repository.commit()
    outcome = evaluated(repository, planting, "alone", paths=("zoo/alone.py",))

    (taken,) = outcome.taken_back
    assert (taken.finding.code, taken.finding.span.start_line) == ("GM999", PLANTED_LINE)
    assert "eager result changed" in taken.reason
    assert outcome.commits == ()
    assert [result.problems for result in outcome.models] == [()]


@pytest.mark.slow
def test_planted_rewrites_are_found_and_taken_back_and_the_others_stay(
    repository: Repository, planting: Engine
) -> None:
    outcome = evaluated(repository, planting, "wrong", "useless", "failing")

    taken = {each.finding.path: each for each in outcome.taken_back}
    assert {path: each.finding.span.start_line for path, each in taken.items()} == {
        "zoo/failing.py": PLANTED_LINE,
        "zoo/useless.py": PLANTED_LINE + 1,
        "zoo/wrong.py": PLANTED_LINE,
    }
    assert {each.finding.code for each in outcome.taken_back} == {"GM999"}
    assert "eager result changed" in taken["zoo/wrong.py"].reason
    assert "its break is still there" in taken["zoo/useless.py"].reason
    assert "fails or is wrong" in taken["zoo/failing.py"].reason

    assert [commit.rule.code for commit in outcome.commits] == ["GM101", "GM201"]
    for name, number in (("wrong", 101), ("useless", 102), ("failing", 103)):
        text = repository.git("show", f"mend:zoo/{name}.py")
        assert f"        if y.sum() > {number}:\n            self.note(y)\n" in text
        assert "torch.where(" in text
        assert ("if not torch.compiler.is_compiling():" in text) == (name == "useless")
    markdown, document = report_of(repository, "mend")
    assert "## Reverted after evaluation" in markdown
    assert [each["path"] for each in document["taken_back"]] == ["zoo/failing.py", "zoo/useless.py", "zoo/wrong.py"]
    left = [each for each in document["left"] if each["rule"] == "GM999"]
    assert len(left) == 3
    assert all(each["reason"].startswith("reverted after evaluation: ") for each in left)
    assert [result.problems for result in outcome.models] == [(), (), ()]


@pytest.mark.slow
def test_keep_leaves_what_was_found_and_says_so(repository: Repository, planting: Engine) -> None:
    outcome = evaluated(repository, planting, "useless", keep=True)
    assert outcome.taken_back == ()
    assert "51 + 51" in repository.git("show", "mend:zoo/useless.py")
    assert outcome.measured.evaluation is not None
    (reverted,) = outcome.measured.evaluation.reverted
    assert reverted.kept
    assert reverted.change.path == "zoo/useless.py"


@pytest.mark.slow
def test_a_planted_rewrite_that_is_timed_slower_is_taken_back(repository: Repository, planting: Engine) -> None:
    repository.write("zoo/slow.py", ALONE.format(number=104, told=""))
    repository.commit()
    wanted = Wanted(named=("zoo.slow:make",), speed=True, speed_budget=1.0)
    request = MigrationOptions(
        repository.folder, load_settings, branch="mend", paths=(Path("zoo/slow.py"),), wanted=wanted
    )
    with untouched(repository):
        outcome = migrate(request, engine=planting)

    (taken,) = outcome.taken_back
    assert taken.finding.code == "GM999"
    assert taken.reason.startswith("it makes compiled code slower (zoo.slow:make: steady state ")
    assert outcome.commits == ()
    assert [(result.steady, result.problems) for result in outcome.models] == [("", ())]
