"""Two work trees to measure: folders as they are, or commits of a repository, checked out for the time being."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.git import RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import temporary_folder, worktree


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
    with without_git_environment(), contextlib.ExitStack() as stack:
        try:
            checkout = open_checkout(repository)
            commit = resolve_commit(checkout, name)
            tree = stack.enter_context(worktree(checkout, commit, stack.enter_context(temporary_folder())))
        except RepositoryError as error:
            raise CheckoutError(f"{name} is neither a folder nor a commit that can be checked out: {error}") from error
        yield tree.root
