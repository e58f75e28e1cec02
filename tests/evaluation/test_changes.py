"""Changes of a branch, each alone, and the search for the one that is to blame."""

from __future__ import annotations

import itertools

import pytest

from graphmend_evaluation.changes import FileChanges, Mark
from graphmend_evaluation.culprits import LimitReachedError, find_culprits
from graphmend_evaluation.evaluation import Source
from graphmend_evaluation.judging import Judge
from graphmend_evaluation.results import BreakSite, Counts, ModelMeasurement, ModelRow, Status

BASE = """\
import logging

from torch import nn


class Model(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        if x.sum() > 1:
            x = x * 3
        y = x + 1
        if y.sum() > 2:
            y = y * 4
        return y
"""
HEAD = """\
import logging

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        x = torch.where(x.sum() > 0, x * 2, x)
        x = torch.where(x.sum() > 1, x * 3, x)
        y = x + 1
        y = torch.where(y.sum() > 2, y * 4, y)
        return y
"""
MARKS = [Mark("GM101", "m.py", start, start + 1, "Model.forward") for start in (8, 10, 13)]


def changes() -> FileChanges:
    return FileChanges("m.py", BASE.encode(), HEAD.encode(), MARKS)


def test_each_site_is_a_change_of_its_own_even_without_a_line_between() -> None:
    found = changes().changes
    assert [(each.is_support, each.rules, each.base_start, each.base_lines) for each in found] == [
        (True, (), 3, 0),
        (False, ("GM101",), 8, 2),
        (False, ("GM101",), 10, 2),
        (False, ("GM101",), 13, 2),
    ]
    assert {each.function for each in found[1:]} == {"Model.forward"}


def test_any_selection_of_changes_is_a_text_that_python_takes() -> None:
    file = changes()
    names = [each.id for each in file.changes if not each.is_support]
    for count in range(len(names) + 1):
        for wanted in itertools.combinations(names, count):
            text = file.text(set(wanted)).decode()
            compile(text, "m.py", "exec")
            assert text.count("torch.where") == count
            assert ("import torch\n" in text) == (count > 0)
    assert file.text(set(names)).decode() == HEAD
    assert file.text(set()).decode() == BASE


def test_lines_of_the_head_are_found_again_in_the_base() -> None:
    file = changes()
    head = HEAD.splitlines()
    line = head.index("        y = x + 1") + 1
    assert file.at_head(line) is None
    assert BASE.splitlines()[file.base_line(line) - 1] == "        y = x + 1"
    written = head.index("        y = torch.where(y.sum() > 2, y * 4, y)") + 1
    change = file.at_head(written)
    assert change is not None
    assert change.base_start == 13
    assert file.base_line(written) == 13


def test_a_hunk_shows_what_went_and_what_came() -> None:
    shown = changes().changes[3].diff.splitlines()
    assert shown[0].startswith("@@ -10,6 +")
    assert [line for line in shown if line.startswith("-")] == ["-        if y.sum() > 2:", "-            y = y * 4"]
    assert [line for line in shown if line.startswith("+")] == ["+        y = torch.where(y.sum() > 2, y * 4, y)"]


RETURNING = BASE.replace(
    "        if x.sum() > 0:", "        if quick():\n            return fast(x)\n        if x.sum() > 0:"
)
"""A compile path that returns in front of the statement, which stays as it was."""


def counted(text: str, *broken: str) -> ModelMeasurement:
    lines = text.splitlines()
    sites = [
        BreakSite("m.py", number, "forward", source, "GB0170", "Data-dependent branching", "", 1)
        for number, source in enumerate(lines, 1)
        if source.strip() in broken
    ]
    counts = Counts(1, (1,), 0, len(sites), tuple(sites), 0, (), None)
    return ModelMeasurement("m:f", Status.OK, "", 1.0, counts, files=("m.py",))


@pytest.mark.parametrize(
    ("left", "useless"), [((), False), (("if x.sum() > 0:",), True), (("if y.sum() > 2:",), False)]
)
def test_a_path_that_returns_is_useless_where_what_is_behind_it_still_breaks(
    left: tuple[str, ...], useless: bool
) -> None:
    mark = next(number for number, line in enumerate(BASE.splitlines(), 1) if "x.sum() > 0" in line)
    marks = [Mark("GM801", "m.py", mark, mark + 1, "Model.forward")]
    judge = Judge({"m.py": FileChanges("m.py", BASE.encode(), RETURNING.encode(), marks)}, marks)
    before = counted(BASE, "if x.sum() > 0:", "if y.sum() > 2:")
    found = judge.model(ModelRow("m:f", before, counted(RETURNING, *left)), Source.OPTION)
    assert [each.change.id for each in judge.useless([found])] == ([each.id for each in judge.changes] * useless)
    assert ("if x.sum() > 0:" in [each.site.source.strip() for each in found.fixed]) is not useless


def test_a_new_file_and_a_deleted_one_are_changes_too() -> None:
    (added,) = FileChanges("n.py", b"", b"x = 1\n", []).changes
    (deleted,) = FileChanges("o.py", b"x = 1\n", b"", []).changes
    assert (added.head_lines, deleted.base_lines) == (1, 1)


@pytest.mark.parametrize("count", [1, 2, 7, 32])
def test_one_culprit_is_found_in_about_as_many_steps_as_halvings(count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    for culprit in names:
        asked: list[int] = []

        def is_bad(wanted: object, culprit: str = culprit, asked: list[int] = asked) -> bool:
            asked.append(1)
            return culprit in wanted  # type: ignore[operator]

        assert find_culprits(names, is_bad) == (culprit,)
        assert len(asked) <= count.bit_length() + 1


def test_several_culprits_are_all_found_and_of_a_bad_pair_one() -> None:
    names = [f"c{number}" for number in range(9)]
    assert set(find_culprits(names, lambda wanted: bool({"c2", "c7"} & wanted))) == {"c2", "c7"}
    assert find_culprits(names, lambda wanted: {"c2", "c7"} <= wanted) == ("c7",)


def test_the_search_gives_up_at_its_limit() -> None:
    with pytest.raises(LimitReachedError):
        find_culprits([f"c{number}" for number in range(64)], lambda wanted: len(wanted) > 0, limit=10)
