"""When a model counts as slower at the head: outside the noise, and by more than a fix may cost. Imports no torch."""

from __future__ import annotations

from dataclasses import replace

from graphmend_evaluation.reporting import quantities, view
from graphmend_evaluation.speed.options import SpeedOptions
from graphmend_evaluation.speed.results import Compared, SpeedRow, SpeedVerdict

STEADY, COLD, COLD_OUTLINED = 0.05, 0.10, 0.35
"""The largest share that a fix may cost: of a call, of a cold start, and of a cold start where a region is outlined."""

_STEADY, _COLD = "steady state", "cold start"


def slower(row: SpeedRow | None, *, outlined: bool = False) -> tuple[str, ...]:
    """What is slower at the head, each as `steady state 12.3 ms -> 15.1 ms (+23%)`; empty when nothing is known to be.

    `outlined` says that the head runs a region as one operator, which may take longer to compile.
    """
    return tuple(f"{name} {quantities.change_words(found)}" for name, found in _found(row, outlined).items())


def options_for(row: SpeedRow, wanted: SpeedOptions, *, outlined: bool = False) -> SpeedOptions:
    """What to measure to see again what is slower, and nothing else."""
    found = _found(row, outlined)
    return replace(
        wanted,
        cold=wanted.cold if _COLD in found else 0,
        rounds=wanted.rounds if _STEADY in found else 0,
        configurations=(row.backend,),
        profile=False,
    )


def _found(row: SpeedRow | None, outlined: bool) -> dict[str, Compared]:
    steady = view.steady_state(row)
    limits = (
        (_STEADY, None if steady is None else steady.latency_s, STEADY),
        (_COLD, view.cold_start(row), COLD_OUTLINED if outlined else COLD),
    )
    return {
        name: compared
        for name, compared, limit in limits
        if compared is not None
        and compared.difference.verdict is SpeedVerdict.MORE
        and compared.difference.change > limit
    }
