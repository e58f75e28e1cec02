"""Which files of a repository can matter to what reads and fixes code, and no others: only these are fetched."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from graphmend_codemod.core.settings import named_trace
from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.repository.git import Git, GitFailed
from graphmend_codemod.repository.worktree import is_source

_READ_BY_GIT = frozenset({".gitattributes", ".gitmodules"})
SPARSE = ("*.py", "*.pyi", "pyproject.toml", "setup.cfg", "requirements*.txt", "requirements/*.txt")
"""The files of `is_source`, as `info/sparse-checkout` names them."""

_MOST_SETTINGS = 50
_OLDEST_GIT = (2, 36)  # the first whose `worktree add` hands the sparse checkout on


def source_entries(git: Git, commit: str) -> Iterator[tuple[str, str]]:
    """Path and id of each regular file of a commit that can matter. Raises `ForgeError` for a path that leads away."""
    for mode, oid, path in _entries(git, commit):
        if not mode.startswith("100") or not is_source(path):
            continue
        if {"", ".", "..", ".git"} & set(path.lower().split("/")):
            raise ForgeError(f"{path!r}: is no path that git allows; the repository is left alone")
        yield path, oid


def checked_out(git: Git, commit: str) -> frozenset[str]:
    """Ids of all that a sparse checkout of a commit needs.

    Links too, what is in folders with names of files, and what git reads even where it is not checked out.
    """
    return frozenset(
        oid
        for mode, oid, path in _entries(git, commit)
        if mode.startswith(("100", "120"))
        and (path.rpartition("/")[2] in _READ_BY_GIT or any(is_source(one) for one in _with_parents(path)))
    )


def recorded_runs(git: Git, commit: str, scratch: Path) -> frozenset[str]:
    """Ids of the recorded runs that settings in a commit name, which decide what is fixed. `scratch` is a folder."""
    files = {path: oid for mode, oid, path in _entries(git, commit) if mode.startswith("100")}
    found = set()
    for path in [path for path in files if posixpath.basename(path) == "pyproject.toml"][:_MOST_SETTINGS]:
        copy = scratch / "settings.toml"
        copy.write_bytes(git.output("cat-file", "blob", files[path]))
        named = named_trace(copy)
        if named is not None:
            found.add(files.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), named))))
    return frozenset(oid for oid in found if oid is not None)


def _entries(git: Git, commit: str) -> Iterator[tuple[str, str, str]]:
    """Mode, id and path."""
    for line in git.output("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, _, oid = facts.decode("ascii").split()
            yield mode, oid, os.fsdecode(name)


def _with_parents(path: str) -> Iterator[str]:
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def left_out(git: Git, commit: str) -> frozenset[str]:
    """Ids of the commit's objects that were not fetched. Nothing is fetched to find out."""
    listing = git.text("rev-list", "--objects", "--missing=print", "--no-walk", commit, "--")
    return frozenset(line[1:] for line in listing.splitlines() if line.startswith("?"))


def can_leave_out(git: Git) -> bool:
    """Whether this git can check out and commit without the files that were not fetched."""
    try:
        numbers = git.text("version").split()[2].split(".")
        return (int(numbers[0]), int(numbers[1])) >= _OLDEST_GIT
    except (GitFailed, IndexError, ValueError):
        return False
