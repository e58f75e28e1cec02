"""One line on a terminal that says what is being done, and goes away afterwards."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TextIO

from graphmend_codemod.core.terminal import printable


class ProgressLine:
    """Writes over itself on a terminal; says nothing anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = stream.isatty()

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, line: str) -> None:
        """Show `line` in place of the last one."""
        if self._shown:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{printable(line)[:width]}")
            self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


@contextmanager
def ticking(stream: TextIO, what: str) -> Iterator[None]:
    """Show `what` with the seconds that it has taken, from the third one on, where the system has timers.

    A timer of the process and no thread: workers are forks only while there is one thread.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    start = time.monotonic()

    def tick(number: int, frame: FrameType | None) -> None:
        line(f"{what}: {time.monotonic() - start:.0f} s")

    with ProgressLine(stream) as line:
        before = signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, 2, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
