"""Functions that run in forks of a process that has loaded torch, several at a time."""

from __future__ import annotations

import ctypes
import multiprocessing
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

TIME_LIMIT = 240.0


def _die_with_parent() -> None:
    """Where Linux can: a child of a run that was killed must not go on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG


class Fork:
    """A function that runs in a fork of this process."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe(duplex=False)

        def run() -> None:
            _die_with_parent()
            try:
                value = (True, function(*args))
            except BaseException:  # the child has nobody else to tell
                value = (False, traceback.format_exc())
            theirs.send_bytes(pickle.dumps(value))

        self._process = context.Process(target=run)
        self._process.start()
        theirs.close()

    def result(self, limit: float = TIME_LIMIT) -> Any:
        """What the function returned; RuntimeError with the text of what it raised, or when it took too long."""
        try:
            if not self.pipe.poll(limit):
                raise RuntimeError("took too long")
            fine, value = pickle.loads(self.pipe.recv_bytes())
        except EOFError:
            self._process.join()
            raise RuntimeError(f"ended with code {self._process.exitcode}") from None
        finally:
            self._process.kill()
            self._process.join()
            self.pipe.close()
        if not fine:
            raise RuntimeError(value)
        return value


def in_turn(jobs: int, function: Callable[..., Any], cases: Sequence[Any], *args: Any) -> Iterator[Any]:
    """Results of the function for each case, in order, from `jobs` forks at a time."""
    running: list[Fork] = []
    for case in cases:
        running.append(Fork(function, case, *args))
        if len(running) >= jobs:
            yield running.pop(0).result(TIME_LIMIT * 8)
    for fork in running:
        yield fork.result(TIME_LIMIT * 8)
