"""Runs of `graphmend fleet`: what each took, in the process itself, in its children, and on disk."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.timing import RunError

from graphmend_codemod.fleet.results import Row, Store

_EVERY = 0.2
_MOMENTS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class FleetRun:
    """One run. Seconds of wall time and of CPU, of all processes; peaks in bytes.

    `parent` is the memory of the command itself when a quarter, a half, three quarters and all of the repositories were
    done; `tree` that of all its processes together, shared pages counted in each. `disk` is what lay in the temporary
    folder, `left` what still did at the end. `cpu_start` is what the processes of a cluster take before there is work.
    """

    name: str
    workers: int
    repositories: int
    failed: int
    sites: int
    wall: float
    cpu: float
    parent: tuple[int, ...]
    child: int
    tree: int
    disk: int
    left: int
    cpu_start: float = 0.0
    fetched: int = 0

    @property
    def per_repository(self) -> float:
        """CPU seconds of one repository."""
        return (self.cpu - self.cpu_start) / self.repositories


@dataclass
class Sampler:
    """Looks at processes and a folder as long as it runs."""

    roots: Sequence[int]
    main: int
    folder: Path
    output: Path
    total: int
    parent: dict[float, int] = field(default_factory=dict)
    tree: int = 0
    disk: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look until told to stop."""
        while not self._stop.wait(_EVERY):
            self.look()

    def look(self) -> None:
        """Once."""
        known = _processes()
        self.tree = max(self.tree, sum(known[pid][1] for pid in _below(self.roots, known)))
        self.disk = max(self.disk, disk_of(self.folder))
        share = self.output.read_bytes().count(b"\n") / self.total if self.output.exists() else 0.0
        reached = max((moment for moment in _MOMENTS if share >= moment), default=None)
        if reached is not None and self.main in known:
            self.parent[reached] = known[self.main][1]

    def stop(self) -> None:
        """No more."""
        self._stop.set()


@dataclass(frozen=True)
class Ground:
    """Where runs take place: a folder for their files, and the environment of their commands."""

    folder: Path
    environment: Mapping[str, str]

    def run(
        self, name: str, source: Path, workers: int, total: int, *more: str, action: str = "check", scheduler: str = "",
        pids: Sequence[int] = (),
    ) -> tuple[FleetRun, list[Row]]:  # fmt: skip
        """One run of the command, and its rows. RunError when a repository failed."""
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        results, output = self.folder / f"{name.replace(' ', '-')}.sqlite", self.folder / "output"
        results.unlink(missing_ok=True)
        command = [sys.executable, "-m", "graphmend_codemod", "fleet", action, str(source), "--results", str(results)]
        command += ["--scheduler", scheduler] if scheduler else ["--jobs", str(workers)]
        began = time.perf_counter()
        with output.open("wb") as stdout, (self.folder / "errors").open("wb") as stderr:
            process = subprocess.Popen(
                [*command, *more],
                stdout=stdout,
                stderr=stderr,
                env={**self.environment, "TMPDIR": str(temporary)},
                start_new_session=True,
            )
            sampler = Sampler((process.pid, *pids), process.pid, temporary, output, total)
            thread = threading.Thread(target=sampler.watch)
            thread.start()
            try:
                _, status, usage = os.wait4(process.pid, 0)
            finally:
                sampler.stop()
                thread.join()
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 1}:
            raise RunError(f"{name}: {(self.folder / 'errors').read_text().strip().splitlines()[-1:]}")
        store = Store(results)
        rows = list(store.rows())
        store.close()
        run = FleetRun(
            name=name,
            workers=workers,
            repositories=len(rows),
            failed=sum(row.failed for row in rows),
            sites=sum(row.sites for row in rows),
            wall=wall,
            cpu=usage.ru_utime + usage.ru_stime,
            parent=tuple(sampler.parent[moment] for moment in sorted(sampler.parent)),
            child=max(row.memory for row in rows),
            tree=sampler.tree,
            disk=sampler.disk,
            left=disk_of(temporary),
        )
        return run, rows


@dataclass
class Cluster:
    """A Dask scheduler and its workers; `cpu` is known when they have ended."""

    address: str
    pids: tuple[int, ...]
    cpu: float = 0.0


@contextlib.contextmanager
def cluster(workers: int, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Processes of a cluster on this machine."""
    head = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen(
        [*head, "--no-dashboard", "--no-show"], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert scheduler.stderr is not None
    address = next(found[1] for line in scheduler.stderr if (found := re.search(r"Scheduler at:\s+(tcp://\S+)", line)))
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, *options]
    started = [subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True, env=environment) for _ in range(workers)]
    running = Cluster(address, tuple(process.pid for process in (scheduler, *started)))
    try:
        _await(address, workers)
        yield running
    finally:
        for process in (*started, scheduler):
            process.send_signal(signal.SIGTERM)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            running.cpu += usage.ru_utime + usage.ru_stime
        scheduler.stderr.close()


def _await(address: str, workers: int) -> None:
    from distributed import Client

    client = Client(address, timeout=30, set_as_default=False)  # type: ignore[no-untyped-call]
    client.wait_for_workers(workers, timeout=60)
    client.close()  # type: ignore[no-untyped-call]


def disk_of(folder: Path) -> int:
    """Bytes on disk below a folder."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and resident bytes by process."""
    page, found = os.sysconf("SC_PAGE_SIZE"), {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
                found[int(name)] = (parent, int(Path(f"/proc/{name}/statm").read_text().split()[1]) * page)
    return found


def _below(roots: Sequence[int], known: Mapping[int, tuple[int, int]]) -> set[int]:
    found = {pid for pid in roots if pid in known}
    while True:
        more = {pid for pid, (parent, _) in known.items() if parent in found} - found
        if not more:
            return found
        found |= more
