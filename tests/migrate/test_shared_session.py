"""A migration whose project is read and analysed once: the same commits, and no fix of a text that it has not seen."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_codemod.core.findings import Edit
from graphmend_codemod.core.settings import Settings, load_settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine import api, session
from graphmend_codemod.engine.analyze import Analysed, Task, analyse
from graphmend_codemod.engine.fixpoint import Veto
from graphmend_codemod.migrate import shared_session
from graphmend_codemod.migrate.migration import MigrationOptions, migrate
from graphmend_codemod.migrate.outcome import Migration
from graphmend_codemod.migrate.per_rule import Engine
from graphmend_codemod.migrate.shared_session import reading_once
from graphmend_codemod.rewriting import RewriteError
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.repository.tools import BROKEN, Repository

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiny_model" / "tiny_model"


def migrated(repository: Repository, branch: str, engine: Engine) -> Migration:
    return migrate(
        MigrationOptions(repository.folder, load_settings, branch=branch, cache=False, evaluate=False), engine=engine
    )


@pytest.fixture
def many_rules(repository: Repository) -> Repository:
    """Break sites of five rules in three files."""
    shutil.copytree(EXAMPLE, repository.folder / "tiny_model", ignore=shutil.ignore_patterns("__pycache__"))
    repository.commit()
    return repository


def test_the_commits_are_those_of_rules_that_read_the_project_anew(many_rules: Repository) -> None:
    anew = migrated(many_rules, "anew", Engine())
    once = migrated(many_rules, "once", reading_once())
    assert len({commit.rule.code for commit in once.commits}) == 5
    for shown in ("%T", "%B"):
        log = [many_rules.git("log", "--reverse", f"--format={shown}", f"main..{name}") for name in ("anew", "once")]
        assert log[0] == log[1]
    assert (anew.remaining, anew.problems, anew.files) == (once.remaining, once.problems, once.files)


def test_a_file_is_analysed_again_only_when_it_has_changed(
    many_rules: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed: list[str] = []

    def counted(task: Task, *rest: object) -> Analysed:
        analysed.append(task.path)
        return analyse(task, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "analyse", counted)
    once = migrated(many_rules, "once", reading_once())
    changes = sum(len(commit.files) for commit in once.commits)
    assert len(analysed) <= len(set(analysed)) + changes


@pytest.mark.parametrize("first", [True, False], ids=["before its first fix", "after its first fix"])
def test_a_file_that_something_else_changes_meanwhile_is_left_as_it_was_known(
    repository: Repository, first: bool
) -> None:
    repository.write("second.py", BROKEN)
    repository.commit()
    engine = reading_once()
    calls = 0

    def meddling_fix(
        paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int, cache: bool, vetoes: Sequence[Veto]
    ) -> api.FixResult:
        nonlocal calls
        calls += 1
        if first or calls == 2:
            with (settings.root / "second.py").open("a") as file:
                file.write("# meddled\n")
        return engine.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes)

    outcome = migrated(repository, "mend", replace(engine, fix=meddling_fix))
    assert "meddled" not in repository.git("show", "mend:second.py")
    assert "torch.where" in repository.git("show", "mend:zoo/model.py")
    assert any(
        problem.path == "second.py" and "was changed by another" in problem.message for problem in outcome.problems
    )


def test_a_file_that_fails_the_proof_over_concrete_trees_is_left_alone_and_said(
    many_rules: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def proof(before: SourceFile, after: SourceFile, edits: Sequence[Edit]) -> None:
        if before.path.endswith("layers.py"):
            raise RewriteError("the comment `# x` would be lost")
        verify_concrete(before, after, edits)

    monkeypatch.setattr(shared_session, "verify_concrete", proof)
    done = migrated(many_rules, "once", reading_once())
    changed = many_rules.git("diff", "--name-only", "main..once").split()
    assert changed
    assert "tiny_model/layers.py" not in changed
    told = {str(problem) for problem in done.problems}
    assert told == {
        "tiny_model/layers.py: is skipped because its fix cannot be verified: the comment `# x` would be lost; "
        "please report it"
    }
    assert any(finding.path == "tiny_model/layers.py" for finding in done.remaining)
