"""`graphmend migrate` on repositories in every state and with every setting: it works, or says why not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from tests.repository.tools import (
    BROKEN,
    CLEAN,
    COMMAND,
    Repository,
    broken_repository,
    default_branch,
    empty_repository,
    isolate,
    report_of,
    run,
    untouched,
)


def test_uncommitted_work_stays_byte_for_byte_and_is_not_included(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("zoo/clean.py", "stashed = 1\n")
    repository.git("stash", "--quiet")
    repository.write("zoo/staged.py", BROKEN)
    repository.git("add", "zoo/staged.py")
    repository.write("zoo/staged.py", BROKEN + "# and changed again\n")
    repository.write("zoo/model.py", BROKEN + "# edited\n")
    repository.write("untracked.py", BROKEN)
    (repository.folder / "zoo/clean.py").unlink()
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert repository.git("diff", "--name-only", "main", default_branch()) == "zoo/model.py"
    assert "uncommitted changes in 4 files are not included" in capsys.readouterr().err


def test_a_detached_head_works(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0


def test_a_merge_in_progress_is_left_alone(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    repository.write("zoo/clean.py", "theirs = 1\n")
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    repository.write("zoo/clean.py", "ours = 1\n")
    repository.commit()
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "other")
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert "a merge is in progress" in capsys.readouterr().err


def test_a_bare_repository_works(repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "mirror.git"))
    bare = Repository(tmp_path / "mirror.git")
    with untouched(bare, but=default_branch()):
        assert run(bare) == 0
    assert len(bare.subjects(default_branch())) == 2
    assert "[`zoo" not in report_of(bare)[0]


def test_a_linked_work_tree_works(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked")
    with untouched(linked, but=default_branch()), untouched(repository, but=default_branch()):
        assert run(linked) == 0
    markdown, _ = report_of(repository)
    assert f"{tmp_path.name}/linked/zoo/model.py#L17)" in markdown


def test_a_shallow_clone_works(repository: Repository, tmp_path: Path) -> None:
    repository.write("zoo/clean.py", CLEAN + "# more\n")
    repository.commit()
    clone = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.folder}", str(clone))
    shallow = Repository(clone)
    with untouched(shallow, but=default_branch()):
        assert run(shallow) == 0
    assert len(shallow.subjects(default_branch())) == 2


def test_a_sparse_checkout_migrates_its_cone_and_keeps_the_rest(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("away/model.py", BROKEN)
    repository.commit()
    repository.git("sparse-checkout", "set", "zoo")
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert repository.git("diff", "--name-only", "main", default_branch()) == "zoo/model.py"
    assert "sparse checkout: only the files in its cone are migrated" in capsys.readouterr().err


def test_submodules_are_named_and_not_entered(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = broken_repository(tmp_path / "other")
    repository.git("submodule", "--quiet", "add", str(other.folder), "vendored")
    repository.commit()
    with untouched(repository, but=default_branch()), untouched(other):
        assert run(repository) == 0
    assert repository.git("diff", "--name-only", "main", default_branch()) == "zoo/model.py"
    assert "submodules are not migrated: vendored" in capsys.readouterr().err


def test_a_submodule_itself_can_be_migrated(repository: Repository, tmp_path: Path) -> None:
    other = broken_repository(tmp_path / "other")
    other.git("submodule", "--quiet", "add", str(repository.folder), "vendored")
    other.commit()
    submodule = Repository(other.folder / "vendored")
    with untouched(submodule, but=default_branch()):
        assert run(submodule) == 0
    assert other.git("status", "--porcelain") == ""
    assert len(submodule.subjects(default_branch())) == 2


def test_a_repository_with_sha256_ids_works(tmp_path: Path) -> None:
    repository = broken_repository(tmp_path / "long", "--object-format=sha256")
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert len(repository.subjects(default_branch())) == 2


@pytest.mark.parametrize("name", ["two words", "new\nline", "-x"])
def test_paths_of_any_name_work(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = empty_repository(tmp_path / name)
    repository.write(f"{name}/{name}.py", BROKEN)
    repository.commit()
    monkeypatch.chdir(tmp_path)
    with untouched(repository, but=default_branch()):
        assert main(["migrate", "--no-cache", "--", name]) == 0
    assert b"torch.where" in repository.show(f"{default_branch()}:{name}/{name}.py")


@pytest.mark.parametrize(
    ("kind", "cause"),
    [("unborn", "no commit at HEAD yet"), ("plain", "not a git repository"), ("nowhere", "does not exist")],
)
def test_what_holds_no_commit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, cause: str
) -> None:
    (tmp_path / "plain").mkdir()
    empty_repository(tmp_path / "unborn")
    assert main(["migrate", str(tmp_path / kind)]) == 2
    assert cause in capsys.readouterr().err


def test_a_missing_identity_is_told_before_anything_is_done(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    isolate(monkeypatch, tmp_path, identity=False)
    with untouched(repository):
        assert run(repository) == 2
    assert "git config user.name NAME" in capsys.readouterr().err


def test_a_second_run_on_one_day_names_the_ways_out(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repository) == 0
    with untouched(repository):
        assert run(repository) == 2
    told = capsys.readouterr().err
    assert (
        f"branch {default_branch()} exists already; choose another with --branch, or delete it with `git branch -D"
        in told
    )


def test_a_missing_git_is_told(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = subprocess.run(
        [*COMMAND, str(repository.folder)],
        env={**os.environ, "PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "git cannot be started: install git" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_hook_filter_or_signature_of_the_user_runs(repository: Repository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for hook in (
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ):
        repository.write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch '{ran}'\nexit 1\n").chmod(0o755)
    for key, value in (
        ("commit.gpgSign", "true"),
        ("gpg.program", "false"),
        ("core.fsmonitor", f"touch '{ran}'; false"),
        ("filter.upper.clean", f"touch '{ran}'; tr a-z A-Z"),
        ("filter.upper.smudge", f"touch '{ran}'; tr a-z A-Z"),
        ("filter.upper.required", "true"),
    ):
        repository.git("config", key, value)
    repository.write(".git/info/attributes", "*.py filter=upper\n")
    ran.unlink(missing_ok=True)
    assert run(repository) == 0
    assert not ran.exists()
    repository.git("config", "core.fsmonitor", "false")
    assert len(repository.subjects(default_branch())) == 2
    assert repository.git("diff", "--name-only", "main", default_branch()) == "zoo/model.py"


def test_only_edited_statements_change_whatever_git_converts(repository: Repository) -> None:
    windows = BROKEN.replace("\n", "\r\n")
    repository.write("zoo/model.py", windows).chmod(0o755)
    repository.commit()
    repository.write(".git/info/attributes", "*.py text ident\n")
    repository.git("config", "core.autocrlf", "input")
    assert run(repository) == 0
    fixed = repository.show(f"{default_branch()}:zoo/model.py")
    assert fixed.count(b"\r\n") == fixed.count(b"\n")
    assert repository.git("ls-tree", default_branch(), "zoo/model.py").startswith("100755 ")
    changed = repository.git("diff", "--numstat", "main", default_branch()).split()
    assert int(changed[1]) <= 6


def test_the_environment_of_a_surrounding_git_is_not_believed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = broken_repository(tmp_path / "other")
    with untouched(other), untouched(repository, but=default_branch()), monkeypatch.context() as patch:
        patch.setenv("GIT_DIR", str(other.folder / ".git"))
        patch.setenv("GIT_INDEX_FILE", str(other.folder / ".git/index"))
        patch.setenv("GIT_WORK_TREE", str(other.folder))
        assert run(repository) == 0
        assert os.environ["GIT_DIR"] == str(other.folder / ".git")
        for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
            patch.delenv(name)


def test_symbolic_links_are_not_followed_out_of_the_work_tree(repository: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(BROKEN)
    (repository.folder / "absolute.py").symlink_to(outside)
    (repository.folder / "back.py").symlink_to(repository.folder / "zoo/model.py")
    (repository.folder / "loop").symlink_to(".")
    repository.commit()
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    assert outside.read_text() == BROKEN
    assert repository.git("diff", "--name-only", "main", default_branch()) == "zoo/model.py"
