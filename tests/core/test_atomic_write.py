"""Files are written in one step: what others write meanwhile is not lost, and killed runs leave nothing for long."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core import atomic_write
from graphmend_codemod.core.atomic_write import MARK, remove_leftovers, write_atomically
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.engine import api
from tests.repository.tools import BROKEN, CHECKOUT

OLD, NEW, THEIRS, MORE = b"old\n", b"new\n", b"their edit\n", b"their second edit\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_bytes(OLD)
    return path


def exchange_after(monkeypatch: pytest.MonkeyPatch, *edits: Callable[[], object]) -> None:
    """Let other programs act at the last moment before each exchange, where no comparison can see them any more."""
    exchange, waiting = atomic_write._exchange, list(edits)

    def late(first: str, second: Path) -> bool:
        if waiting:
            waiting.pop(0)()
        return exchange(first, second)

    monkeypatch.setattr(atomic_write, "_exchange", late)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs renameat2")


@linux
@pytest.mark.parametrize("how", ["in place", "by a rename"])
def test_an_edit_between_the_comparison_and_the_rename_is_not_lost(
    file: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def edit() -> None:
        if how == "in place":
            file.write_bytes(THEIRS)
        else:
            (file.parent / "new").write_bytes(THEIRS)
            os.replace(file.parent / "new", file)

    exchange_after(monkeypatch, edit)
    with pytest.raises(SourceError, match="was changed by another process"):
        write_atomically(file, OLD, NEW)
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"module.py": THEIRS}


@linux
def test_of_two_edits_in_that_moment_none_is_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange_after(monkeypatch, lambda: file.write_bytes(THEIRS), lambda: file.write_bytes(MORE))
    with pytest.raises(SourceError, match="was changed twice while graphmend was writing it; one of the texts is in"):
        write_atomically(file, OLD, NEW)
    assert sorted(path.read_bytes() for path in file.parent.iterdir()) == sorted([THEIRS, MORE])
    assert file.read_bytes() == THEIRS
    assert list(remove_leftovers([str(file.parent)])) == []
    assert len(list(file.parent.iterdir())) == 2


@linux
def test_a_file_that_is_deleted_in_that_moment_is_not_made_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange_after(monkeypatch, file.unlink)
    with pytest.raises(SourceError, match="No such file"):
        write_atomically(file, OLD, NEW)
    assert list(file.parent.iterdir()) == []


def test_where_files_cannot_change_places_they_are_replaced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_exchange", lambda first, second: False)
    write_atomically(file, OLD, NEW)
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == {"module.py": NEW}


def test_very_long_names_are_written_too(tmp_path: Path) -> None:
    file = tmp_path / ("\u00e9" * 120 + ".py")
    file.write_bytes(OLD)
    write_atomically(file, OLD, NEW)
    assert file.read_bytes() == NEW


KILLED = """
import os, signal, sys
from pathlib import Path
from graphmend_codemod.core import atomic_write as writing
moment, file = sys.argv[1], Path(sys.argv[2])
def die(*ignored, **more): os.kill(os.getpid(), signal.SIGKILL)
exchange = writing._exchange
if moment == "writing": os.fsync = die
if moment == "before the exchange": writing._exchange = die
if moment == "after the exchange": writing._holds = die
if moment == "after the exchange with an edit":
    def late(first, second):
        file.write_bytes(b"their edit\\n")
        exchange(first, second)
        die()
    writing._exchange = late
writing.write_atomically(file, b"old\\n", b"new\\n")
"""


def killed_when(moment: str, file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, moment, str(file)], cwd=CHECKOUT, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("moment", "content"), [("writing", OLD), ("before the exchange", OLD), ("after the exchange", NEW)]
)
def test_what_a_killed_run_left_the_next_one_removes(file: Path, moment: str, content: bytes) -> None:
    killed_when(moment, file)
    assert file.read_bytes() == content
    assert len(list(file.parent.iterdir())) == 2
    (file.parent / "other.py").write_text("x = 1\n")
    assert main(["check", str(file.parent), "--no-cache"]) == 0  # which never writes
    assert len(list(file.parent.iterdir())) == 3
    assert main(["fix", "--diff", str(file.parent / "other.py")]) == 0
    assert len(list(file.parent.iterdir())) == 3
    result = api.fix([file.parent / "other.py"], Settings(file.parent), write=True, cache=False)
    assert result.notes == ()
    assert sorted(path.name for path in file.parent.iterdir()) == ["module.py", "other.py"]
    assert file.read_bytes() == content


@linux
def test_an_edit_that_was_caught_by_a_killed_run_is_kept_and_named(file: Path) -> None:
    killed_when("after the exchange with an edit", file)
    (left,) = (path for path in file.parent.iterdir() if path != file)
    assert (file.read_bytes(), left.read_bytes()) == (NEW, THEIRS)
    for _ in range(2):
        (note,) = api.fix([file], Settings(file.parent), write=True, cache=False).notes
        assert str(left) in note
    assert left.read_bytes() == THEIRS


def test_files_of_living_processes_and_of_other_programs_stay(tmp_path: Path) -> None:
    held = tmp_path / f".a.py{MARK}{'0' * 16}.tmp"
    held.write_text("half")
    young = tmp_path / f".b.py{MARK}{'0' * 16}.tmp"
    young.touch()
    others = [".a.py.abcd1234.tmp", f"a.py{MARK}notes", f"a{MARK}x.tmp", ".a.py.swp"]
    for name in others:
        (tmp_path / name).write_text("theirs")
    os.mkfifo(tmp_path / f".c.py{MARK}x.tmp")
    (tmp_path / f".d.py{MARK}x.tmp").symlink_to(tmp_path / others[0])
    (tmp_path / f".e.py{MARK}x.tmp").mkdir()
    before = sorted(tmp_path.iterdir())
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list(remove_leftovers([str(tmp_path), str(tmp_path / "gone")])) == []
        assert sorted(tmp_path.iterdir()) == before
    assert list(remove_leftovers([str(tmp_path)])) == []
    assert sorted(tmp_path.iterdir()) == [path for path in before if path != held]


def test_runs_that_are_killed_at_any_moment_leave_files_whole_and_the_next_run_nothing_else(tmp_path: Path) -> None:
    fixed = api.fix_text(BROKEN.encode(), tmp_path / "m.py", Settings(tmp_path)).fixes[0].after
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    chance = random.Random(0)
    for _ in range(3):
        for number in range(12):
            (tmp_path / f"m{number}.py").write_text(BROKEN)
        command = [sys.executable, "-m", "graphmend_codemod", "fix", "--no-cache", "-j1", str(tmp_path)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL) as run:
            until = time.monotonic() + 20
            while (tmp_path / "m0.py").read_bytes() != fixed and time.monotonic() < until and run.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            run.kill()
        for path in tmp_path.glob("*.py"):
            assert path.read_bytes() in (BROKEN.encode(), fixed)
        for path in tmp_path.glob(".*.tmp"):  # an empty one is taken for abandoned after some seconds
            os.utime(path, (time.time() - 60, time.time() - 60))
        assert main(["fix", "--no-cache", "--exit-zero", "-j1", str(tmp_path)]) == 0
        assert {path.read_bytes() for path in tmp_path.glob("*.py")} == {fixed}
        assert len(list(tmp_path.iterdir())) == 13
