"""Temporary work trees: what they hold, and that they go away."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.repository.checkout import Checkout, Commit, open_checkout, resolve_commit
from graphmend_codemod.repository.git import GitFailed
from graphmend_codemod.repository.worktree import (
    blob_id,
    remove_stale_worktrees,
    temporary_folder,
    worktree,
)
from tests.repository.tools import BROKEN, Repository, broken_repository, empty_repository, untouched

HOLD = """\
import sys, time
from pathlib import Path
from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.worktree import temporary_folder, worktree

checkout = open_checkout(Path(sys.argv[1]))
with temporary_folder() as folder, worktree(checkout, resolve_commit(checkout, "HEAD"), folder) as tree:
    print(tree.root, flush=True)
    time.sleep(600)
"""


def opened(repository: Repository) -> tuple[Checkout, Commit]:
    checkout = open_checkout(repository.folder)
    return checkout, resolve_commit(checkout, "HEAD")


def linked(repository: Repository) -> list[str]:
    lines = repository.git("worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def hold_a_worktree(repository: Repository) -> tuple[subprocess.Popen[str], Path]:
    """A process that sits in a work tree, and where that is."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(repository.folder)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_worktree_is_registered_while_it_exists_and_removed_on_an_error(repository: Repository) -> None:
    checkout, commit = opened(repository)
    roots = []

    def work() -> None:
        with temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
            roots.append(tree.root)
            assert linked(repository) == [str(tree.root)]
            assert tree.root.name == "mymodels"
            assert (tree.root / "zoo/model.py").read_text() == BROKEN
            (tree.root / "zoo/model.py").write_text("scribbled")
            (tree.root / "untracked").mkdir()
            raise ZeroDivisionError

    with untouched(repository), pytest.raises(ZeroDivisionError):
        work()
    assert not roots[0].exists()


def test_a_worktree_whose_files_vanished_is_still_removed(repository: Repository) -> None:
    checkout, commit = opened(repository)
    with untouched(repository), temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        shutil.rmtree(tree.root)


def test_git_commands_in_a_vanished_worktree_do_not_fall_back_to_the_current_folder(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.folder)
    checkout, commit = opened(repository)
    with untouched(repository), temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        shutil.rmtree(tree.root)
        with pytest.raises(GitFailed):
            tree.git.output("update-index", "-z", "--index-info", stdin=b"0 " + b"0" * 40 + b"\tzoo/model.py\0")


def test_a_killed_run_is_cleaned_up_by_the_next(repository: Repository) -> None:
    with untouched(repository):
        process, root = hold_a_worktree(repository)
        process.kill()
        process.communicate()
        assert linked(repository) == [str(root)]
        remove_stale_worktrees(open_checkout(repository.folder))


def test_a_killed_run_whose_folder_is_gone_is_forgotten(repository: Repository) -> None:
    with untouched(repository):
        process, root = hold_a_worktree(repository)
        process.kill()
        process.communicate()
        shutil.rmtree(root.parent)
        remove_stale_worktrees(open_checkout(repository.folder))


def test_folders_of_killed_runs_are_removed_by_the_next_one_of_any_repository(
    repository: Repository, tmp_path: Path
) -> None:
    killed, root = hold_a_worktree(repository)
    killed.kill()
    killed.communicate()
    running, alive = hold_a_worktree(repository)
    temporary = root.parent.parent
    link = temporary / f"{root.parent.name[:-8]}aaaaaaaa"
    link.symlink_to(tmp_path)
    other = temporary / "graphmend-notes"
    other.mkdir()
    for folder in (root.parent, alive.parent, other):
        os.utime(folder, (0, 0))
    with temporary_folder():
        assert not root.exists()
        assert not root.parent.exists()
        assert (alive / "zoo/model.py").exists()
        assert link.is_symlink()
        assert other.is_dir()
    link.unlink()
    other.rmdir()
    running.send_signal(signal.SIGINT)
    running.communicate()
    # What git knows of the work tree goes when somebody looks at the repository again.
    assert linked(repository) == [str(root)]
    remove_stale_worktrees(open_checkout(repository.folder))
    assert linked(repository) == []


def test_a_folder_that_is_being_made_or_is_not_ours_stays(repository: Repository) -> None:
    killed, root = hold_a_worktree(repository)
    killed.kill()
    killed.communicate()
    with temporary_folder():
        assert root.exists()
    os.utime(root.parent, (0, 0))
    if os.getuid() == 0:
        os.chown(root.parent, 12345, 12345)
        with temporary_folder():
            assert root.exists()
        os.chown(root.parent, 0, 0)
        os.utime(root.parent, (0, 0))
    with temporary_folder():
        assert not root.exists()


