"""The installed transformers package as a git repository, migrated, with a folder of files for each arm."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import git

BRANCH = "graphmend/paper"
_MARK = ".graphmend-paper"


class PrepareError(Exception):
    """The arms cannot be made. The text is one line: what, why, way out."""


@dataclass(frozen=True)
class Arms:
    """Two folders: the package as it is installed, and as it is after the migration."""

    before: Path
    after: Path
    repository: Path
    changed: bool


def new_folder(folder: Path) -> Path:
    """An empty work folder; one that this function made earlier is emptied.

    Raises `PrepareError` for a folder that holds anything else.
    """
    if folder.exists():
        if any(folder.iterdir()) and not (folder / _MARK).is_file():
            raise PrepareError(f"{folder} is not empty and not ours: pass another folder with --work")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / _MARK).write_text("Made by graphmend_evaluation.paper, which deletes this folder when it runs again.\n")
    (folder / ".gitignore").write_text("*\n")
    return folder.resolve()


def copy_installed(package: str, folder: Path) -> git.Repo:
    """A new repository in `folder` with the installed `package` as its first commit.

    Raises `PrepareError` when it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise PrepareError(
            f"{package} is not installed; install graphmend with its extra `eval`: pip install '.[eval]' in a checkout"
        )
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(Path(spec.origin).parent, folder / package, ignore=ignored)
    repository = git.Repo.init(folder, initial_branch="main")
    with repository.config_writer() as settings:
        settings.set_value("user", "name", "graphmend")
        settings.set_value("user", "email", "graphmend@localhost")
        settings.set_value("commit", "gpgsign", "false")
        settings.set_value("core", "hooksPath", str(folder / ".git" / "no-hooks"))
        settings.set_value("core", "autocrlf", "false")
        settings.set_value("gc", "auto", "0")
    repository.git.add(".")
    repository.git.commit("--quiet", "--message", f"{package} {importlib.metadata.version(package)} as installed")
    return repository


def migrate(repository: git.Repo, options: Sequence[str] = ()) -> tuple[bool, str]:
    """Run `graphmend migrate` on it as a user does, with these options. Whether it made a branch, and what it printed.

    Raises `PrepareError` when it could not.
    """
    command = [sys.executable, "-m", "graphmend_codemod", "migrate", str(repository.working_dir)]
    done = subprocess.run(
        [*command, "--branch", BRANCH, "--no-evaluate", *options], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise PrepareError(f"graphmend migrate ended with exit code {done.returncode}; see its message above")
    return any(head.name == BRANCH for head in repository.heads), done.stdout


def check_out(repository: git.Repo, folder: Path, *, changed: bool, head: str = BRANCH) -> Arms:
    """Both arms as worktrees: no edit of one can reach the other."""
    base = repository.head.commit.hexsha
    before, after = folder / "before", folder / "after"
    repository.git.worktree("add", "--quiet", "--detach", str(before), base)
    repository.git.worktree("add", "--quiet", "--detach", str(after), head if changed else base)
    return Arms(before, after, Path(repository.working_dir), changed)
