"""Commits are checked out for as long as they are measured; folders are taken as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_evaluation.checkouts import CheckoutError, checkouts
from tests.repository.tools import broken_repository, isolate


def test_a_commit_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch, tmp_path)
    repository = broken_repository(tmp_path / "zoo")
    marker = tmp_path / "marker"
    repository.write(".git/info/attributes", "* filter=e=vil\n")
    repository.write(".git/config.more", f'[filter "e=vil"]\n\tsmudge = "touch \'{marker}\'; cat"\n')
    repository.git("config", "include.path", "config.more")
    with checkouts(repository.folder, "main", str(tmp_path)) as (commit, folder):
        assert (commit / "zoo/model.py").is_file()
        assert folder == tmp_path
    assert not commit.exists()
    assert not marker.exists()
    with pytest.raises(CheckoutError, match="no commit is called 'nothing'"), checkouts(repository.folder, "nothing"):
        raise AssertionError
