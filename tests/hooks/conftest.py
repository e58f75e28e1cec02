"""Real git repositories with one commit, kept away from the user's own git settings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
Git = Callable[..., "subprocess.CompletedProcess[str]"]

BEFORE = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x):
        logger.info(f"got {x.shape[0]} rows")
        return x
"""
AFTER = BEFORE.replace(
    '        logger.info(f"got {x.shape[0]} rows")\n',
    '        if not torch.compiler.is_compiling():\n            logger.info(f"got {x.shape[0]} rows")\n',
)


@pytest.fixture
def before() -> str:
    """A model as its author wrote it."""
    return BEFORE


@pytest.fixture
def after() -> str:
    """The model after `graphmend fix`."""
    return AFTER


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit; the current folder."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (tmp_path / "gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    (folder / "README").write_text("models\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], check=True)
    return folder


@pytest.fixture
def git(repository: Path) -> Git:
    """Runs git in the repository and hands back what it said, without judging the exit code."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def graphmend(monkeypatch: pytest.MonkeyPatch) -> str:
    """A command line that runs this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    return f"{sys.executable} -m graphmend_codemod"
