"""A migration of a project whose helpers stand once: in which commit, with what, and without what was reverted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.evaluation.port import Culprit, Measured, RecordedModel, Sites, Trees, Wanted
from graphmend_codemod.migrate.migration import MigrationOptions, migrate
from tests.repository.tools import BROKEN, Repository, untouched

_ROWS = """\
import torch
from torch import nn


class {name}(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        {statements}
"""
_WRITTEN = "y = torch.zeros_like(x)\n        y[mask] = torch.relu(x[mask]) * 2\n        return y"
_MEAN = "return torch.relu(x)[mask].mean()"
_HELPERS = "zoo/_helpers.py"


@pytest.fixture
def repository(repository: Repository) -> Repository:
    repository.write("pyproject.toml", f'[tool.graphmend]\nhelpers = "{_HELPERS}"\ntarget-torch = "2.13"\n')
    repository.write(_HELPERS, "")
    repository.write("zoo/__init__.py", "from . import mean, model, written\n")
    repository.write("zoo/written.py", _ROWS.format(name="Written", statements=_WRITTEN))
    repository.write("zoo/mean.py", _ROWS.format(name="Mean", statements=_MEAN))
    repository.commit()
    return repository


def names(repository: Repository, commit: str) -> list[str]:
    lines = repository.git("show", f"{commit}:{_HELPERS}").splitlines()
    return [line.partition("def ")[2].partition("(")[0] for line in lines if line.startswith("def ")]


def commits_of(repository: Repository, path: str) -> list[str]:
    return repository.git("log", "--format=%s", "main..mend", "--", path).splitlines()


class Judge:
    """Finds that the fix of one file makes a model wrong, once, and looks at the trees as the evaluation does."""

    def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
        self._trees = trees
        self.changed: list[Sequence[str]] = []

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        assert _HELPERS in changed
        assert self._trees.helpers == _HELPERS
        assert "def _rows_under" in (self._trees.head / _HELPERS).read_text()
        wrong = [each for each in sites.fixed if each.path == "zoo/mean.py"]
        return Measured(
            culprits=tuple(Culprit(each.path, each.span.start_line, each.span.end_line, "wrong") for each in wrong)
        )

    def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        return ()

    def finish(self, measured: Measured) -> Measured:
        return measured


def test_the_first_commit_that_needs_helpers_brings_them_all(repository: Repository) -> None:
    request = MigrationOptions(repository.folder, load_settings, branch="mend", evaluate=False)
    with untouched(repository, but="mend"):
        outcome = migrate(request)
    assert outcome.problems == ()
    assert names(repository, "main") == []
    assert set(names(repository, "mend")) == {"_rows_under", "_write_under", "_mean_under"}
    (subject,) = commits_of(repository, _HELPERS)
    assert [commit.subject for commit in outcome.commits if _HELPERS in commit.files] == [subject]
    for commit in reversed(outcome.commits):  # each commit can be imported
        repository.git("checkout", "--quiet", str(commit.oid))
        code = "import zoo.written, zoo.mean, zoo.model"
        subprocess.run([sys.executable, "-B", "-c", code], cwd=repository.folder, check=True)


def test_what_only_a_reverted_fix_needed_is_left_out(repository: Repository) -> None:
    wanted = Wanted(named=("zoo.factories:make",))
    request = MigrationOptions(repository.folder, load_settings, branch="mend", wanted=wanted)
    repository.write("zoo/factories.py", "def make():\n    raise ValueError\n")
    repository.commit()
    outcome = migrate(request, measure=Judge)
    assert [each.finding.path for each in outcome.taken_back] == ["zoo/mean.py"]
    assert set(names(repository, "mend")) == {"_rows_under", "_write_under"}
    assert "zoo/mean.py" not in {path for commit in outcome.commits for path in commit.files}


def test_without_a_file_that_imports_it_the_module_stays_as_it_was(repository: Repository) -> None:
    for path in ("zoo/written.py", "zoo/mean.py"):
        repository.write(path, BROKEN)
    repository.commit()
    outcome = migrate(MigrationOptions(repository.folder, load_settings, branch="mend", evaluate=False))
    assert outcome.commits
    assert commits_of(repository, _HELPERS) == []
