"""The list of rows of a corpus, and what its page says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_evaluation.results import Counts
from graphmend_evaluation.survey.corpus import RowsError, drawn, read_rows
from graphmend_evaluation.survey.corpus_page import Measured, answer, markdown
from graphmend_evaluation.survey.row import Row

_LISTED = Path(__file__).parents[2] / "evaluation" / "survey" / "corpus-rows.txt"


def test_the_list_of_the_corpus_is_read() -> None:
    rows = read_rows(_LISTED)
    modes = [row.rpartition(":")[2] for row in rows]
    assert (modes.count("eval"), modes.count("train")) == (134, 208)


def test_a_line_of_another_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("BartModel eval\nBartModel sometimes\n")
    with pytest.raises(RowsError, match=r"rows.txt:2: a line is a class and a mode"):
        read_rows(path)


def test_without_a_sample_all_rows_are_taken() -> None:
    rows = read_rows(_LISTED)
    assert sorted(drawn(rows, None, 0)) == sorted(rows)
    assert drawn(rows, 3, 0) == drawn(rows, None, 0)[:3]


def test_the_page_counts_what_safe_and_opaque_fixes_make_whole() -> None:
    broken = _row(breaks=2)
    rows = [
        Measured("A:eval", broken, _row(), None),
        Measured("B:eval", broken, _row(breaks=1), _row()),
        Measured("C:eval", broken, _row(breaks=1, differences=("output 0 differs",)), _row(breaks=1), _row()),
        Measured("D:eval", _row(), None, None),
        Measured("E:eval", Row("E:eval", "E", "unbuilt", "too large", 1.0), None, None),
    ]
    said = answer(rows)
    assert said.startswith("5 rows tried, 4 could be made small and called, 3 of these break here.")
    assert (
        "1 (33%) are one graph with safe fixes, 2 (67%) with opaque ones as well, 3 (100%) with unsafe ones too."
        in said
    )
    assert "differ in 1 of 3 compared" in said
    assert "| `C` eval | 2 | 1 | 1 | 0 | 5 |" in markdown(rows, {"date": "today"})
    assert "`C:eval`: safe: eager result changed: output 0 differs" in markdown(rows, {})


def _row(breaks: int = 0, differences: tuple[str, ...] = ()) -> Row:
    counts = Counts(breaks + 1, (), 0, breaks, (), 0, (), None)
    return Row("X", "X", "ok", "", 1.333, None, counts, None, differences)
