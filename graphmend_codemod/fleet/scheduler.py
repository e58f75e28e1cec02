"""The run over all repositories, through joblib: in threads that each watch a child process, or on a Dask cluster.

Every task may run twice: what it does to a forge is found by the next one, and a row replaces the one before. joblib's
Dask backend waits for ever for a task that kills its worker again and again, so this side does not wait for joblib:
rows come through a queue, and when none comes for longer than any task may take, the run ends and says which are
missing.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib

from graphmend_codemod.core.extras import install_command
from graphmend_codemod.fleet.jobs import Limits, Options, Order
from graphmend_codemod.fleet.limits import run_in_child
from graphmend_codemod.fleet.results import NOT_RUN, Row
from graphmend_codemod.fleet.sources import Target, files_in_index

_GRACE = 60.0
_CONNECT = 15.0
_STOPPING = 10.0


class SchedulerError(Exception):
    """A cluster that cannot be used. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class _End:
    error: str = ""


def run_all(
    targets: Sequence[Target],
    options: Options,
    limits: Limits,
    *,
    jobs: int,
    scheduler: str | None = None,
    grace: float = _GRACE,
) -> Generator[Row, None, None]:
    """A row for every target, in the order in which they end. Raises `SchedulerError` if there is no cluster.

    When the cluster is lost, the targets without a row get one that says so. Closing the iterator ends local processes.
    """
    largest_first = sorted(targets, key=files_in_index, reverse=True)  # so that none is left to run alone at the end
    orders = [Order(target.name, target.location, options) for target in largest_first]
    waiting = {order.location: order for order in orders}
    rows: queue.Queue[Row | _End] = queue.Queue()
    stop = threading.Event()
    with _backend(scheduler) as backend, contextlib.ExitStack() as stack:
        work = partial(run_in_child, limits=limits, stop=None if scheduler else stop)
        thread = threading.Thread(
            target=_produce, args=(orders, work, jobs, backend, rows.put), name="fleet", daemon=True
        )
        thread.start()
        stack.callback(thread.join, _STOPPING)
        stack.callback(stop.set)
        error = ""
        while waiting:
            try:
                row = rows.get(timeout=limits.seconds + grace)
            except queue.Empty:
                error = f"no repository has ended for {limits.seconds + grace:.0f} s"
                break
            if isinstance(row, _End):
                error = row.error
                break
            waiting.pop(row.location, None)
            yield row
    for order in waiting.values():
        why = f"{error or 'the run ended early'}; run again with --resume"
        yield Row(order.name, order.location, options.action, NOT_RUN, error=why)


def _produce(
    orders: Iterable[Order],
    work: Callable[[Order], Row],
    jobs: int,
    backend: dict[str, Any],
    put: Callable[[Row | _End], None],
) -> None:
    try:
        with joblib.parallel_config(**backend):
            # Not more tasks under way than needed, so that memory does not grow with their number.
            parallel = joblib.Parallel(
                n_jobs=jobs if backend["backend"] == "threading" else -1,
                return_as="generator_unordered",
                pre_dispatch="2*n_jobs",
                batch_size=1,
            )
            for row in parallel(joblib.delayed(work)(order) for order in orders):
                put(row)
    except BaseException as error:  # whatever ends this thread, the other side must hear of it
        put(_End(f"the run was ended by {type(error).__name__}: {' '.join(str(error).split())[:300]}"))
    else:
        put(_End())


@contextlib.contextmanager
def _backend(scheduler: str | None) -> Iterator[dict[str, Any]]:
    if scheduler is None:
        yield {"backend": "threading"}
        return
    try:
        from distributed import Client
    except ImportError as error:
        command = install_command("cluster")
        raise SchedulerError(f"--scheduler needs the extra `cluster`; run `{command}`") from error
    try:
        client = Client(scheduler, timeout=_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise SchedulerError(
            f"{scheduler}: no Dask scheduler answers there ({error}); start one, or leave it out"
        ) from error
    try:
        yield {"backend": "dask", "client": client}
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=5)  # type: ignore[no-untyped-call]
