"""A child process with limits: wall time, memory of all its processes, and disk in its temporary folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import psutil

from graphmend_codemod.fleet.answers import without_temporary_folders
from graphmend_codemod.fleet.jobs import Limits, Order
from graphmend_codemod.fleet.results import (
    FAILED,
    NOT_RUN,
    TOO_LONG,
    TOO_MUCH_DISK,
    TOO_MUCH_MEMORY,
    Row,
    row_from_json,
)
from graphmend_codemod.forge.credentials import tokens_in, without_tokens

_LOOK_EVERY = 0.1
_DISK_EVERY = 1.0
_LAST_WORDS = 500
_TAIL = 8192
_PREFIX, _LOCK = "graphmend-fleet-", "lock"
_NEWBORN = 10.0  # seconds
_DEATH = 5.0  # seconds; what still runs writes into a folder that is being removed
# Without the current folder in the path, which may be a repository with modules of any name.
_START = (
    "import sys; sys.path[:] = [folder for folder in sys.path if folder]; "
    "from graphmend_codemod.fleet.child import main; sys.exit(main())"
)


@dataclass(frozen=True)
class _Peaks:
    memory: int = 0
    disk: int = 0


def run_in_child(order: Order, limits: Limits, stop: Event | None = None) -> Row:
    """Handle one repository in a process of its own. Never raises for what the repository or the process does.

    When `stop` is set, the process is ended. Tokens are those of the process that calls this, so that on a cluster none
    travels.
    """
    if stop is not None and stop.is_set():
        return _failed(order, NOT_RUN, "the run was ended")
    order = replace(order, tokens=tuple(tokens_in(os.environ).items()))
    began = time.monotonic()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            row, peaks = _watched(order, limits, folder, stop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return replace(row, seconds=round(time.monotonic() - began, 3), memory=peaks.memory, disk=peaks.disk)


def _watched(order: Order, limits: Limits, folder: Path, stop: Event | None) -> tuple[Row, _Peaks]:
    result, words = folder / "row.json", folder / "stderr"
    inside = folder / "tmp"
    inside.mkdir()
    environment = {**without_tokens(os.environ), "TMPDIR": str(inside), "PYTHONSAFEPATH": "1"}
    with words.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(result)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(order.as_json().encode())
            exceeded, peaks = _watch(process, limits, folder, stop)
        finally:
            if process.poll() is None:
                _kill(process)
            elif process.returncode < 0:
                left = _left_of(inside)
                _end(left)
                psutil.wait_procs(left, _DEATH)
    if exceeded:
        return _failed(order, exceeded, _limit_told(exceeded, limits)), peaks
    try:
        return row_from_json(result.read_text(encoding="utf-8")), peaks
    except (OSError, ValueError, KeyError, TypeError):
        return _failed(order, FAILED, _last_words(process.returncode, words, order)), peaks


def _watch(process: subprocess.Popen[bytes], limits: Limits, folder: Path, stop: Event | None) -> tuple[str, _Peaks]:
    """Wait for the end, or for the first limit that is exceeded, which is named."""
    until = time.monotonic() + limits.seconds
    peaks, disk_looked = _Peaks(), 0.0
    while True:
        try:
            process.wait(_LOOK_EVERY)
            return "", peaks
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if stop is not None and stop.is_set():
            return NOT_RUN, peaks
        if now >= until:
            return TOO_LONG, peaks
        peaks = replace(peaks, memory=max(peaks.memory, _memory(process.pid)))
        if peaks.memory > limits.memory:
            return TOO_MUCH_MEMORY, peaks
        if now - disk_looked >= _DISK_EVERY:
            disk_looked = now
            peaks = replace(peaks, disk=max(peaks.disk, _disk(folder)))
            if peaks.disk > limits.disk:
                return TOO_MUCH_DISK, peaks


def _failed(order: Order, status: str, error: str) -> Row:
    return Row(order.name, order.location, order.options.action, status, error=error)


def _limit_told(status: str, limits: Limits) -> str:
    told = {
        NOT_RUN: "the run was ended",
        TOO_LONG: f"took more than {limits.seconds:.0f} s; raise --time-limit",
        TOO_MUCH_MEMORY: f"took more than {limits.memory / 2**30:.3g} GiB of memory; raise --memory-limit",
        TOO_MUCH_DISK: f"took more than {limits.disk / 2**30:.3g} GiB of disk; raise --disk-limit",
    }
    return told[status]


def _last_words(code: int | None, words: Path, order: Order) -> str:
    with words.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        lines = file.read().decode("utf-8", "backslashreplace").strip().splitlines()
    told = without_temporary_folders(order.scrubbed(lines[-1]))[:_LAST_WORDS] if lines else ""
    how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
    return f"its process {how}{f': {told}' if told else ''}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and all that came of it; some are in sessions of their own."""
    descendants = _family(process.pid)[1:]
    _end(reversed(descendants))
    process.kill()
    process.wait()
    psutil.wait_procs(descendants, _DEATH)


def _end(processes: Iterable[psutil.Process]) -> None:
    for each in processes:
        with contextlib.suppress(psutil.Error):
            each.kill()


def _left_of(temporary: Path) -> list[psutil.Process]:
    """What outlives a process that something else has killed: it has the same folder for its temporary files."""
    left = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(each.environ().get("TMPDIR", "")).is_relative_to(temporary):
                left.append(each)
    return left


def _memory(pid: int) -> int:
    """Resident bytes of a process and its descendants."""
    total = 0
    for each in _family(pid):
        with contextlib.suppress(psutil.Error):
            # Shared pages count once for each process, which errs on the careful side.
            total += each.memory_info().rss
    return total


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _sweep() -> None:
    """Remove what processes on this machine that were killed have left: folders that nobody has locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            # One that is being made has no lock yet.
            if time.time() - folder.stat().st_mtime > _NEWBORN:
                with (folder / _LOCK).open("ab") as lock:  # some were killed before they had made it
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)


def _disk(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total
