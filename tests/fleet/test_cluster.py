"""The fleet on a Dask cluster of processes: workers that die, a scheduler that goes away, what is done afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.tools import Fleet, outlive_children
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
    """One scheduler, two workers of one thread."""
    with started(workers=2) as cluster:
        yield cluster


@contextlib.contextmanager
def started(workers: int) -> Iterator[Cluster]:
    """A cluster of processes."""
    scheduler = _start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
    assert scheduler.stderr is not None
    address = ""
    for line in scheduler.stderr:
        found = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
        if found:
            address = found[1]
            break
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    processes = [_start("dask_worker", address, *options) for _ in range(workers)]
    try:
        yield Cluster(address, scheduler, processes)
    finally:
        for process in (*processes, scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet of twelve repositories."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    broken_repository(tmp_path / "clones/broken")
    _add(tmp_path / "clones", range(11))
    return Fleet(folder)


def _add(clones: Path, numbers: range) -> None:
    for number in numbers:
        repository = empty_repository(clones / f"{number:02d}")
        repository.write("model.py", CLEAN)
        repository.commit()


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
    _add(tmp_path / "clones", range(11, 31))  # more than can be done before the signal arrives
    running = _begin(fleet, cluster, tmp_path / "clones", "--time-limit", "5")
    began = time.monotonic()
    os.killpg(cluster.scheduler.pid, signal.SIGKILL)
    _, err = running.communicate(timeout=150)
    assert time.monotonic() - began < 120
    assert running.returncode == 2, err
    assert "run again with --resume" in err
    assert len(fleet.rows()) == 32
    for worker in cluster.workers:
        os.killpg(worker.pid, signal.SIGKILL)
    outlive_children()
    done = fleet.run("check", tmp_path / "clones", "--resume")
    assert done.returncode == 1, done
    assert not any(row.failed for row in fleet.rows().values())


def test_a_repository_that_kills_every_worker_ends_the_run_and_is_named(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """joblib would wait for ever: after four dead workers Dask gives the task up and joblib does not hear of it."""
    real, wrapper = shutil.which("git"), tmp_path / "bin/git"
    wrapper.parent.mkdir()
    # What git is started by is the repository's process, and its parent the worker.
    kill = 'kill -9 "$(ps -o ppid= -p $PPID | tr -d " ")"'
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *clones/broken*) {kill};; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        "from graphmend_codemod.fleet.jobs import Limits, Options\n"
        "from graphmend_codemod.fleet.scheduler import run_all\n"
        "from graphmend_codemod.fleet.sources import find_targets\n"
        "targets = [one for one in find_targets(Path(sys.argv[1])) if one.name in {'broken', '00', '01'}]\n"
        "rows = run_all(targets, Options('check'), Limits(5.0), jobs=1, scheduler=sys.argv[2], grace=8.0)\n"
        "for row in rows:\n    print(row.name, row.status, row.error, flush=True)\n"
    )
    with started(workers=5) as cluster:
        began = time.monotonic()
        command = [sys.executable, str(script), str(tmp_path / "clones"), cluster.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        dead = sum(worker.poll() is not None for worker in cluster.workers)
    rows = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {"broken", "00", "01"} == set(rows), done
    assert rows["broken"].startswith("not run")
    assert "run again with --resume" in rows["broken"]
    assert dead >= 4
    assert time.monotonic() - began < 90


def test_a_scheduler_that_is_not_there_is_told(fleet: Fleet, tmp_path: Path) -> None:
    done = fleet.run("check", tmp_path / "clones", "--scheduler", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "no Dask scheduler answers there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
