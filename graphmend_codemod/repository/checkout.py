"""The user's repository: where it is, what it stands at, and who commits. Only asked, never changed."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from graphmend_codemod.repository.git import Git, GitFailed, RepositoryError

SPARSE = "sparse checkout: only the files in its cone are migrated"
"""A remark."""

_IN_PROGRESS = (
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
)


@dataclass(frozen=True)
class Checkout:
    """A repository as it was named: `top` is None when there is no work tree, `inside` is the folder below `top`."""

    git: Git
    top: Path | None
    common: Path
    inside: PurePosixPath

    @property
    def name(self) -> str:
        """What people call the repository."""
        folder = self.top or self.common
        return folder.name.removesuffix(".git") or folder.parent.name


@dataclass(frozen=True)
class Commit:
    """A commit, and the name by which it was asked for."""

    oid: str
    name: str

    def __str__(self) -> str:
        short = self.oid[:12]
        return short if self.oid.startswith(self.name) else f"{self.name} ({short})"


def open_checkout(folder: Path) -> Checkout:
    """The repository that `folder` belongs to, bare ones included.

    Raises `RepositoryError` when there is none or git refuses it.
    """
    if not folder.is_dir():
        cause = "is not a folder" if folder.exists() else "does not exist"
        raise RepositoryError(f"{folder}: {cause}; name the folder of a git repository")
    git = Git(folder.resolve())
    try:
        common = Path(git.folder, git.text("rev-parse", "--git-common-dir")).resolve()
    except GitFailed as error:
        if "not a git repository" in error.detail:
            raise RepositoryError(
                f"{folder}: not a git repository; run `git init` and commit, or use `graphmend fix`"
            ) from error
        if "dubious ownership" in error.detail:
            raise RepositoryError(
                f"{folder}: belongs to another user; if you trust it, run "
                f"`git config --global --add safe.directory {shlex.quote(str(folder.resolve()))}`"
            ) from error
        raise RepositoryError(f"{folder}: {error.detail}") from error
    if git.text("rev-parse", "--is-inside-work-tree") != "true":
        return Checkout(Git(common), None, common, PurePosixPath())
    inside = PurePosixPath(git.text("rev-parse", "--show-prefix"))
    top = Path(git.text("rev-parse", "--show-toplevel"))
    return Checkout(Git(top), top, common, inside)


def resolve_commit(checkout: Checkout, name: str) -> Commit:
    """The commit that a branch, tag or other revision means.

    Raises `RepositoryError` when there is no such commit, or no commit at all.
    """
    git = checkout.git
    missing = RepositoryError(f"no commit is called {name!r} in {checkout.name}; name a branch, a tag or a commit")
    if name.startswith("-"):
        raise missing
    try:
        oid = git.text("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except GitFailed as error:
        if name == "HEAD":
            raise RepositoryError(
                f"{checkout.name} has no commit at HEAD yet; commit your files first, or name one with --base"
            ) from error
        raise missing from error
    if name != "HEAD":
        return Commit(oid, name)
    current = git.text("symbolic-ref", "--short", "HEAD") if git.succeeds("symbolic-ref", "--quiet", "HEAD") else "HEAD"
    return Commit(oid, current)


def require_identity(checkout: Checkout) -> None:
    """Raise `RepositoryError` with the way out when git does not know who commits."""
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            checkout.git.text("-c", "user.useConfigOnly=true", "var", variable)
        except GitFailed as error:
            raise RepositoryError(
                "git does not know who commits; run `git config user.name NAME` and `git config user.email ADDRESS`"
            ) from error


def remarks(checkout: Checkout, commit: Commit) -> tuple[str, ...]:
    """What a user may not expect of a migration that starts from `commit`, one line each."""
    found = []
    changed = _uncommitted(checkout)
    if changed:
        files = "1 file" if changed == 1 else f"{changed} files"
        found.append(f"uncommitted changes in {files} are not included; they stay as they are")
    folder = os.path.join(checkout.git.folder, checkout.git.text("rev-parse", "--git-dir"))
    under_way = [what for entry, what in _IN_PROGRESS if os.path.exists(os.path.join(folder, entry))]
    if under_way:
        found.append(f"{under_way[0]} is in progress; the migration starts from {commit} and leaves it alone")
    if checkout.git.text("config", "--get", "--bool", "--default", "false", "core.sparseCheckout") == "true":
        found.append(SPARSE)
    return tuple(found)


def _uncommitted(checkout: Checkout) -> int:
    if checkout.top is None:
        return 0
    status = checkout.git.output("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty")
    return status.count(b"\0")
