"""What a benchmark run found: plain data, written as JSON and as a Markdown page."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.timing import Run, Spread


@dataclass(frozen=True)
class Machine:
    """Where and when it was measured, and how busy the machine was before and after."""

    date: str
    processor: str
    cores: int
    system: str
    python: str
    load_before: float
    load_after: float


@dataclass(frozen=True)
class Target:
    """One number against its limit: at most the limit, or with `at_least` at least."""

    name: str
    unit: str
    limit: float
    measured: Spread
    counted: float
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the number that counts keeps the limit."""
        return self.counted >= self.limit if self.at_least else self.counted <= self.limit


@dataclass(frozen=True)
class Peer:
    """A tool at the same work. `share` is the part of the bytes that it was given; the seconds are scaled up by it."""

    name: str
    version: str
    work: str
    files: int
    share: float
    runs: tuple[Run, ...] = ()
    cpu: float = 0.0
    wall: float = 0.0
    failed: str = ""


@dataclass(frozen=True)
class Outcome:
    """One benchmark run. `runs` are all measured child processes by what they did."""

    machine: Machine
    versions: dict[str, str]
    corpus: dict[str, int]
    same_findings: bool
    targets: tuple[Target, ...]
    not_measured: dict[str, str]
    clean_files: dict[str, Spread]
    peers: tuple[Peer, ...]
    runs: dict[str, tuple[Run, ...]]

    @property
    def met(self) -> bool:
        """Whether every target was measured and met, with the same findings each way."""
        return self.same_findings and not self.not_measured and all(target.met for target in self.targets)


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def machine(load_before: float) -> Machine:
    """The machine that this runs on."""
    return Machine(
        date=datetime.now(timezone.utc).date().isoformat(),
        processor=_processor(),
        cores=cores(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        load_before=load_before,
        load_after=load(),
    )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, with a remark if its tracked files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "--short=10", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "graphmend_codemod")
    return f"{commit or 'no commit'}{' with local changes' if changed else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or sys.platform
