"""Two work trees to measure: folders as they are, or commits of a repository, checked out for the time being."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import git


class CheckoutError(Exception):
    """A work tree that cannot be had. The text is one line: what, why, way out."""


@contextlib.contextmanager
def checkouts(repository: Path, *names: str) -> Iterator[tuple[Path, ...]]:
    """A folder for each of `names`. A name that is a folder is used as it is; others are commits of `repository`.

    The commits' work trees are removed at the end. Raises `CheckoutError` for a name that is neither.
    """
    with contextlib.ExitStack() as stack:
        yield tuple(
            Path(name).resolve() if Path(name).is_dir() else stack.enter_context(_work_tree(repository, name))
            for name in names
        )


@contextlib.contextmanager
def _work_tree(repository: Path, name: str) -> Iterator[Path]:
    try:
        found = git.Repo(repository, search_parent_directories=True)
        commit = found.commit(name).hexsha
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise CheckoutError(f"{name} is no folder, and {repository} no git repository to look it up in") from None
    except (git.BadName, ValueError):
        raise CheckoutError(f"{name} is neither a folder nor a commit of {repository.resolve()}") from None
    with tempfile.TemporaryDirectory(prefix="graphmend-") as folder:
        place = Path(folder) / "tree"
        found.git.worktree("add", "--quiet", "--detach", str(place), commit)
        try:
            yield place.resolve()
        finally:
            found.git.worktree("remove", "--force", str(place))
