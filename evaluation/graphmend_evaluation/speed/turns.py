"""Several models on one machine: they compile at the same time, and each is timed alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """Who may use the machine now: any number of models that compile, or one that is timed.

    A model that waits to be timed lets others begin to compile: it is timed once nobody compiles any more. So the
    models of a run are timed in a row, after the longest of their compilations, and a machine with many cores is used
    meanwhile. Compilation is measured by processor time, which the others do not change as long as there is a core for
    each.
    """

    def __init__(self) -> None:
        self.starting = threading.Lock()
        """Held while the compiler is started for the first time."""
        self._changed = threading.Condition()
        self._compiling = 0
        self._timing = False

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Whatever is not timed by the wall: beside others of its kind, never beside one that is timed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._timing)
            self._compiling += 1
        try:
            yield
        finally:
            with self._changed:
                self._compiling -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._timing and not self._compiling)
            self._timing = True
        try:
            yield
        finally:
            with self._changed:
                self._timing = False
                self._changed.notify_all()
