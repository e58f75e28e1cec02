"""Worker processes: forks of this one where that is safe, fresh ones from joblib elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphmend_codemod.core.errors import GraphmendError
from graphmend_codemod.core.interruption import uninterrupted

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_inherited: list[Any] = []  # filled in forked workers alone


class WorkersError(GraphmendError):
    """A worker process was ended from outside."""


def can_fork() -> bool:
    """True where a copy of this process can go on by itself. No lock may be held by a thread that is not copied.

    On macOS a fork may crash in the system's libraries, see https://docs.python.org/3/library/multiprocessing.html.
    """
    return sys.platform.startswith("linux") and threading.active_count() == 1 and _has_semaphores()


def _has_semaphores() -> bool:
    """False where `/dev/shm` cannot be written, as in some containers; joblib knows what to do there."""
    from multiprocessing import get_context

    try:
        get_context("fork").Semaphore()
    except (ImportError, OSError):
        return False
    return True


def inherited() -> Any:
    """In a forked worker: what the process that it was forked from wanted it to have."""
    return _inherited[0]


class Workers:
    """Worker processes, used as a context. An exception in it ends them at once and without a word of theirs.

    `forks` says which kind they are. Forked ones have `legacy` without a copy being sent, as it is at the first `run`.
    """

    def __init__(self, jobs: int, legacy: Any = None) -> None:
        self.jobs = jobs
        self.forks = can_fork()
        self._legacy = legacy
        self._pool: ProcessPoolExecutor | None = None
        self._running: list[Iterator[Any]] = []

    def __enter__(self) -> Workers:
        self._told = threading.excepthook
        threading.excepthook = self._tell
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if self._pool is not None:
                if kind is not None:
                    _kill_children()
                self._pool.shutdown(wait=True, cancel_futures=True)
            elif kind is not None:
                self._end()
        finally:
            threading.excepthook = self._told

    def _tell(self, problem: threading.ExceptHookArgs) -> None:
        """Leave out that the threads of pools stumble when they lose their workers: the caller gets an exception."""
        if not (problem.thread is not None and problem.thread.name.startswith("Executor")):
            self._told(problem)

    def run(self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Begin to call the function with each of these arguments; results come in their order.

        The iterator raises WorkersError when a worker was ended from outside.
        """
        if self.forks:
            return self._run_in_forks(function, arguments)
        from joblib import Parallel, delayed

        call = delayed(function)
        parallel = Parallel(n_jobs=self.jobs, return_as="generator", pre_dispatch="all")
        with uninterrupted(), _trusting_no_folder():  # Ctrl-C is this process's, which then ends what starts here
            results: Iterator[Any] = parallel([call(*each) for each in arguments])
        self._running.append(results)
        return _or_ended(results)

    def _run_in_forks(self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with uninterrupted():
            if self._pool is None:
                self._pool = ProcessPoolExecutor(self.jobs, get_context("fork"), _settle, (self._legacy,))
            results = [self._pool.submit(function, *each) for each in arguments]
        return _or_ended(each.result() for each in results)

    def _end(self) -> None:
        from joblib.externals.loky import get_reusable_executor

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for results in self._running:
                close = getattr(results, "close", None)
                if close is not None:
                    close()
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _settle(legacy: Any) -> None:
    """Begin as a forked worker: keep what was inherited, and end when the parent has ended, however that came."""
    from multiprocessing import parent_process

    _inherited[:] = [legacy]
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _kill_children() -> None:
    from multiprocessing import active_children

    for child in active_children():
        child.kill()


def _or_ended(results: Iterable[Any]) -> Iterator[Any]:
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from results
    except BrokenProcessPool as error:
        raise WorkersError("a worker process was killed, possibly out of memory; try --jobs 1") from error


@contextmanager
def _trusting_no_folder() -> Iterator[None]:
    """Python starts a worker with the current folder first in its path: a repository's own `json.py` would run."""
    known, here = os.environ.get("PYTHONSAFEPATH"), os.getcwd() if sys.version_info < (3, 11) else None
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        if here is not None:
            os.chdir(os.path.dirname(sys.executable))  # pythons that do not know the variable
        yield
    finally:
        if here is not None:
            os.chdir(here)
        if known is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = known
