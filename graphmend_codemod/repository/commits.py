"""Commits on a new branch, written with git's plumbing: no hook runs, nothing is converted, no checkout is involved."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.repository.checkout import Checkout
from graphmend_codemod.repository.git import Git, GitFailed, RepositoryError
from graphmend_codemod.repository.worktree import Worktree


@dataclass(frozen=True)
class Changes:
    """One commit to be: its message, and the new bytes of each changed file."""

    message: str
    files: Mapping[str, bytes]


def is_branch_name(git: Git, name: str) -> bool:
    """True for a name that `git branch` would take: `HEAD` may be a reference, and no branch."""
    if name.startswith("-") or not git.succeeds("check-ref-format", f"refs/heads/{name}"):
        return False
    return git.succeeds("check-ref-format", "--branch", name)


def require_new_branch(checkout: Checkout, name: str) -> None:
    """Raise `RepositoryError` when a branch cannot be made by this name."""
    git = checkout.git
    if not is_branch_name(git, name):
        raise RepositoryError(f"{name!r} is not a name that git allows for a branch; choose another with --branch")
    if git.succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{name}"):
        raise RepositoryError(
            f"branch {name} exists already; choose another with --branch, or delete it with `git branch -D {name}`"
        )
    parts = name.split("/")
    parents = ["/".join(parts[:count]) for count in range(1, len(parts))]
    blocking = [parent for parent in parents if git.succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{parent}")]
    blocking += git.text("for-each-ref", "--format=%(refname:short)", f"refs/heads/{name}/").splitlines()
    if blocking:
        raise RepositoryError(
            f"branch {name} cannot be created because branch {blocking[0]} exists; choose another name with --branch"
        )


def write_commits(worktree: Worktree, series: Sequence[Changes]) -> tuple[str, ...]:
    """Write one commit for each of `series`, from the commit of `worktree` on; nothing refers to them yet.

    File modes stay as they are. The index of `worktree` follows, its files are not touched. Returns the commits' ids.
    """
    git, parent, written = worktree.git, worktree.commit.oid, []
    for changes in series:
        blobs = _write_blobs(git, worktree.root.parent, list(changes.files.values()))
        lines = [
            f"{worktree.entries[path].mode} {blob}\t".encode("ascii") + os.fsencode(path) + b"\0"
            for path, blob in zip(changes.files, blobs, strict=True)
        ]
        git.output("update-index", "-z", "--index-info", stdin=b"".join(lines))
        tree = git.text("write-tree")
        parent = git.text("commit-tree", tree, "-p", parent, "-F", "-", stdin=changes.message.encode())
        written.append(parent)
    return tuple(written)


def create_branch(checkout: Checkout, name: str, commit: str) -> None:
    """Make branch `name` at `commit`, in one atomic step.

    Raises `RepositoryError` when it exists, also when another run was faster by a moment.
    """
    nothing = "0" * len(commit)
    try:
        checkout.git.output("update-ref", "-m", "graphmend migrate", f"refs/heads/{name}", commit, nothing)
    except GitFailed as error:
        require_new_branch(checkout, name)
        raise RepositoryError(f"branch {name} cannot be created: {error.detail}") from error


def _write_blobs(git: Git, beside: Path, contents: Sequence[bytes]) -> list[str]:
    # In the folder of the run, which the next run removes if this one is killed.
    with tempfile.TemporaryDirectory(dir=beside, prefix="blobs-") as folder:
        paths = []
        for number, data in enumerate(contents):
            path = Path(folder, str(number))
            path.write_bytes(data)
            paths.append(str(path))
        listing = "".join(f"{path}\n" for path in paths)
        return git.text("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(listing)).splitlines()
