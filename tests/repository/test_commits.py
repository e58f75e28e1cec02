"""Commits and the branch that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_codemod.repository.checkout import Checkout, open_checkout, resolve_commit
from graphmend_codemod.repository.commits import Changes, create_branch, require_new_branch, write_commits
from graphmend_codemod.repository.git import RepositoryError
from graphmend_codemod.repository.worktree import Worktree, temporary_folder, worktree
from tests.repository.tools import Repository, broken_repository, untouched


@pytest.fixture
def checkout(repository: Repository) -> Checkout:
    return open_checkout(repository.folder)


@pytest.fixture
def tree(checkout: Checkout) -> Iterator[Worktree]:
    with temporary_folder() as folder, worktree(checkout, resolve_commit(checkout, "HEAD"), folder) as tree:
        yield tree


def test_commits_hold_exactly_the_given_bytes_and_keep_modes(tmp_path: Path) -> None:
    repository = broken_repository(tmp_path / "modes")
    repository.write("tool.py", "#!/usr/bin/env python\n").chmod(0o755)
    repository.write("new\nline.py", "a = 1\n")
    repository.commit()
    checkout = open_checkout(repository.folder)
    with (
        untouched(repository, but="new"),
        temporary_folder() as folder,
        worktree(checkout, resolve_commit(checkout, "HEAD"), folder) as tree,
    ):
        oids = write_commits(
            tree,
            [
                Changes("First\n", {"tool.py": b"a\r\nb\n", "new\nline.py": b"\xff"}),
                Changes("Second: \N{LATIN SMALL LETTER E WITH ACUTE}\n\n# body\n", {"tool.py": b""}),
            ],
        )
        create_branch(checkout, "new", oids[-1])
    assert repository.subjects("new") == ["First", "Second: \N{LATIN SMALL LETTER E WITH ACUTE}"]
    assert repository.git("log", "-1", "--format=%b", "new") == "# body\n"
    assert repository.show("new~1:tool.py") == b"a\r\nb\n"
    assert repository.show("new~1:new\nline.py") == b"\xff"
    assert repository.show("new:tool.py") == b""
    assert repository.git("ls-tree", "new", "tool.py").startswith("100755 ")
    assert repository.git("diff", "--name-only", "-z", "HEAD", "new") == "new\nline.py\0tool.py\0"
    assert repository.git("rev-parse", "new~2") == repository.git("rev-parse", "HEAD")


def test_author_is_the_configured_one(repository: Repository, checkout: Checkout, tree: Worktree) -> None:
    repository.git("config", "commit.gpgSign", "true")
    repository.git("config", "gpg.program", "false")
    (oid,) = write_commits(tree, [Changes("First\n", {"zoo/clean.py": b""})])
    assert repository.git("show", "--no-patch", "--format=%an %ae %cn %ce", oid) == (
        "A U Thor author@example.org A U Thor author@example.org"
    )


def test_commits_alone_make_no_branch(repository: Repository) -> None:
    checkout = open_checkout(repository.folder)
    with (
        untouched(repository),
        temporary_folder() as folder,
        worktree(checkout, resolve_commit(checkout, "HEAD"), folder) as tree,
    ):
        write_commits(tree, [Changes("First\n", {"zoo/clean.py": b""})])


@pytest.mark.parametrize("name", ["-x", "--force", "a b", "a..b", "a.lock", "", "x/", "@{-1}", "a\nb", "HEAD"])
def test_names_that_git_does_not_allow_are_refused(checkout: Checkout, name: str) -> None:
    with pytest.raises(RepositoryError, match="not a name that git allows for a branch"):
        require_new_branch(checkout, name)


def test_an_existing_branch_is_refused_and_left_alone(repository: Repository, checkout: Checkout) -> None:
    repository.git("branch", "taken")
    head = repository.git("rev-parse", "HEAD")
    with pytest.raises(RepositoryError, match="branch taken exists already; choose another with --branch, or delete"):
        require_new_branch(checkout, "taken")
    with pytest.raises(RepositoryError, match="branch taken exists already"):
        create_branch(checkout, "taken", head)


@pytest.mark.parametrize(("taken", "wanted"), [("graphmend", "graphmend/new"), ("a/b/c", "a/b")])
def test_a_branch_that_cannot_stand_beside_another_is_refused(
    repository: Repository, checkout: Checkout, taken: str, wanted: str
) -> None:
    repository.git("branch", taken)
    with pytest.raises(RepositoryError, match=f"branch {wanted} cannot be created because branch {taken} exists"):
        require_new_branch(checkout, wanted)
