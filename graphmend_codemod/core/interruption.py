"""Ctrl-C, SIGTERM and SIGHUP as one exception, so that `finally` cleans up whichever of them ends a run."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

_ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_PATIENCE = 1.0  # seconds in which further signals are taken for the same wish, so that they do not disturb cleaning up


class Interrupted(KeyboardInterrupt):
    """The user or the system asked to stop. `exit_code` is what a shell expects for that signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code = 128 + signum


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self._signum: int | None = None
        self._raised_at = 0.0

    def heed(self) -> None:
        """Raise `Interrupted` if it was raised before and got lost: Python swallows what is raised in a finalizer."""
        if self._signum is not None:
            raise Interrupted(self._signum)

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Raise `Interrupted`: the signal handler."""
        now = time.monotonic()
        if self._signum is None or now - self._raised_at > _PATIENCE:
            self._signum, self._raised_at = signum, now
            raise Interrupted(signum)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Raise `Interrupted` on an ending signal, unless it is ignored already; restore the handlers afterwards."""
    interruption = Interruption()
    with _handlers(interruption.handle):
        yield interruption


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore ending signals, also in child processes started meanwhile: for cleaning up, and for short last steps."""
    with _handlers(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handlers(handler: object) -> Iterator[None]:
    # Python lets only the main thread set handlers, and only it is interrupted by signals.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        signum: signal.signal(signum, handler)  # type: ignore[arg-type]
        for signum in _ENDING_SIGNALS
        # None: a handler that was not set from Python; ignored: `nohup` or a background job asked for that.
        if signal.getsignal(signum) not in {None, signal.SIG_IGN}
    }
    try:
        yield
    finally:
        for signum, old in previous.items():
            signal.signal(signum, old)
