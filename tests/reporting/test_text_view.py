"""What people see of findings on a terminal."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_codemod.core.colour import Paint, paint_for
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.reporting import statistics, text
from graphmend_codemod.reporting.report import Report

PLAIN = Paint()


_FULL = """\
package/model.py:3:26: GM101 [*] `if` on the tensor `x`
  |
2 |     def forward(self, x):
3 |         größe = "\N{GRINNING FACE}"; y = x if x.sum() > 0 else -x
  |                           ^^^^^^^^^^^^^^^^^^^^^^^^ GM101
  |
  = in: Net.forward
  = help: graphmend rule GM101

package/model.py:4:9: GM101 `if` on the tensor `x`
  |
3 |         größe = "\N{GRINNING FACE}"; y = x if x.sum() > 0 else -x
4 |         if (y > 0).all():
  |         ^^^^^^^^^^^^^^^^^ GM101
5 |             y = y + 1
6 |             y = y + 2
7 |             y = y + 3
8 |             y = y + 4
  | ...
  |
  = not applied: `y` has another shape in each branch, `a | b`
  = in: Net.forward
  = help: graphmend rule GM101

package/model.py:4:9: GM301 [unsafe] `if` on the tensor `x`
  |
3 |         größe = "\N{GRINNING FACE}"; y = x if x.sum() > 0 else -x
4 |         if (y > 0).all():
  |         ^^^^^^^^^^^^^^^^^ GM301
5 |             y = y + 1
6 |             y = y + 2
7 |             y = y + 3
8 |             y = y + 4
  | ...
  |
  = not applied: unsafe fix; show it with `graphmend fix --unsafe-fixes --diff`
  = in: Net.forward
  = help: graphmend rule GM301

package/model.py:12:9: GM107 `if` on the tensor `x`
   |
11 |     # a tab before this
12 |         return y
   |         ^^^^^^^^ GM107
   |
  = help: graphmend rule GM107

