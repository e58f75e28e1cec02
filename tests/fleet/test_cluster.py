"""The fleet on a Dask cluster of processes: workers that die, a scheduler that goes away, what is done afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.tools import Fleet
from tests.repository.tools import CLEAN, broken_repository, empty_repository

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@dataclass
class Cluster:
    """A scheduler and its workers."""

    address: str
    scheduler: subprocess.Popen[str]
    workers: list[subprocess.Popen[str]]


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One scheduler, two workers of one thread, as processes."""
    scheduler = _start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
    assert scheduler.stderr is not None
    address = ""
    for line in scheduler.stderr:
        found = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
        if found:
            address = found[1]
            break
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    workers = [_start("dask_worker", address, *options) for _ in range(2)]
    try:
        yield Cluster(address, scheduler, workers)
    finally:
        for process in (*workers, scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet of twelve repositories."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    broken_repository(tmp_path / "clones/broken")
    for number in range(11):
        repository = empty_repository(tmp_path / f"clones/{number:02d}")
        repository.write("model.py", CLEAN)
        repository.commit()
    return Fleet(folder)


def _begin(fleet: Fleet, cluster: Cluster, clones: Path, *more: str) -> subprocess.Popen[str]:
    command = fleet.command("check", clones, "--scheduler", cluster.address, *more)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    running.stdout.readline()
    return running


def test_a_worker_that_is_killed_costs_no_repository(fleet: Fleet, cluster: Cluster, tmp_path: Path) -> None:
    running = _begin(fleet, cluster, tmp_path / "clones")
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 1, err
    assert len(fleet.rows()) == 12
    assert not any(row.failed for row in fleet.rows().values())


def test_a_scheduler_that_stops_ends_the_run_and_the_rest_is_done_later(
    fleet: Fleet, cluster: Cluster, tmp_path: Path
) -> None:
    running = _begin(fleet, cluster, tmp_path / "clones", "--time-limit", "5")
    began = time.monotonic()
    os.killpg(cluster.scheduler.pid, signal.SIGKILL)
    _, err = running.communicate(timeout=150)
    assert time.monotonic() - began < 120
    assert running.returncode == 2
    assert "run again with --resume" in err
    assert len(fleet.rows()) == 12
    for worker in cluster.workers:
        os.killpg(worker.pid, signal.SIGKILL)
    time.sleep(3)  # until what they were at has ended, too
    for left in Path(os.environ["TMPDIR"]).glob("graphmend-fleet-*"):
        os.utime(left, (0, 0))
    done = fleet.run("check", tmp_path / "clones", "--resume")
    assert done.returncode == 1, done
    assert not any(row.failed for row in fleet.rows().values())


def test_a_scheduler_that_is_not_there_is_told(fleet: Fleet, tmp_path: Path) -> None:
    done = fleet.run("check", tmp_path / "clones", "--scheduler", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "no Dask scheduler answers there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
