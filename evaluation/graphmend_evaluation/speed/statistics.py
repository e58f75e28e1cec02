"""Is a difference larger than the noise? Pure functions over paired measurements."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

from graphmend_evaluation.speed.results import Compared, Difference, SpeedVerdict, Spread

_RESAMPLES = 2000
# A report has many rows: with 95 % one of twenty that changed nothing would claim a difference.
_CONFIDENCE = 0.99
_ENOUGH_PAIRS = 6
_FEWEST_PAIRS = 4
_SEED = 20240607


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of at least one number."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high, len(values))


def compared(before: Sequence[float], after: Sequence[float], *, noise: float = 0.0) -> Compared:
    """Both spreads and their paired difference; see `difference`."""
    return Compared(spread(before), spread(after), difference(before, after, noise=noise))


def difference(before: Sequence[float], after: Sequence[float], *, noise: float = 0.0) -> Difference:
    """The change from `before[i]` to `after[i]`, as a share of the median of `before`.

    `noise` is what is known about the noise otherwise, as a share. With six pairs or more the interval is a bootstrap
    of the median change (fixed random numbers: the same numbers give the same verdict). With four or five it is the
    range, and a verdict also asks that every value of one arm is below every value of the other: by chance that
    happens in less than 3 of 100 cases. With fewer no verdict is possible.

    Raises `ValueError` for no pairs, or arms of different length.
    """
    if not before or len(before) != len(after):
        raise ValueError("paired measurements are needed")
    scale = abs(statistics.median(before))
    changes = [(new - old) / scale if scale else 0.0 for old, new in zip(before, after, strict=True)]
    low, high = _interval(changes)
    noise = max(noise, (high - low) / 2)
    change = statistics.median(changes)
    verdict = _verdict(change, low, high, noise)
    if len(changes) < _FEWEST_PAIRS:
        verdict = SpeedVerdict.TOO_FEW
    elif len(changes) < _ENOUGH_PAIRS and not _apart(before, after):
        verdict = SpeedVerdict.NO_DIFFERENCE
    return Difference(change, low, high, noise, len(changes), verdict)


def apart(first: Sequence[float], second: Sequence[float]) -> float:
    """How far the medians of two processes that run the same code are apart, as a share of their mean."""
    one, two = statistics.median(first), statistics.median(second)
    return abs(one - two) / ((one + two) / 2) if one + two > 0 else 0.0


def _interval(changes: Sequence[float]) -> tuple[float, float]:
    if len(changes) < _ENOUGH_PAIRS:
        return min(changes), max(changes)
    generator = random.Random(_SEED)
    medians = sorted(statistics.median(generator.choices(changes, k=len(changes))) for _ in range(_RESAMPLES))
    outside = round((1 - _CONFIDENCE) / 2 * _RESAMPLES)
    return medians[outside], medians[-1 - outside]


def _verdict(change: float, low: float, high: float, noise: float) -> SpeedVerdict:
    if abs(change) <= noise or low <= 0 <= high:
        return SpeedVerdict.NO_DIFFERENCE
    return SpeedVerdict.LESS if change < 0 else SpeedVerdict.MORE


def _apart(before: Sequence[float], after: Sequence[float]) -> bool:
    return max(before) < min(after) or max(after) < min(before)
