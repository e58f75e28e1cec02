"""Which variants of a test the quick run leaves out."""

from __future__ import annotations

from scripts.slow_variants import left_out


def test_quick_variants_stay_and_so_does_a_third_of_those_that_are_all_slow() -> None:
    times = {"t::alone": 9.0, "t::some[a]": 0.1, "t::some[b]": 2.0, **{f"t::all[{n}]": 1.0 + n for n in range(4)}}
    assert left_out(times) == ["t::all[2]", "t::all[3]", "t::some[b]"]


def test_one_of_slow_variants_stays() -> None:
    assert left_out({"t::two[a]": 3.0, "t::two[b]": 2.0}) == ["t::two[a]"]


def test_examples_of_rules_all_stay() -> None:
    names = [f"tests/rules/test_examples.py::test_an_example[{code}]" for code in ("GM101", "GM102")]
    assert left_out(dict.fromkeys(names, 3.0)) == []
