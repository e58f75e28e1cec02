"""Ways to compile a model, and what came of each: frozen values that travel as JSON through `results.to_json`.

This module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphmend_evaluation.results import CallResult, Counts, Status

COMPILATIONS_SCHEMA = 1
INDUCTOR = "inductor"
COUNTING = "counting"
BACKENDS = (COUNTING, INDUCTOR)


@dataclass(frozen=True)
class Way:
    """One way to call `torch.compile`.

    `flags` are names of `torch._dynamo.config` that are set to true, `dynamic` is `torch.compile`'s own argument.
    `backend` is `inductor`, or `counting` for graphs that run as they are.
    """

    name: str
    flags: tuple[str, ...] = ()
    dynamic: bool | None = False
    backend: str = COUNTING


@dataclass(frozen=True)
class Compiled:
    """What came of one way. `counts` is None and `calls` is empty unless `status` is `OK`; `message` is one line."""

    way: Way
    status: Status
    message: str
    seconds: float
    counts: Counts | None = None
    calls: tuple[CallResult, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What compiled mode does that eager mode does not, one line each; why there is no result, where none is."""
        if self.status is not Status.OK:
            return (self.message,)
        found = [(number, call.compiled_problem) for number, call in enumerate(self.calls, 1)]
        return tuple(f"call {number}: {problem}" for number, problem in found if problem is not None)

    @property
    def breaks(self) -> int | None:
        """Break events and skipped frames, None where nothing was counted."""
        return None if self.counts is None else self.counts.break_events + len(self.counts.skipped_frames)


@dataclass(frozen=True)
class Compilations:
    """One model compiled in several ways, in the order that was asked for. `message` is empty for `OK`.

    A way that was not reached, because the child was stopped or the first one left nothing to ask, is missing.
    """

    model: str
    status: Status
    message: str
    seconds: float
    compiled: tuple[Compiled, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    schema: int = COMPILATIONS_SCHEMA
