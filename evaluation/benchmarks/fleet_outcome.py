"""What a measured fleet took: plain data, written as JSON and as a page."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fleet_runs import FleetRun
from benchmarks.outcome import Machine

TARGET = 1.7


@dataclass(frozen=True)
class Baseline:
    """Repositories of one kind, each checked by a `graphmend check` of its own; seconds are sums."""

    kind: str
    repositories: int
    files: int
    size: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class Requests:
    """A run of `fleet pr` against a forge on the same machine: how many pull requests were `done`, what was asked."""

    done: str
    repositories: int
    api: int
    api_writing: int
    git: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class FleetOutcome:
    """All of it. `orders` are the bytes that ten thousand repositories take in the command before they are done."""

    machine: Machine
    graphmend: str
    baselines: tuple[Baseline, ...]
    runs: tuple[FleetRun, ...]
    served: tuple[FleetRun, ...]
    requests: tuple[Requests, ...]
    orders: int

    def gain(self, kind: str) -> float | None:
        """How many times as fast two workers were; None if that was not measured."""
        walls = {run.workers: run.wall for run in self.runs if run.name.startswith(kind)}
        return walls[1] / walls[2] if {1, 2} <= set(walls) else None

    @property
    def met(self) -> bool:
        """Whether two workers were fast enough each way, and no repository failed."""
        gains = [gain for kind in ("local", "dask") if (gain := self.gain(kind)) is not None]
        return all(gain >= TARGET for gain in gains) and not any(run.failed for run in (*self.runs, *self.served))

    @property
    def own_cpu(self) -> float:
        """CPU seconds that the checks alone took."""
        return sum(one.cpu for one in self.baselines)

    def overhead(self, run: FleetRun) -> float:
        """CPU seconds that a repository took beyond its own check."""
        return run.per_repository - self.own_cpu / run.repositories
