"""What child processes of both arms answered, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from graphmend_evaluation.speed.results import Cold, ColdCall, Compared, ProfileCounts, Steady
from graphmend_evaluation.speed.statistics import apart, compared, difference, spread

Answer = Mapping[str, Any]


def cold_result(before: Sequence[Answer], after: Sequence[Answer]) -> Cold:
    """What cold children of both arms answered, in pairs, put together."""
    count = len(before[0]["calls"])
    peaks = [[answer["peak_bytes"] for answer in arm] for arm in (before, after)]
    known = not any(peak is None for arm in peaks for peak in arm)
    return Cold(
        repetitions=len(before),
        calls=tuple(_cold_call(before, after, number + 1, [number]) for number in range(count)),
        total=_cold_call(before, after, 0, range(count)),
        compilations_before=before[0]["compilations"],
        compilations_after=after[0]["compilations"],
        peak_bytes=compared(*peaks) if known else None,
        **_checked(before[0], after[0]),
    )


def _checked(before: Answer, after: Answer) -> dict[str, Any]:
    if "graphs" not in before:
        return {}
    known = before["eager"] is not None and after["eager"] is not None
    return {
        "graphs": (before["graphs"], after["graphs"]),
        "breaks": (before["breaks"], after["breaks"]),
        "eager_equal": before["eager"] == after["eager"] if known else None,
        "compiled_differs": (before["differs"], after["differs"]),
    }


def _cold_call(before: Sequence[Answer], after: Sequence[Answer], number: int, indices: Sequence[int]) -> ColdCall:
    def quantity(of: Callable[[Answer], float]) -> Compared:
        return compared(*([sum(of(each["calls"][i]) for i in indices) for each in arm] for arm in (before, after)))

    return ColdCall(
        number=number,
        wall_s=quantity(lambda call: call["wall"]),
        cpu_s=quantity(lambda call: call["cpu"]),
        run_wall_s=quantity(lambda call: max(0.0, call["wall"] - call["compile"][0])),
        run_cpu_s=quantity(lambda call: max(0.0, call["cpu"] - call["compile"][1])),
    )


def steady_result(
    configuration: str,
    before: Sequence[Sequence[Answer]],
    after: Sequence[Sequence[Answer]],
    peaks: Sequence[int | None],
    counts: Sequence[ProfileCounts | None],
) -> Steady:
    """Blocks of each process of both arms, put together, with memory and the profiler's counts of each arm.

    A round's value is the mean over the arm's processes; how far those are apart is noise that no number of rounds
    makes smaller.
    """
    medians = [[[median(block["seconds"]) for block in process] for process in arm] for arm in (before, after)]
    noise = max([apart(one, two) for arm in medians for one in arm for two in arm], default=0.0)
    rounds = [[sum(values) / len(values) for values in zip(*arm, strict=True)] for arm in medians]
    singles = [[s for process in arm for block in process for s in block["seconds"]] for arm in (before, after)]
    rates = [[block["calls_per_s"] for process in arm for block in process] for arm in (before, after)]
    return Steady(
        configuration=configuration,
        latency_s=Compared(spread(singles[0]), spread(singles[1]), difference(*rounds, noise=noise)),
        calls_per_s_before=median(rates[0]),
        calls_per_s_after=median(rates[1]),
        peak_bytes_before=peaks[0],
        peak_bytes_after=peaks[1],
        blocks_before_s=tuple(rounds[0]),
        blocks_after_s=tuple(rounds[1]),
        profile_before=counts[0],
        profile_after=counts[1],
    )
