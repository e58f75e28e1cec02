"""What is asked of the user's repository."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from graphmend_codemod.repository.checkout import open_checkout, remarks, require_identity, resolve_commit
from graphmend_codemod.repository.git import RepositoryError
from tests.repository.tools import Repository, empty_repository, isolate, untouched


def test_a_subfolder_leads_to_its_repository(repository: Repository) -> None:
    checkout = open_checkout(repository.folder / "zoo")
    assert checkout.top == repository.folder
    assert checkout.inside == PurePosixPath("zoo")
    assert checkout.common == repository.folder / ".git"
    assert checkout.name == "mymodels"


def test_a_linked_work_tree_shares_its_git_directory(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    checkout = open_checkout(tmp_path / "linked")
    assert checkout.top == tmp_path / "linked"
    assert checkout.common == repository.folder / ".git"


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    repository = empty_repository(tmp_path / "mirror.git", "--bare")
    checkout = open_checkout(repository.folder)
    assert (checkout.top, checkout.common, checkout.name) == (None, repository.folder, "mirror")


def test_the_git_directory_itself_is_taken_for_a_repository_without_work_tree(repository: Repository) -> None:
    checkout = open_checkout(repository.folder / ".git")
    assert (checkout.top, checkout.name) == (None, "mymodels")


@pytest.mark.parametrize(
    ("name", "cause"), [("plain", "not a git repository"), ("nowhere", "does not exist"), ("file", "is not a folder")]
)
def test_what_is_no_repository_is_named_with_the_way_out(tmp_path: Path, name: str, cause: str) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(RepositoryError, match=cause) as caught:
        open_checkout(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_of_somebody_else_names_the_setting_that_trusts_it(repository: Repository) -> None:
    os.chown(repository.folder, 12345, -1)
    with pytest.raises(RepositoryError, match=r"git config --global --add safe.directory") as caught:
        open_checkout(repository.folder)
    assert str(repository.folder) in str(caught.value)


def test_a_commit_is_known_by_branch_tag_and_id(repository: Repository) -> None:
    oid = repository.git("rev-parse", "HEAD")
    repository.git("tag", "-a", "-m", "first", "v1")
    checkout = open_checkout(repository.folder)
    assert str(resolve_commit(checkout, "HEAD")) == f"main ({oid[:12]})"
    assert str(resolve_commit(checkout, "v1")) == f"v1 ({oid[:12]})"
    assert str(resolve_commit(checkout, oid[:7])) == oid[:12]
    repository.git("checkout", "--quiet", "--detach")
    assert str(resolve_commit(checkout, "HEAD")) == f"HEAD ({oid[:12]})"


@pytest.mark.parametrize("name", ["nothing", "--help", "HEAD:zoo", "HEAD~9", "", "a..b"])
def test_what_is_no_commit_is_refused(repository: Repository, name: str) -> None:
    with pytest.raises(RepositoryError, match="no commit is called"):
        resolve_commit(open_checkout(repository.folder), name)


def test_an_unborn_branch_has_nothing_to_start_from(tmp_path: Path) -> None:
    repository = empty_repository(tmp_path / "new")
    with pytest.raises(RepositoryError, match="no commit at HEAD yet; commit your files first"):
        resolve_commit(open_checkout(repository.folder), "HEAD")


def test_a_missing_identity_names_the_two_commands(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch, tmp_path, identity=False)
    checkout = open_checkout(repository.folder)
    with pytest.raises(RepositoryError, match=r"`git config user.name NAME` and `git config user.email ADDRESS`"):
        require_identity(checkout)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "B")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "b@example.org")
    require_identity(checkout)


def test_remarks_name_what_is_left_out_and_change_nothing(repository: Repository) -> None:
    checkout = open_checkout(repository.folder)
    commit = resolve_commit(checkout, "HEAD")
    assert remarks(checkout, commit) == ()
    repository.write("zoo/new.py", "")
    repository.write("zoo/clean.py", "changed = 1\n")
    with untouched(repository):
        assert remarks(checkout, commit) == ("uncommitted changes in 2 files are not included; they stay as they are",)


def test_asking_for_the_state_does_not_refresh_the_index(repository: Repository) -> None:
    file = repository.folder / "zoo/clean.py"
    file.write_bytes(file.read_bytes())
    checkout = open_checkout(repository.folder)
    with untouched(repository):
        assert remarks(checkout, resolve_commit(checkout, "HEAD")) == ()
