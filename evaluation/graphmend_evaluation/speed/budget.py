"""How long one model may take to be timed."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator


class Budget:
    """Seconds of wall time from now on; None for no limit. As text it is what a reader of a remark wants to know."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._began = time.monotonic()
        self._longest = 0.0

    def __str__(self) -> str:
        return f"the {self._seconds:g} s for one model"

    def left(self) -> bool:
        """Whether the time is not yet used up."""
        return self._spent < self._seconds

    def allows(self, more: float) -> bool:
        """Whether this many more of what `one` has timed fit into the time that is left."""
        return self._spent + more * self._longest <= self._seconds

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Time one of several things that take about as long."""
        began = self._spent
        yield
        self._longest = max(self._longest, self._spent - began)

    @property
    def _spent(self) -> float:
        return time.monotonic() - self._began
