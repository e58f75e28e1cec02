"""`hooks/pre-commit` in real repositories."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_codemod.trace import document
from graphmend_codemod.trace.collect import Collector

HOOK = Path(__file__).parent.parent.parent / "hooks" / "pre-commit"
Git = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def hook(repository: Path, git: Git, graphmend: str) -> None:
    """Installs the hook the way its own text says."""
    shutil.copy(HOOK, repository / ".git" / "hooks" / "pre-commit")
    git("config", "graphmend.command", graphmend)


def head(git: Git) -> str:
    return git("log", "-1", "--format=%s").stdout.strip()


def test_a_staged_file_is_fixed_and_the_commit_stops_until_it_is_staged_again(
    repository: Path, git: Git, before: str, after: str
) -> None:
    model = repository / "deep" / "my model.py"
    model.parent.mkdir()
    model.write_text(before)
    git("add", ".")
    refused = git("commit", "-m", "Add a model")
    assert refused.returncode != 0
    assert "deep/my model.py: GM201" in refused.stdout + refused.stderr
    assert "graphmend changed files: look at them, stage them with git add" in refused.stderr
    assert model.read_text() == after
    assert head(git) == "Begin"

    git("add", ".")
    accepted = git("commit", "-m", "Add a model")
    assert accepted.returncode == 0, accepted.stderr
    assert head(git) == "Add a model"


def test_a_half_staged_file_is_checked_as_staged_and_not_touched(repository: Path, git: Git, before: str) -> None:
    (repository / "model.py").write_text(before)
    git("add", ".")
    in_work = before + "\n# still working on this\n"
    (repository / "model.py").write_text(in_work)
    refused = git("commit", "-m", "Add a model")
    assert refused.returncode != 0
    assert "model.py:11:9: GM201" in refused.stdout + refused.stderr
    assert (repository / "model.py").read_text() == in_work
    assert git("show", ":model.py").stdout == before


def test_a_half_staged_file_that_broke_nothing_in_the_recorded_run_stops_no_commit(
    repository: Path, git: Git, before: str
) -> None:
    (repository / "pyproject.toml").write_text('[tool.graphmend]\ntrace = "trace.json"\n')
    (repository / "trace.json").write_text(document.as_json(Collector(repository).trace("train.py")))
    (repository / "model.py").write_text(before)
    git("add", ".")
    (repository / "model.py").write_text(before + "\n# still working on this\n")
    accepted = git("commit", "-m", "Add a model")
    assert accepted.returncode == 0, accepted.stderr
    assert head(git) == "Add a model"


def test_unstaged_and_untracked_files_are_left_alone(repository: Path, git: Git, before: str) -> None:
    (repository / "untracked.py").write_text(before)
    (repository / "README").write_text("more models\n")
    git("add", "README")
    assert git("commit", "-m", "Say more").returncode == 0
    assert (repository / "untracked.py").read_text() == before


def test_a_commit_that_deletes_or_renames_passes(repository: Path, git: Git, after: str) -> None:
    (repository / "old name.py").write_text(after)
    (repository / "gone.py").write_text("x = 1\n")
    git("add", ".")
    assert git("commit", "-m", "Add").returncode == 0
    git("mv", "old name.py", "-name.py")
    git("rm", "-q", "gone.py")
    moved = git("commit", "-m", "Move")
    assert moved.returncode == 0, moved.stderr


def test_a_file_that_cannot_be_parsed_stops_the_commit(repository: Path, git: Git) -> None:
    (repository / "broken.py").write_text("import torch\nclass Model(torch.nn.Module:\n")
    git("add", ".")
    refused = git("commit", "-m", "Add")
    assert refused.returncode != 0
    assert "graphmend: error: broken.py:2: cannot be parsed" in refused.stderr


def test_the_hook_works_in_a_linked_worktree(repository: Path, git: Git, before: str, after: str) -> None:
    git("worktree", "add", "-q", "../linked")
    linked = repository.parent / "linked"
    (linked / "model.py").write_text(before)
    for arguments in (["add", "."], ["commit", "-m", "Add"]):
        done = subprocess.run(["git", *arguments], cwd=linked, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (linked / "model.py").read_text() == after


def test_a_half_staged_file_whose_name_looks_like_an_option_is_checked(repository: Path, git: Git, before: str) -> None:
    (repository / "-x.py").write_text(before)
    git("add", ".")
    (repository / "-x.py").write_text(before + "\n# still working on this\n")
    refused = git("commit", "-m", "Add a model")
    assert refused.returncode != 0
    assert "-x.py:11:9: GM201" in refused.stdout + refused.stderr


def test_a_staged_link_does_not_lead_into_unstaged_work(repository: Path, git: Git, before: str) -> None:
    (repository / "model.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-m", "Add a module")
    (repository / "model.py").write_text(before)
    (repository / "link.py").symlink_to("model.py")
    git("add", "link.py")
    git("commit", "-m", "Add a link")
    assert head(git) == "Add a link"
    assert (repository / "model.py").read_text() == before
