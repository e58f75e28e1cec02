"""Do models with more breaks gain more? Spearman's rank correlation, with its number of models said aloud."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

from graphmend_evaluation.xla.results import Correlation

_EXACT_UP_TO = 8
_SHUFFLES = 20_000
_SEED = 20240607
_FEW = 10
_FEWEST_FOR_AN_INTERVAL = 5
_NORMAL_95 = 1.959964


def correlation(of: str, first: Sequence[float], second: Sequence[float]) -> Correlation:
    """Spearman's rho of two quantities, `first[i]` and `second[i]` of one model, and its permutation p (two-sided).

    `of` names the quantities. All permutations are tried for up to eight models, a fixed random sample for more.
    """
    count = len(first)
    rho = _pearson(_ranks(first), _ranks(second)) if count >= 3 else None
    if rho is None:
        why = "fewer than three models" if count < 3 else "one of the quantities is the same for all models"
        return Correlation(of, count, None, None, f"not defined for n={count}: {why}")
    p = _p(_ranks(first), _ranks(second), rho)
    low, high = interval(rho, count) or (None, None)
    return Correlation(of, count, rho, p, _words(count, rho, p, interval(rho, count)), low, high)


def interval(rho: float, count: int) -> tuple[float, float] | None:
    """The 95 % interval of a Spearman's rho of `count` pairs; None for fewer than five.

    Fisher's transformation, with the variance `(1 + rho**2 / 2) / (count - 3)` of Bonett and Wright (Sample size
    requirements for estimating Pearson, Kendall and Spearman correlations, Psychometrika 65, 2000).
    """
    if count < _FEWEST_FOR_AN_INTERVAL:
        return None
    if abs(rho) >= 1.0:
        return rho, rho
    width = _NORMAL_95 * math.sqrt((1 + rho * rho / 2) / (count - 3))
    return math.tanh(math.atanh(rho) - width), math.tanh(math.atanh(rho) + width)


def _words(count: int, rho: float, p: float, within: tuple[float, float] | None) -> str:
    shown = f"rho={rho:+.2f}" + ("" if within is None else f" (95 %: {within[0]:+.2f} to {within[1]:+.2f})")
    small = f"; with n={count} models only a strong relation could show" if count < _FEW else ""
    if p >= 0.05:
        return f"{shown}, n={count}, p={p:.2g}: no relation shown{small}"
    return f"{shown}, n={count}, p={p:.2g}: {'more goes with more' if rho > 0 else 'more goes with less'}{small}"


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    for _, group in itertools.groupby(enumerate(order), key=lambda item: values[item[1]]):
        members = list(group)
        rank = sum(place for place, _ in members) / len(members) + 1
        for _, i in members:
            ranks[i] = rank
    return ranks


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    one, two = sum(first) / len(first), sum(second) / len(second)
    a, b = [value - one for value in first], [value - two for value in second]
    scale = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else None


def _p(first: Sequence[float], second: Sequence[float], rho: float) -> float:
    total = strong = 0
    for shuffled in _shuffled(second):
        found = _pearson(first, shuffled)
        total += 1
        strong += found is not None and abs(found) >= abs(rho) - 1e-12
    return strong / total


def _shuffled(values: Sequence[float]) -> Iterator[Sequence[float]]:
    if len(values) <= _EXACT_UP_TO:
        yield from itertools.permutations(values)
        return
    generator = random.Random(_SEED)
    yield values
    for _ in range(_SHUFFLES):
        yield generator.sample(values, len(values))
