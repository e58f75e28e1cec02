"""A cache that somebody else has prepared: nothing outside of it is touched, and nothing of it makes a run hang or end.

Each repository is a real one on disk, as a clone of a stranger's would be.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_codemod.core.cache import Cache, cache_folder, hashed
from graphmend_codemod.core.cache_folder import MOST_BYTES
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.repository.tools import BROKEN, CHECKOUT, Repository, empty_repository, isolate

KINDS = ("runs", "summaries", "findings", "reach")
VICTIMS = [f"{number:032x}.json" for number in range(40)] + ["notes.txt", "settings.json"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A clone with a break site, in a CI whose cache folder lies in it: what it brings could be the cache."""
    isolate(monkeypatch, tmp_path)
    repository = empty_repository(tmp_path / "work/clone")
    repository.write("model.py", BROKEN)
    repository.commit()
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(repository.folder / ".cache/graphmend"))
    return repository


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder outside of the repository with files that look like entries and others that do not."""
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in VICTIMS:
        (folder / name).write_text(f"precious {name}")
    return folder


def intact(victim: Path) -> bool:
    return {each.name: each.read_text() for each in victim.iterdir()} == {name: f"precious {name}" for name in VICTIMS}


def project_folder(repository: Repository) -> Path:
    """Where the cache of this clone is: its name can be computed where the path is known, as in a CI."""
    root = os.path.realpath(repository.folder)
    return Path(str(cache_folder())) / f"{os.path.basename(root)}-{hashed(root)}"


def check(repository: Repository) -> api.CheckResult:
    result = api.check([], Settings(repository.folder), cache=True)
    assert len(result.findings) == 2
    assert result.problems == ()
    return result


def test_a_shipped_cache_in_the_project_is_not_looked_at(
    repository: Repository, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAPHMEND_CACHE_DIR")
    for kind in KINDS:
        (repository.folder / ".graphmend_cache").mkdir(exist_ok=True)
        (repository.folder / ".graphmend_cache" / kind).symlink_to(victim, target_is_directory=True)
    repository.commit()
    for _ in range(2):
        assert check(repository).notes == ()
    assert intact(victim)


@pytest.mark.parametrize("which", [*KINDS, "project", "base", "above"])
def test_no_folder_of_it_is_reached_by_a_link(repository: Repository, victim: Path, which: str) -> None:
    project = project_folder(repository)
    linked = {"project": project, "base": project.parent, "above": project.parent.parent}.get(which, project / which)
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(victim, target_is_directory=True)
    for _ in range(2):
        cache = Cache(repository.folder, "1")
        cache.write(which if which in KINDS else "runs", "name", "key", [1])
        cache.trim_runs()
        cache.forget_others("reach", [])
        assert f"{cache_folder()} is not used: it is" in str(cache.refused)
        assert check(repository).notes == (() if which == "reach" else (cache.refused,))
    assert intact(victim)


def test_a_link_to_another_folder_that_is_put_there_while_it_runs_is_not_followed(
    repository: Repository, victim: Path
) -> None:
    cache = Cache(repository.folder, "1")
    cache.write("runs", "name", "key", [1])
    runs = project_folder(repository) / "runs"
    runs.rename(runs.with_name("moved"))
    runs.symlink_to(victim, target_is_directory=True)
    cache.write("runs", "other", "key", [2])
    cache.trim_runs()
    cache.forget_others("runs", [])
    assert intact(victim)


def entries(repository: Repository) -> list[Path]:
    check(repository)
    return [entry for kind in KINDS for entry in (project_folder(repository) / kind).glob("*.json")]


def _fifo(entry: Path, victim: Path) -> None:
    os.mkfifo(entry)


def _endless(entry: Path, victim: Path) -> None:
    entry.symlink_to("/dev/zero")


def _link(entry: Path, victim: Path) -> None:
    entry.symlink_to(victim / VICTIMS[0])


def _huge(entry: Path, victim: Path) -> None:
    with entry.open("wb") as file:
        file.truncate(3 * 2**30)


def _nested(entry: Path, victim: Path) -> None:
    entry.write_text("graphmend 1 2 3\n" + "[" * 100_000)


@pytest.mark.parametrize("replace", [_fifo, _endless, _link, _huge, _nested])
def test_what_is_in_place_of_an_entry_is_neither_followed_nor_waited_for(
    repository: Repository, victim: Path, replace: Callable[[Path, Path], None]
) -> None:
    found = entries(repository)
    assert len(found) >= 3
    for entry in found:
        entry.unlink()
        replace(entry, victim)
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
    script = f"{limited}from graphmend_codemod.cli.main import main; sys.exit(main(['check', '.']))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script] if sys.version_info >= (3, 11) else [sys.executable, "-c", script],
        cwd=repository.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, ""), done
    assert intact(victim)


def test_names_of_files_being_written_cannot_be_guessed(repository: Repository, victim: Path) -> None:
    cache = Cache(repository.folder, "1")
    cache.write("runs", "name", "key", [1])
    (entry,) = (project_folder(repository) / "runs").glob("*.json")
    for process in (os.getpid(), os.getpid() + 1):
        entry.with_name(f"{entry.name}.{process}.tmp").symlink_to(victim / VICTIMS[0])
    cache.write("runs", "name", "key", [2])
    assert cache.read("runs", "name", "key", list) == [2]
    assert intact(victim)
    written: list[str] = []
    while len(written) < 2:  # two writes, seen while they last
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.replace", lambda source, target, **more: written.append(source))
            cache.write("runs", "name", "key", [2])
    assert written[0] != written[1]


def test_a_cache_that_git_tracks_is_not_used_and_that_is_said_once(repository: Repository) -> None:
    entries(repository)
    repository.git("add", "--force", ".cache")
    repository.git("commit", "--quiet", "--message", "Ship a cache")
    (repository.folder / "sub").mkdir()
    repository.write("sub/pyproject.toml", "[tool.graphmend]\n")
    repository.write("sub/model.py", BROKEN)
    before = {path: path.stat().st_mtime_ns for path in (repository.folder / ".cache").rglob("*")}
    command = [sys.executable, "-m", "graphmend_codemod", "check", ".", "sub"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        command, cwd=repository.folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done
    assert done.stderr.count("\n") == 1
    assert ".cache/graphmend is not used: it is tracked by git; remove it with `git rm" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in (repository.folder / ".cache").rglob("*")} == before


def test_folders_that_others_can_write_to_are_not_used(repository: Repository) -> None:
    entries(repository)
    project_folder(repository).chmod(0o777)
    assert "can be written to by other users" in check(repository).notes[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_folders_of_other_users_are_not_used(repository: Repository) -> None:
    entries(repository)
    os.chown(project_folder(repository) / "runs", 4242, 4242)
    assert "belongs to another user" in check(repository).notes[0]


def test_projects_that_nobody_checks_any_more_go_and_take_nothing_else_along(
    repository: Repository, victim: Path
) -> None:
    base = Path(str(cache_folder()))
    old = base / f"gone-{'0' * 32}"
    for kind in KINDS:
        (old / kind).mkdir(parents=True)
        (old / kind / VICTIMS[0]).write_text("{}")
    (old / "findings" / VICTIMS[1]).symlink_to(victim / VICTIMS[1])
    (base / f"linked-{'0' * 32}").symlink_to(victim, target_is_directory=True)
    plain = base / f"plain-{'0' * 32}" / "runs"
    plain.mkdir(parents=True)
    mine = base / "my-notes"
    mine.mkdir()
    for folder in (old, mine):
        os.utime(folder, (0, 0))
    check(repository)
    assert sorted(each.name for each in old.rglob("*")) == sorted(["findings", VICTIMS[1]])  # what is no entry stays
    assert plain.is_dir()
    assert mine.is_dir()
    assert intact(victim)


def test_what_killed_runs_left_half_written_goes_and_what_is_being_written_stays(repository: Repository) -> None:
    entries(repository)
    runs = project_folder(repository) / "runs"
    old, new = runs / f"{'0' * 32}.json.{'a' * 24}.tmp", runs / f"{'0' * 32}.json.{'b' * 24}.tmp"
    for file in (old, new):
        file.write_text("half")
    os.utime(old, (0, 0))
    repository.write("model.py", BROKEN + "# changed\n")
    check(repository)
    assert (old.exists(), new.exists()) == (False, True)


def test_an_entry_that_is_too_large_is_not_written(repository: Repository) -> None:
    cache = Cache(repository.folder, "1")
    cache.write_text("runs", "name", "key", '"' + "x" * MOST_BYTES + '"')
    cache.write("runs", "other", "key", [1])
    assert cache.read("runs", "name", "key", list) is None
    assert cache.read("runs", "other", "key", list) == [1]