def test_a_running_run_is_not_disturbed(repository: Repository) -> None:
    process, root = hold_a_worktree(repository)
    remove_stale_worktrees(open_checkout(repository.folder))
    assert (root / "zoo/model.py").read_text() == BROKEN
    assert linked(repository) == [str(root)]
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert not root.exists()
    assert linked(repository) == []


def test_work_trees_of_other_people_stay_even_when_their_folder_is_away(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "usb-stick"))
    shutil.rmtree(tmp_path / "usb-stick")
    checkout, commit = opened(repository)
    with untouched(repository):
        remove_stale_worktrees(checkout)
        with temporary_folder() as folder, worktree(checkout, commit, folder):
            pass


@pytest.mark.parametrize("name", ["two words", "new\nline", "-x", "--help", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_repositories_of_any_name(tmp_path: Path, name: str) -> None:
    repository = broken_repository(tmp_path / name)
    repository.write(name + ".py", BROKEN)
    repository.commit()
    checkout, commit = opened(repository)
    with untouched(repository), temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        assert name + ".py" in tree.entries
        assert (tree.root / (name + ".py")).read_text() == BROKEN


def test_python_files_hold_the_committed_bytes(repository: Repository) -> None:
    contents = {
        "lf.py": b"# $Id$\nlf = 1\n",
        "crlf.py": b"crlf = 1\r\n",
        "mixed.py": b"mixed = 1\r\nlf = 2\n",
    }
    for path, data in contents.items():
        repository.write(path, data)
    repository.git("config", "core.autocrlf", "false")
    repository.commit()
    repository.write(".gitattributes", "*.py ident text eol=crlf\n")
    repository.git("add", ".gitattributes")
    repository.git("commit", "--quiet", "-m", "Convert")
    assert {path: repository.show(f"HEAD:{path}") for path in contents} == contents
    repository.git("config", "core.autocrlf", "true")
    checkout, commit = opened(repository)
    with temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        assert {path: (tree.root / path).read_bytes() for path in contents} == contents


def test_no_hook_and_no_filter_runs(repository: Repository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        script = repository.write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch '{ran}'\n")
        script.chmod(0o755)
    repository.write(".gitattributes", "*.py filter=upper\n")
    repository.git("-c", "core.hooksPath=/dev/null", "add", ".")
    repository.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "Filter")
    repository.git("config", "filter.upper.smudge", f"touch '{ran}'; tr a-z A-Z")
    repository.git("config", "filter.upper.process", f"touch '{ran}'")
    repository.git("config", "filter.upper.required", "true")
    repository.git("config", "core.fsmonitor", f"touch '{ran}'; false")
    checkout, commit = opened(repository)
    with temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        assert (tree.root / "zoo/model.py").read_text() == BROKEN
    assert not ran.exists()


def test_links_submodules_and_modes_are_told_apart(repository: Repository, tmp_path: Path) -> None:
    other = broken_repository(tmp_path / "other")
    repository.git("submodule", "--quiet", "add", str(other.folder), "vendored")
    (repository.folder / "link.py").symlink_to("zoo/model.py")
    repository.write("tool.py", "#!/usr/bin/env python\n").chmod(0o755)
    repository.commit()
    checkout, commit = opened(repository)
    with untouched(repository), temporary_folder() as folder, worktree(checkout, commit, folder) as tree:
        assert tree.submodules == ("vendored",)
        assert not list((tree.root / "vendored").iterdir())
        assert not tree.entries["link.py"].is_file
        assert tree.entries["tool.py"].is_file
        assert tree.entries["tool.py"].mode == "100755"


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_blob_ids_are_those_of_git(tmp_path: Path, algorithm: str) -> None:
    repository = empty_repository(tmp_path / "hashes", f"--object-format={algorithm}")
    file = repository.write("a.py", b"a = 1\n")
    oid = repository.git("hash-object", str(file))
    assert blob_id(b"a = 1\n", like=oid) == oid
    assert len(oid) == hashlib.new(algorithm).digest_size * 2


def test_a_full_disk_for_the_work_tree_leaves_nothing_behind(repository: Repository) -> None:
    repository.write("large.bin", os.urandom(200_000))
    repository.commit()
    # 100 kB is the largest file that this process may write, as on a disk that has no more space.
    script = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n{HOLD}"
    with untouched(repository):
        command = [sys.executable, "-c", script, str(repository.folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "GitFailed" in done.stderr
