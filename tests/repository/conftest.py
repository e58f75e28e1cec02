"""Every test has git settings and temporary files of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.tools import Repository, broken_repository, isolate


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user's settings."""
    isolate(monkeypatch, tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with two break sites."""
    return broken_repository(tmp_path / "mymodels")
