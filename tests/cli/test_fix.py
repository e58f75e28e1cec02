"""`graphmend fix`, as a user calls it."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main

Captured = pytest.CaptureFixture[str]
BinaryCaptured = pytest.CaptureFixture[bytes]


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_files_are_fixed_and_a_second_run_changes_nothing(project: Path, after: str, capsys: Captured) -> None:
    assert main(["fix"]) == 1
    assert (project / "model.py").read_text() == after
    assert capsys.readouterr().out == (
        "model.py: GM201\nFixed 1 break site in 1 file (1 declined, see graphmend check).\n"
    )
    assert main(["fix"]) == 0
    assert (project / "model.py").read_text() == after
    assert capsys.readouterr().out == "Nothing to fix in 2 files (1 declined, see graphmend check).\n"


def test_a_folder_beside_the_current_project_is_fixed(
    tmp_path: Path, before: str, after: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    current, other = tmp_path / "current", tmp_path / "other"
    current.mkdir()
    other.mkdir()
    (current / "pyproject.toml").write_text("[tool.graphmend]\n")
    (other / "model.py").write_text(before)
    monkeypatch.chdir(current)
    main(["fix", "../other", "--no-cache"])
    assert "is a link" not in capsys.readouterr().err
    assert (other / "model.py").read_text() == after


def test_exit_zero_is_for_those_who_do_not_want_to_be_stopped(project: Path, capsys: Captured) -> None:
    assert main(["fix", "--exit-zero"]) == 0


def test_a_clean_file_stays_as_it_is(project: Path, capsys: Captured) -> None:
    status = (project / "clean.py").stat()
    assert main(["fix", "clean.py"]) == 0
    assert (project / "clean.py").stat().st_mtime_ns == status.st_mtime_ns
    assert capsys.readouterr().out == "Nothing to fix in 1 file.\n"


def test_a_file_that_cannot_be_written_had_something_to_fix(project: Path, capsys: Captured) -> None:
    (project / "model.py").chmod(0o444)
    assert main(["fix", "model.py"]) == 2
    assert capsys.readouterr().out.startswith("Fixed nothing in 1 file")


def test_diff_can_be_applied_and_nothing_is_written(
    project: Path, before: str, after: str, capfdbinary: BinaryCaptured
) -> None:
    assert main(["fix", "--diff"]) == 1
    captured = capfdbinary.readouterr()
    assert captured.err == b"Would fix 1 break site in 1 file (1 declined, see graphmend check).\n"
    assert (project / "model.py").read_text() == before
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=captured.out, check=True)
    assert (project / "model.py").read_text() == after


def test_diff_of_nothing_is_empty(project: Path, capfdbinary: BinaryCaptured) -> None:
    assert main(["fix", "--diff", "clean.py"]) == 0
    assert capfdbinary.readouterr().out == b""


def test_standard_input_is_fixed_to_standard_output(
    project: Path, before: str, after: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: BinaryCaptured
) -> None:
    stdin(monkeypatch, before)
    assert main(["fix", "-", "--stdin-filename", "model.py"]) == 1
    assert capfdbinary.readouterr().out.decode() == after
    assert (project / "model.py").read_text() == before


def test_standard_input_that_cannot_be_parsed_comes_back_unchanged(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: BinaryCaptured
) -> None:
    text = "import torch\nclass Model(torch.nn.Module:\n"
    stdin(monkeypatch, text)
    assert main(["fix", "-"]) == 2
    captured = capfdbinary.readouterr()
    assert captured.out.decode() == text
    assert captured.err.startswith(b"graphmend: error: stdin.py:2: cannot be parsed: ")


def test_line_endings_and_marks_survive(project: Path, before: str, after: str, capsys: Captured) -> None:
    (project / "model.py").write_bytes(b"\xef\xbb\xbf" + before.replace("\n", "\r\n").encode())
    main(["fix"])
    assert (project / "model.py").read_bytes() == b"\xef\xbb\xbf" + after.replace("\n", "\r\n").encode()


def test_codes_that_are_not_selected_are_not_fixed(project: Path, before: str, capsys: Captured) -> None:
    assert main(["fix", "--select", "GM1"]) == 0
    assert (project / "model.py").read_text() == before


def test_a_broken_file_is_told_and_the_others_are_fixed(project: Path, after: str, capsys: Captured) -> None:
    (project / "broken.py").write_text("import torch\nclass Model(torch.nn.Module:\n")
    assert main(["fix"]) == 2
    assert "broken.py:2: cannot be parsed" in capsys.readouterr().err
    assert (project / "model.py").read_text() == after


def test_each_project_keeps_its_own_settings(project: Path, before: str, after: str, capsys: Captured) -> None:
    other = project / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text("[tool.graphmend]\nignore = ['GM2']\n")
    (other / "model.py").write_text(before)
    assert main(["fix", "other/model.py", "model.py"]) == 1
    assert (project / "model.py").read_text() == after
    assert (other / "model.py").read_text() == before
    assert capsys.readouterr().out.startswith("model.py: GM201\nFixed 1 break site in 1 file ")
