"""Real git repositories, and the proof that nothing of the user's changed in one."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.report_folder import report_folder

CHECKOUT = Path(__file__).parent.parent.parent
BROKEN = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("slow path")
        y = self.linear(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return y
"""
COMMAND = (sys.executable, "-m", "graphmend_codemod", "migrate")
CLEAN = "from torch import nn\n\n\nclass Clean(nn.Module):\n    def forward(self, x):\n        return x + 1\n"


def default_branch() -> str:
    """The branch that a migration of today writes: asked anew by each test, since a run may cross midnight."""
    return f"graphmend/{datetime.date.today().isoformat()}"


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path, *, identity: bool = True) -> None:
    """Keep git, temporary files and caches of a test in `folder`, away from the user's settings.

    Git's settings are in the home folder: a variable for them would give each test's measuring children another
    environment, and so a process of their own that imports torch.
    """
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    config = folder / ".gitconfig"
    who = "[user]\nname = A U Thor\nemail = author@example.org\n" if identity else ""
    # No process of `git maintenance` behind each commit and push, and nothing that is worth a wait for the disk.
    quick = "[gc]\nauto = 0\n[maintenance]\nauto = false\n[core]\nfsync = none\n"
    config.write_text(f'{who}{quick}[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n')
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    for name, value in (
        ("HOME", folder),
        ("TMPDIR", temporary),
        ("XDG_CACHE_HOME", folder / "cache"),
        ("XDG_CONFIG_HOME", folder / "config"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "evaluation"))))
    monkeypatch.delenv("EMAIL", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))


@dataclass(frozen=True)
class Repository:
    """A repository of a test; `folder` is its work tree, or itself if it is bare."""

    folder: Path

    def git(self, *arguments: str) -> str:
        """Output of a git command without its last newline."""
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(self.folder), *arguments],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        return os.fsdecode(done.stdout.removesuffix(b"\n"))

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file of the work tree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def show(self, name: str) -> bytes:
        """The bytes of an object, such as `main:model.py`."""
        command = ["git", "-C", str(self.folder), "cat-file", "blob", name]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def subjects(self, branch: str, base: str = "HEAD") -> list[str]:
        """Subjects of the commits that a branch adds, oldest first."""
        return self.git("log", "--reverse", "--format=%s", f"{base}..{branch}").splitlines()

    @property
    def common(self) -> Path:
        """The git directory that all work trees share."""
        return Path(self.folder, self.git("rev-parse", "--git-common-dir")).resolve()


def empty_repository(folder: Path, *options: str) -> Repository:
    """`git init`."""
    folder.mkdir(parents=True)
    repository = Repository(folder)
    repository.git("init", "--quiet", *options)
    return repository


def broken_repository(folder: Path, *options: str) -> Repository:
    """A repository with one commit: a model with a GM101 and a GM201 site, and one without any."""
    repository = empty_repository(folder, *options)
    repository.write("zoo/__init__.py", "")
    repository.write("zoo/model.py", BROKEN)
    repository.write("zoo/clean.py", CLEAN)
    repository.commit("Begin")
    return repository


@contextlib.contextmanager
def untouched(repository: Repository, *, but: str | None = None) -> Iterator[None]:
    """Nothing of the user's changes: files, index, HEAD, stash, settings, refs, work trees. Only branch `but` is new.

    Also on an exception. New objects and reports in the git directory are allowed, broken objects are not.
    """
    before = _state(repository)
    try:
        yield
    finally:
        after = _state(repository)
        if but is not None:
            assert f"refs/heads/{but}" in str(after.pop("refs"))
            before.pop("refs")
            for kind in ("refs", "logs/refs"):
                after.pop(f".git/{kind}/heads/{but}", None)
        assert after == before
        assert not list(Path(os.environ["TMPDIR"]).glob("graphmend-*"))
        repository.git("fsck", "--full", "--strict")


def _state(repository: Repository) -> dict[str, object]:
    state: dict[str, object] = {
        "status": repository.git("status", "--porcelain", "--ignored") if _has_work_tree(repository) else "",
        "stash": repository.git("stash", "list") if _has_work_tree(repository) else "",
        "worktrees": repository.git("worktree", "list", "--porcelain"),
        "refs": repository.git("for-each-ref"),
    }
    common = repository.common
    for file in sorted(common.rglob("*")):
        name = file.relative_to(common).as_posix()
        if file.is_file() and not name.startswith(("objects/", "graphmend/")):
            state[f".git/{name}"] = file.read_bytes()
    for file in sorted(repository.folder.rglob("*")):
        if not file.is_relative_to(common):
            told = file.lstat()
            content: object = os.readlink(file) if file.is_symlink() else file.is_file() and file.read_bytes()
            state[os.fspath(file)] = (told.st_mode, told.st_ino, content)
    return state


def _has_work_tree(repository: Repository) -> bool:
    return repository.git("rev-parse", "--is-inside-work-tree") == "true"


def run(repository: Repository, *options: str) -> int:
    """`graphmend migrate` in this process; its exit code."""
    return main(["migrate", str(repository.folder), "--jobs", "1", "--no-cache", *options])


def report_of(repository: Repository, branch: str | None = None) -> tuple[str, dict[str, Any]]:
    """The report's Markdown and JSON."""
    branch = branch or default_branch()
    folder = report_folder(repository.common, f"report-{branch.replace('/', '-')}")
    return (folder / "report.md").read_text(), json.loads((folder / "report.json").read_text())
