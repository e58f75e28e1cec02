"""Which of the models that were built are in the study or the exam."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from graphmend_evaluation.others.builders import SPLIT_SEED
from graphmend_evaluation.others.result import Result

MOST_OF_A_PACKAGE = 4


def drawn(results: Iterable[Result]) -> list[Result]:
    """Models that break in their package's own code; of a package with many, as many as the seed draws."""
    broken = [each for each in results if each.row.ok and each.own_events]
    chosen: list[Result] = []
    for package in sorted({each.package for each in broken}):
        mine = sorted((each for each in broken if each.package == package), key=_lot)
        chosen += sorted(mine[:MOST_OF_A_PACKAGE], key=lambda each: each.model)
    return chosen


def _lot(each: Result) -> bytes:
    return hashlib.sha256(f"{SPLIT_SEED} {each.key}".encode()).digest()