Found 4 break sites in 1 of 5 files: 1 fixable with `graphmend fix`, 1 with --unsafe-fixes, 1 declined, 1 advice. \
1 could not be checked."""


def test_full_view_shows_source_reason_and_summary(report: Report) -> None:
    assert "\n".join(text.full(report, PLAIN)) == _FULL


def test_concise_view_has_one_line_for_each_finding(report: Report) -> None:
    assert list(text.concise(report, PLAIN))[:-1] == [
        "package/model.py:3:26: GM101 [*] `if` on the tensor `x`",
        "package/model.py:4:9: GM101 `if` on the tensor `x`"
        " (not applied: `y` has another shape in each branch, `a | b`)",
        "package/model.py:4:9: GM301 [unsafe] `if` on the tensor `x`",
        "package/model.py:12:9: GM107 `if` on the tensor `x`",
    ]


def test_unsafe_fixes_count_as_fixable_when_asked_for(report: Report) -> None:
    lines = list(text.concise(replace(report, unsafe_fixes=True), PLAIN))
    assert lines[2].startswith("package/model.py:4:9: GM301 [* unsafe] ")
    assert lines[-1] == (
        "Found 4 break sites in 1 of 5 files: 2 fixable with `graphmend fix --unsafe-fixes` (1 unsafe), 1 declined, "
        "1 advice. 1 could not be checked."
    )


def test_no_findings_are_told(project: Path) -> None:
    assert list(text.full(Report((), (), 1, project), PLAIN)) == ["No break sites in 1 file."]


def test_paths_are_shown_from_the_current_folder(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(report.root / "package")
    assert next(iter(text.concise(report, PLAIN))).startswith("model.py:3:26: ")


def test_a_file_that_has_gone_keeps_its_findings(report: Report) -> None:
    (report.root / "package" / "model.py").unlink()
    lines = list(text.full(report, PLAIN))
    assert lines[0].startswith("package/model.py:3:")
    assert not any("|  " in line for line in lines)


def test_a_file_that_became_shorter_keeps_its_findings(report: Report) -> None:
    (report.root / "package" / "model.py").write_text("x\n")
    assert len([line for line in text.full(report, PLAIN) if line.startswith("package/model.py:")]) == 4


def test_stdin_text_is_shown_in_place_of_the_file(report: Report) -> None:
    given = {"package/model.py": b"a\nb\n        value = if_this\nc\n" + b"\n" * 20}
    assert "3 |         value = if_this" in list(text.full(replace(report, stdin=given), PLAIN))


def test_source_and_messages_cannot_steer_the_terminal(report: Report) -> None:
    (report.root / "package" / "model.py").write_text("\n\n        x = '\x1b]0;owned\x07\x9b31m'\n" + "\n" * 20)
    hostile = report.findings[0]._replace(message="\x1b[2J\nsecond line")
    shown = "\n".join(text.full(replace(report, findings=(hostile,)), PLAIN))
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\x07" not in shown
    assert "\nsecond line" not in shown


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_endings_give_the_same_places(report: Report, newline: str) -> None:
    before = list(text.full(report, PLAIN))
    path = report.root / "package" / "model.py"
    path.write_bytes(path.read_bytes().replace(b"\n", newline.encode()))
    assert list(text.full(report, PLAIN)) == before


def test_a_declared_encoding_is_honoured(report: Report) -> None:
    path = report.root / "package" / "model.py"
    path.write_bytes("# coding: latin-1\n\n    größe = x\n".encode("latin-1"))
    one = report.findings[0]._replace(span=report.findings[0].span._replace(start_column=14, end_column=15))
    lines = list(text.full(replace(report, findings=(one,)), PLAIN))
    assert lines[0].startswith("package/model.py:3:13: ")
    assert lines[3:5] == ["3 |     größe = x", "  |             ^ GM101"]


def test_colours_add_nothing_but_colour(report: Report) -> None:
    coloured = "\n".join(text.full(report, Paint(True)))
    assert "\x1b[1;31mGM101\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == "\n".join(text.full(report, PLAIN))


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_are_for_terminals(environment: dict[str, str], terminal: bool, expected: bool) -> None:
    ours, theirs = os.openpty() if terminal else os.pipe()
    with open(theirs, "w") as stream:
        assert paint_for(stream, environment).enabled is expected
    os.close(ours)


def test_statistics_count_by_rule_the_most_frequent_first(report: Report) -> None:
    assert list(statistics.text(report, PLAIN)) == [
        "2  GM101  [*]  tensor-if-assign  1 safe, 1 declined",
        "1  GM107  [ ]  tensor-while      1 advice",
        "1  GM301  [ ]  tensor-guard      1 unsafe",
    ]


def test_statistics_of_nothing_are_told(project: Path) -> None:
    assert list(statistics.text(Report((), (), 3, project), PLAIN)) == ["No break sites in 3 files."]


def test_wide_characters_move_the_underline(report: Report) -> None:
    line = '    s = "漢字e\u0301"; bad'
    (report.root / "package" / "model.py").write_text("\n\n" + line + "\n", encoding="utf-8")
    start = len(line.encode()) - 3
    span = report.findings[0].span._replace(start_column=start, end_column=start + 3)
    one: Finding = report.findings[0]._replace(span=span)
    underline = list(text.full(replace(report, findings=(one,)), PLAIN))[4]
    assert underline == "  |" + " " * (1 + len('    s = "') + 4 + 1 + len('"; ')) + "^^^ GM101"


def test_the_summary_names_the_way_out_of_an_old_lowest_torch(report: Report) -> None:
    declined = report.findings[0]._replace(edit=None, declined="the fix needs a newer torch", needs_torch=(2, 6))

    told = text.summary(Report((declined,), (), 1, report.root))

    assert told.endswith("1 declined. 1 more may be fixable with --target-torch 2.6.")
