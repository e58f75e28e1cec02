"""What one child process took, and what is typical of several."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


class RunError(Exception):
    """A child process that did not do what is measured. The text is one line."""


@dataclass(frozen=True)
class Run:
    """Seconds and peak resident bytes of one child process; CPU seconds include those of the children it waited for."""

    wall: float
    cpu: float
    peak_bytes: int


@dataclass(frozen=True)
class Spread:
    """Median, lowest and highest of several numbers."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one number."""
        numbers = sorted(values)
        return cls(statistics.median(numbers), numbers[0], numbers[-1])


def timed(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    codes: Sequence[int] = (0,),
    limit: float | None = None,
) -> tuple[Run, str]:
    """What a command took and what it printed. RunError on another exit code than `codes`, or after `limit` seconds.

    `os.wait4` is used because `RUSAGE_CHILDREN` knows the memory of the largest child so far only.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        late = threading.Event()
        timer = threading.Timer(limit, _kill, (process.pid, late)) if limit is not None else None
        if timer is not None:
            timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _kill(process.pid, late)
            process.wait()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if late.is_set():
            raise RunError(f"took longer than {limit:.0f} s")
        message = _text(errors)
        # A crashed Python program exits with 1, which is also what a linter says with findings.
        if process.returncode not in codes or "Traceback (most recent call last)" in message:
            raise RunError(f"exit code {process.returncode}: {_last_line(message) or 'no message'}")
        return Run(wall, _cpu(usage), usage.ru_maxrss * _MAXRSS_UNIT), _text(output)


def _cpu(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _kill(group: int, late: threading.Event) -> None:
    late.set()
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
