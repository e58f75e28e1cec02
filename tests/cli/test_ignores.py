"""Comments that suppress findings: added, and reported where they suppress nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main

Captured = pytest.CaptureFixture[str]
CHECK = ["check", "--no-cache"]


def _noted(project: Path, capsys: Captured, old: str, new: str, *more: str) -> tuple[int, str]:
    model = project / "model.py"
    model.write_text(model.read_text().replace(old, new))
    code = main([*CHECK, "--select", "GM7", *more])
    return code, capsys.readouterr().err


def test_added_ignores_leave_nothing_to_report_and_no_unused_comment(project: Path, capsys: Captured) -> None:
    assert main([*CHECK, "--add-ignores"]) == 0
    text = (project / "model.py").read_text()
    assert 'rows")  # graphmend: ignore[GM201]\n' in text
    capsys.readouterr()
    assert main([*CHECK, "--strict"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("No break sites")
    assert captured.err == ""


def test_added_ignore_joins_comments_that_are_there(project: Path) -> None:
    model = project / "model.py"
    text = (
        model.read_text().replace('rows")', 'rows")  # noqa').replace('"twice")', '"twice")  # graphmend: ignore[GM1]')
    )
    model.write_text(text)
    main([*CHECK, "--add-ignores"])
    assert "  # noqa  # graphmend: ignore[GM201]\n" in model.read_text()
    assert '"twice")  # graphmend: ignore[GM1, GM201]\n' in model.read_text()


def test_statement_over_several_lines_gets_its_comment_at_the_end(project: Path) -> None:
    model = project / "model.py"
    model.write_bytes(model.read_bytes().replace(b'f"got {x.shape[0]} rows")', b'\n  "got"\n)').replace(b"\n", b"\r\n"))
    main([*CHECK, "--add-ignores"])
    assert b'  "got"\r\n)  # graphmend: ignore[GM201]\r\n' in model.read_bytes()


def test_only_what_the_baseline_does_not_have_is_suppressed(project: Path) -> None:
    main([*CHECK, "--baseline", "known.json"])
    before = (project / "model.py").read_bytes()
    assert main([*CHECK, "--baseline", "known.json", "--add-ignores"]) == 0
    assert (project / "model.py").read_bytes() == before


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# graphmend: ignore[GM101]", "`GM101` is not found here"),
        ("# graphmend: ignore[GM201, GM101]", "`GM101` is not found here"),
        ("# graphmend: ignore[E501, GM201]", "no rule has the code `E501`"),
        ("# graphmend: ignore(GM201)", "is not understood"),
    ],
)
def test_useless_comment_is_named_with_its_line(project: Path, capsys: Captured, comment: str, words: str) -> None:
    code, err = _noted(project, capsys, 'rows")', f'rows")  {comment}')
    assert "model.py:10: " in err
    assert words in err
    assert code == 0


def test_useless_comment_counts_when_strict(project: Path, capsys: Captured) -> None:
    assert _noted(project, capsys, "return x, seen", "return x, seen  # graphmend: ignore", "--strict")[0] == 1


def test_comment_for_a_rule_that_is_not_selected_is_used(project: Path, capsys: Captured) -> None:
    assert _noted(project, capsys, 'rows")', 'rows")  # graphmend: ignore[GM201]') == (0, "")


def test_useless_codes_and_comments_are_removed_and_others_stay(project: Path, capsys: Captured) -> None:
    model = project / "model.py"
    before = model.read_text()
    text = before.replace('rows")', 'rows")  # graphmend: ignore[GM101, GM201]  # noqa')
    model.write_text(text.replace("return x, seen", "return x, seen  # graphmend: ignore"))
    assert main([*CHECK, "--remove-ignores"]) == 0
    assert model.read_text() == before.replace('rows")', 'rows")  # graphmend: ignore[GM201]  # noqa')
    assert "2 comments that suppressed nothing" in capsys.readouterr().err


def test_ignores_are_not_added_to_standard_input(project: Path, capsys: Captured) -> None:
    assert main([*CHECK, "--add-ignores", "-"]) == 2
    assert "do not go with `-`" in capsys.readouterr().err
