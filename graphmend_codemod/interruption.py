"""Ctrl-C, SIGTERM and SIGHUP as one exception, so that `finally` cleans up whichever of them ends a run."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """The user or the system asked to stop. `exit_code` is what a shell expects for that signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code = 128 + signum


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` for every ending signal that is not ignored already; restore the handlers afterwards."""
    with _handlers(_interrupt):
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore ending signals, also in child processes started meanwhile: for cleaning up, and for short last steps."""
    with _handlers(signal.SIG_IGN):
        yield


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise Interrupted(signum)


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
