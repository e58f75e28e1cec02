"""A forge on this machine with one repository that has two break sites, and nothing of the user's settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forge.github_fake import GitHubFake, Repo
from tests.forge.server import Server, running
from tests.forge.tools import TOKEN, Hub, adopt
from tests.repository.tools import Repository, broken_repository, isolate


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Git settings, temporary files and tokens of a test are its own."""
    isolate(monkeypatch, tmp_path)
    for name in ("GRAPHMEND_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GITHUB_SERVER_URL", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits of this thread, which take no time here; other threads and `subprocess` sleep as they like."""
    waits: list[float] = []
    sleep = time.sleep

    def note(seconds: float) -> None:
        if seconds >= 0.1 and threading.current_thread() is threading.main_thread():
            waits.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr("time.sleep", note)
    return waits


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Git over HTTP, with authentication."""
    root = tmp_path / "forge"
    root.mkdir()
    with running(root) as server:
        server.users[TOKEN] = "bot"
        yield server


@pytest.fixture
def upstream(tmp_path: Path) -> Repository:
    """A clone of somebody who works on the project."""
    return broken_repository(tmp_path / "zoo")


@pytest.fixture
def hub(server: Server, upstream: Repository, slept: list[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """GitHub with the repository `octo/zoo`; `upstream` is a clone of it. Its contract must hold to the end."""
    fake = GitHubFake(server)
    server.api = fake
    fake.repos["octo/zoo"] = Repo("octo/zoo")
    hub = Hub(server, fake, upstream, slept)
    adopt(server, "octo/zoo", upstream)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    yield hub
    assert not fake.contract.broken, "\n".join(fake.contract.broken)
