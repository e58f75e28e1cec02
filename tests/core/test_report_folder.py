"""Where reports go when nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.core.report_folder import report_folder


def test_repositories_of_one_name_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_REPORTS", str(tmp_path))
    first, second = (report_folder(tmp_path / owner / "zoo" / ".git", "report") for owner in ("a", "b"))
    assert first != second
    assert first.parent.name.startswith("zoo-")
    assert first.parent.parent == tmp_path


def test_the_state_folder_of_the_system_is_used_and_the_git_folder_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRAPHMEND_REPORTS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert report_folder(tmp_path / "zoo.git", "r").is_relative_to(tmp_path / "graphmend")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert report_folder(tmp_path / "zoo.git", "r").is_relative_to(tmp_path / ".local" / "state" / "graphmend")
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    assert report_folder(tmp_path / "zoo.git", "r") == tmp_path / "zoo.git" / "graphmend" / "r"
