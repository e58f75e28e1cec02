"""What a measurement of speed says: frozen values that travel as JSON through `results.to_json` and `from_json`.

Times are in seconds, memory is in bytes. *Before* is the base, *after* the head. This module does not import torch.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from graphmend_evaluation.results import Status

SPEED_SCHEMA = 1


class SpeedVerdict(enum.Enum):
    """What a paired difference says. Only a difference that is outside the noise is one."""

    LESS = "less"
    MORE = "more"
    NO_DIFFERENCE = "no difference"
    TOO_FEW = "too few repetitions to tell"


@dataclass(frozen=True)
class Spread:
    """Several measurements of one quantity, in its unit. `low` and `high` are the first and third quartile."""

    median: float
    low: float
    high: float
    count: int

    @property
    def noise(self) -> float:
        """Half the distance of the quartiles, as a share of the median; 0 for a median of 0."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else 0.0


@dataclass(frozen=True)
class Difference:
    """After against before, measured in pairs. All but `pairs` are shares of before: -0.2 is a fifth less.

    `low` and `high` hold the median change with 99 % confidence; with fewer than six pairs they are the lowest and the
    highest. A change counts only if the interval leaves out 0 and the change is larger than `noise`, which is the
    largest of half the interval and what two processes of the same code are apart.
    """

    change: float
    low: float
    high: float
    noise: float
    pairs: int
    verdict: SpeedVerdict


@dataclass(frozen=True)
class Compared:
    """One quantity before and after."""

    before: Spread
    after: Spread
    difference: Difference


@dataclass(frozen=True)
class ColdCall:
    """One of the first calls of a fresh process; `number` counts from 1, 0 stands for all of them together.

    `wall_s` and `cpu_s` are the whole call, processor time with that of compilers it started; `run_wall_s` and
    `run_cpu_s` are the same with compilation subtracted.
    """

    number: int
    wall_s: Compared
    cpu_s: Compared
    run_wall_s: Compared
    run_cpu_s: Compared


@dataclass(frozen=True)
class Cold:
    """Cold start: each repetition is a process of its own with empty caches, but for one trivial compile.

    `calls` are the first four, `total` is their sum. `compilations_before` and `compilations_after` count compiled
    frames. `peak_bytes` is resident memory of the process, compilation included; None where the system tells none.
    `graphs` and `breaks` are Dynamo's own counts of both arms; `eager_equal` says whether their eager results are the
    same, bit for bit, None where they change from call to call; `compiled_differs` how each arm's compiled result
    differs from its eager one beyond the dtype's tolerance, empty if it does not.
    """

    repetitions: int
    calls: tuple[ColdCall, ...]
    total: ColdCall
    compilations_before: int
    compilations_after: int
    peak_bytes: Compared | None
    graphs: tuple[int, int] | None = None
    breaks: tuple[int, int] | None = None
    eager_equal: bool | None = None
    compiled_differs: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class ProfileCounts:
    """What the profiler saw in a pass of its own, never timed; each a number per call of the model.

    `compiled_regions` are `Torch-Compiled Region` entries: how often Python enters compiled code. The rest is None on
    a CPU: `kernel_launches` and `graph_launches` (CUDA graphs) are what the host issues, `kernels` what the device
    runs, also from inside graphs; `syncs` are waits of the host for the device; `copies_to_host`, `copies_to_device`
    and `bytes_to_host` are copies between them.
    """

    compiled_regions: float
    kernel_launches: float | None = None
    graph_launches: float | None = None
    kernels: float | None = None
    syncs: float | None = None
    copies_to_host: float | None = None
    bytes_to_host: float | None = None
    copies_to_device: float | None = None


@dataclass(frozen=True)
class Steady:
    """Steady state in one configuration: `eager`, a backend's name, or `reduce-overhead`.

    `latency_s` is the time of one call, with the device waited for on CUDA, over all single passes (a pass is all
    inputs of the factory, its time is divided by their number). `calls_per_s_before` and `calls_per_s_after` are the
    throughput, without waiting between calls. `peak_bytes_before` and `peak_bytes_after` are resident memory on a CPU
    and `torch.cuda.max_memory_allocated` on CUDA, both after warm-up; None where the system tells none.
    `blocks_before_s` and `blocks_after_s` are the medians of the interleaved blocks of calls, in order of time, both
    of one length: what to plot. `profile_before` and `profile_after` are None when the profiler failed.
    """

    configuration: str
    latency_s: Compared
    calls_per_s_before: float
    calls_per_s_after: float
    peak_bytes_before: int | None
    peak_bytes_after: int | None
    blocks_before_s: tuple[float, ...]
    blocks_after_s: tuple[float, ...]
    profile_before: ProfileCounts | None
    profile_after: ProfileCounts | None


@dataclass(frozen=True)
class SpeedMachine:
    """Where it was measured. `load` is the load average of the last minute at start and end.

    `gpu`, `driver` and `clocks` (`graphics 1410 MHz, memory 5001 MHz`, as found right after the last timed calls, never
    set) are empty on a CPU.
    """

    processor: str
    cores: int
    system: str
    load: tuple[float, ...]
    gpu: str = ""
    driver: str = ""
    clocks: str = ""


@dataclass(frozen=True)
class SpeedRow:
    """One model's speed at the base and at the head.

    `message` is one line for the user, empty for `OK`. Everything after `seconds` (of wall time, for the whole
    measurement) is empty unless something was measured; with a status other than `OK` what there is was measured
    before the failure. `device` is `cpu` or `cuda`, `backend` what `torch.compile` was given. `date` is ISO 8601 in
    UTC. `remarks` are lines that a reader of the numbers must know.
    """

    model: str
    status: Status
    message: str
    seconds: float
    device: str = ""
    backend: str = ""
    date: str = ""
    machine: SpeedMachine | None = None
    versions: tuple[tuple[str, str], ...] = ()
    cold: Cold | None = None
    steady: tuple[Steady, ...] = ()
    remarks: tuple[str, ...] = ()
    schema: int = SPEED_SCHEMA

    @property
    def ok(self) -> bool:
        """True when everything that was asked for was measured."""
        return self.status is Status.OK
