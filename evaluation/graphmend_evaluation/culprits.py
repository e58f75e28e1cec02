"""Which change is to blame: a bisection over changes, each step one measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

Bad = Callable[[Set[str]], bool]


class LimitReachedError(Exception):
    """The search was given up after its limit of measurements."""


def find_culprits(candidates: Sequence[str], is_bad: Bad, *, limit: int = 40) -> tuple[str, ...]:
    """The changes without which all is well, one after the other: fewest first steps, not the smallest set.

    `is_bad` measures the base with only the given changes; it must be true for all `candidates` and false for none of
    them. Each culprit takes about log2(len(candidates)) + 1 measurements. A change that is bad only together with
    another counts as one: the later of the two is named.

    Raises `LimitReachedError` when `limit` measurements did not suffice.
    """
    left = list(candidates)
    culprits: list[str] = []
    asked = 0

    def bad(count: int) -> bool:
        nonlocal asked
        if asked >= limit:
            raise LimitReachedError
        asked += 1
        return is_bad(frozenset(left[:count]))

    while left:
        culprits.append(left.pop(_first_bad(len(left), bad) - 1))
        if not bad(len(left)):
            break
    return tuple(culprits)


def _first_bad(count: int, bad: Callable[[int], bool]) -> int:
    """The smallest number of leading changes that is bad; all `count` of them are known to be."""
    good, known_bad = 0, count
    while known_bad - good > 1:
        middle = (good + known_bad) // 2
        if bad(middle):
            known_bad = middle
        else:
            good = middle
    return known_bad
