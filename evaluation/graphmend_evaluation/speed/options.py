"""What is measured, and how often."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_BUDGET = 300.0
"""Seconds for one model, for commands whose user says nothing else."""


@dataclass(frozen=True)
class SpeedOptions:
    """`device` is `auto` (CUDA where torch finds it), `cpu` or `cuda`; `backend` is what `torch.compile` is given.

    `cold` is the number of fresh processes for each arm, 0 for no cold start. `rounds` is the number of times that
    all long-lived processes take a block of calls of about `block_s` seconds each, 0 for no steady state;
    `processes` is how many of those each arm has: two show what chance alone does to a process. `configurations` are
    `eager`, names of backends and `reduce-overhead`; None for `eager` and the backend, and on CUDA `reduce-overhead`.
    `threads` are torch's on the CPU. `profile` asks for counts from the profiler. `budget_s` is about how long one
    model may take: fewer cold starts (one at least), rounds (six at least) and processes are made when it is used up,
    and a remark says so; None for no limit. `arms_at_once` starts and warms up both arms side by side, on a core each;
    they are still timed in turn.

    Raises `ValueError` for the backend `eager`, which would share its name with the model that is not compiled, and
    for counts that measure nothing.
    """

    device: str = "auto"
    backend: str = "inductor"
    cold: int = 4
    rounds: int = 20
    block_s: float = 0.05
    processes: int = 2
    configurations: tuple[str, ...] | None = None
    threads: int = 1
    profile: bool = True
    budget_s: float | None = None
    arms_at_once: bool = False

    def __post_init__(self) -> None:
        if self.backend == "eager":
            raise ValueError("the backend eager compiles nothing: name another one, such as inductor or aot_eager")
        if self.cold < 0 or self.rounds < 0 or self.processes < 1 or self.threads < 1:
            raise ValueError("cold and rounds must not be negative; processes and threads must be at least 1")


DEFAULT_OPTIONS = SpeedOptions()
