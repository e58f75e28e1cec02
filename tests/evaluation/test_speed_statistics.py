"""Which differences count: those outside the noise, and no others."""

from __future__ import annotations

import random

import pytest

from graphmend_evaluation.speed.results import SpeedVerdict
from graphmend_evaluation.speed.statistics import apart, compared, difference, spread


def noisy(center: float, share: float, count: int, seed: int) -> list[float]:
    generator = random.Random(seed)
    return [center * (1 + share * (generator.random() - 0.5)) for _ in range(count)]


def test_a_spread_is_median_and_quartiles() -> None:
    found = spread([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.low, found.median, found.high, found.count) == (2.0, 3.0, 4.0, 5)
    assert found.noise == pytest.approx(1 / 3)


def test_a_single_number_is_its_own_spread() -> None:
    assert spread([2.0]) == spread([2.0])
    assert spread([2.0]).noise == 0.0


def test_noise_alone_is_no_difference() -> None:
    found = difference(noisy(1.0, 0.2, 30, 1), noisy(1.0, 0.2, 30, 2))
    assert found.verdict is SpeedVerdict.NO_DIFFERENCE
    assert found.low < 0 < found.high


def test_of_many_comparisons_of_the_same_thing_hardly_one_claims_a_difference() -> None:
    claims = [difference(noisy(1.0, 0.3, 20, 2 * i), noisy(1.0, 0.3, 20, 2 * i + 1)).verdict for i in range(40)]
    assert sum(verdict is not SpeedVerdict.NO_DIFFERENCE for verdict in claims) <= 2


def test_a_fifth_less_is_less() -> None:
    found = compared(noisy(1.0, 0.05, 30, 1), noisy(0.8, 0.05, 30, 2)).difference
    assert found.verdict is SpeedVerdict.LESS
    assert found.change == pytest.approx(-0.2, abs=0.02)
    assert found.low <= found.change <= found.high < 0


def test_a_fifth_more_is_more() -> None:
    assert difference(noisy(1.0, 0.05, 30, 1), noisy(1.2, 0.05, 30, 2)).verdict is SpeedVerdict.MORE


def test_a_change_smaller_than_what_two_processes_differ_is_none() -> None:
    before, after = noisy(1.0, 0.01, 30, 1), noisy(0.95, 0.01, 30, 2)
    assert difference(before, after).verdict is SpeedVerdict.LESS
    found = difference(before, after, noise=0.08)
    assert found.verdict is SpeedVerdict.NO_DIFFERENCE
    assert found.noise == 0.08


def test_pairs_take_out_a_drift_that_both_arms_share() -> None:
    drift = [1.0 + 0.1 * number for number in range(20)]
    found = difference(drift, [value - 0.2 for value in drift])
    assert found.verdict is SpeedVerdict.LESS
    assert found.high - found.low < 0.01


def test_three_pairs_are_too_few_however_clear_they_look() -> None:
    assert difference([10.0, 10.1, 9.9], [1.0, 1.1, 0.9]).verdict is SpeedVerdict.TOO_FEW


def test_four_pairs_tell_only_when_all_of_one_arm_are_below_all_of_the_other() -> None:
    assert difference([10.0, 10.1, 9.9, 10.2], [8.0, 8.1, 7.9, 8.2]).verdict is SpeedVerdict.LESS
    assert difference([10.0, 12.0, 9.9, 14.0], [9.5, 11.0, 9.0, 13.0]).verdict is SpeedVerdict.NO_DIFFERENCE


def test_the_same_numbers_give_the_same_answer() -> None:
    before, after = noisy(1.0, 0.3, 25, 1), noisy(0.95, 0.3, 25, 2)
    assert difference(before, after) == difference(before, after)


def test_nothing_measured_is_no_difference_of_nothing() -> None:
    assert difference([0.0] * 8, [0.0] * 8).verdict is SpeedVerdict.NO_DIFFERENCE


@pytest.mark.parametrize(("before", "after"), [([], []), ([1.0], [1.0, 2.0])])
def test_unpaired_measurements_are_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match="paired"):
        difference(before, after)


def test_two_processes_are_apart_by_a_share_of_their_mean() -> None:
    assert apart([1.0, 1.0], [1.1, 1.1]) == pytest.approx(0.1 / 1.05)
    assert apart([0.0], [0.0]) == 0.0
