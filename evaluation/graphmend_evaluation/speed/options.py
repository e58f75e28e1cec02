"""What is measured, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpeedOptions:
    """`device` is `auto` (CUDA where torch finds it), `cpu` or `cuda`; `backend` is what `torch.compile` is given.

    `cold` is the number of fresh processes for each arm, 0 for no cold start. `rounds` is the number of times that
    all long-lived processes take a block of calls of about `block_s` seconds each, 0 for no steady state;
    `processes` is how many of those each arm has: two show what chance alone does to a process. `configurations` are
    `eager`, names of backends and `reduce-overhead`; None for `eager` and the backend, and on CUDA `reduce-overhead`.
    `threads` are torch's on the CPU. `profile` asks for counts from the profiler.
    """

    device: str = "auto"
    backend: str = "inductor"
    cold: int = 5
    rounds: int = 20
    block_s: float = 0.05
    processes: int = 2
    configurations: tuple[str, ...] | None = None
    threads: int = 1
    profile: bool = True


DEFAULT_OPTIONS = SpeedOptions()
