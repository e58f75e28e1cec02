#!/usr/bin/env python3
"""Write tests/slow_variants.txt: variants of parametrized tests that `make test` leaves out, since others of them run.

    python scripts/slow_variants.py run        # runs the tests, and notes the CPU seconds of each: half an hour
    python scripts/slow_variants.py write FILE # from such a file

A variant that takes over 0.4 CPU seconds, child processes included, is left out where a quicker variant of the same
test takes less. Where all take more, the quickest third of them stays. The examples of the rules all stay: each is of
another rule, and its page says that it was tested. So do variants that each guard a condition of their own, in the
tests that are named below.
"""

from __future__ import annotations

import collections
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_LISTED = _ROOT / "tests/slow_variants.txt"
_TIMES = "GRAPHMEND_TEST_TIMES"
_LONG = 0.4  # CPU seconds
_STAY = 3  # of this many, one
_ALL_STAY = (
    "tests/rules/test_examples.py::",
    "tests/forge/test_hostile",
    "tests/forge/test_transfer.py::test_what_git_leaves_behind_holds_nobody_up",
    "tests/migrate/test_migrate_accidents.py::test_an_interruption_leaves_neither_branch_nor_work_tree",
    "tests/evaluation/test_recorded_objects.py::test_another_kind_of_object_takes_the_author_s_path",
    "tests/rules/test_around_operators.py::test_a_recurrent_layer_that_is_replaced_after_compiling_is_told",
    "tests/rules/test_array_tests.py::test_other_arrays_are_tested_as_before",
    "tests/rules/test_cached_functions.py::test_a_function_of_numbers_is_called_as_a_whole",
    "tests/rules/test_checking_helpers.py::",
    "tests/rules/test_computed_anyway.py::test_a_number_is_not_written_before_its_time",
    "tests/rules/test_counted_masks.py::test_what_the_header_asks_for_may_be_false",
    "tests/rules/test_false_headers.py::",
    "tests/rules/test_initialised_state.py::",
    "tests/rules/test_kept_operands.py::",
    "tests/rules/test_listed_numbers.py::test_what_is_no_list_of_integers_is_read_as_before",
    "tests/rules/test_masks_by_kind.py::",
    "tests/rules/test_number_bounds.py::",
    "tests/rules/test_outlining.py::test_what_the_operator_cannot_take_runs_the_loop",
    "tests/rules/test_own_gradients.py::test_layers_that_keep",
    "tests/rules/test_recurrent_layers.py::test_a_layer_of_another_class_runs_as_the_author_wrote",
    "tests/rules/test_shapes_without_data.py::",
    "tests/rules/test_spectrograms.py::test_a_layer_that_may_compute_something_else_is_called",
    "tests/rules/test_tested_rows.py::test_where_zeros_would_not_do_the_test_of_the_author_runs",
    "tests/rules/test_unbacked_values.py::test_an_index_of_another_kind",
    "tests/rules/test_written_inputs.py::",
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """As a plugin: note what a test took, with its fixtures and the processes that it has waited for."""
    before = os.times()
    try:
        return (yield)
    finally:
        after = os.times()
        with open(os.environ[_TIMES], "a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, round(sum(after[:4]) - sum(before[:4]), 2)]) + "\n")


def left_out(times: dict[str, float]) -> list[str]:
    """The ids of the variants that are left out, in order."""
    tests = collections.defaultdict(list)
    for name, seconds in times.items():
        if name.startswith(_ALL_STAY):
            continue
        tests[name.partition("[")[0]].append((seconds, name))
    found = []
    for variants in tests.values():
        long = sorted(each for each in variants if each[0] > _LONG)
        stays = 0 if len(long) < len(variants) else math.ceil(len(long) / _STAY)
        found += [name for _, name in long[stays:]]
    return sorted(found)


def main() -> int:
    """Do what the command line says."""
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
        times: dict[str, float] = {name: spent for name, spent, *_ in map(json.loads, lines)}
        found = left_out(times)
        _LISTED.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
        seconds = sum(times[name] for name in found)
        print(f"{len(found)} of {len(times)} tests: {seconds:.0f} of {sum(times.values()):.0f} s")
        return 0
    if sys.argv[1:] != ["run"]:
        print(__doc__, file=sys.stderr)
        return 2
    file = _ROOT / ".test-times.jsonl"
    file.unlink(missing_ok=True)
    _LISTED.write_text("", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "slow_variants", "-n", "2", "-m", "not slow", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "scripts"), _TIMES: str(file), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=_ROOT, env=environment, check=False)
    print(f"the times are in {file}: python scripts/slow_variants.py write {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
