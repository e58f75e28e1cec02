"""What git has started, waits that nobody can read, and addresses with passwords: neither a hang nor a leak."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.forge.credentials import Credential
from graphmend_codemod.forge.location import locate
from graphmend_codemod.forge.retry import Patience, asked_to_wait
from graphmend_codemod.forge.transfer import Transfer
from tests.forge.tools import Hub
from tests.repository.tools import empty_repository


def transfer(folder: Path, url: str, *, secret: str = "x", timeout: float = 60.0) -> Transfer:
    repository = empty_repository(folder / "workspace.git", "--bare")
    return Transfer(repository.folder, url, Credential("bot", secret), Patience(0), folder, timeout)


@pytest.mark.parametrize("how", ["sleep 20", "exit 1"])
def test_what_git_leaves_behind_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    # As an ssh master does, a process in a session of its own keeps git's standard error open.
    monkeypatch.setenv("GIT_SSH_COMMAND", f"sh -c 'setsid sleep 20 & {how}' --")
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    began = time.monotonic()
    with pytest.raises(ForgeError, match="no end after" if how == "sleep 20" else "ls-remote"):
        transfer(tmp_path, "ssh://git@127.0.0.1/octo/zoo", timeout=2.0).heads("main")
    assert time.monotonic() - began < 15


def test_a_token_as_long_as_a_file_is_told_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match="has 70001 bytes, which is no token") as caught:
        transfer(tmp_path, "https://127.0.0.1:1/octo/zoo", secret="s3cret-" * 10_000).heads("main")
    assert "s3cret" not in str(caught.value)


def test_a_long_token_reaches_git(hub: Hub) -> None:
    token = "t" * 2_000
    hub.server.users[token] = "bot"
    assert hub.pr(token=token).code == 0
    assert len(hub.pulls) == 1


UNREADABLE = ("soon", "1.5", "-1", "", "Wed, 99 Foo 2026")


@pytest.mark.parametrize("said", UNREADABLE)
def test_a_wait_that_nobody_can_read_was_not_said(said: str) -> None:
    assert asked_to_wait({"Retry-After": said}) is None


@pytest.mark.parametrize("said", UNREADABLE)
def test_a_wait_that_nobody_can_read_is_a_minute(hub: Hub, said: str) -> None:
    hub.fail("GET", "/api/v3/repos/octo/zoo$", 429, headers={"Retry-After": said})
    assert hub.pr().code == 0
    assert hub.slept == [60.0]


@pytest.mark.parametrize(
    "url",
    [
        "git+https://me:SECRET@github.com/octo/zoo",
        "ftp://me:SECRET@github.com/octo/zoo",
        "https://me:SECRET@/octo/zoo",
        "https://SECRET@github.com/%%",
        "http://me:SECRET@code.example.org/octo/zoo",
        "ssh://git:SECRET@github.com/%%",
        "me:SECRET@github.com:octo/zoo",
    ],
)
def test_an_address_is_told_without_what_is_secret_in_it(url: str) -> None:
    with pytest.raises(ForgeError) as caught:
        locate(url, kind="github", environment={})
    assert "SECRET" not in str(caught.value)


def test_the_address_of_an_api_is_told_without_what_is_secret_in_it() -> None:
    with pytest.raises(ForgeError, match=r"http://code\.example\.org/api: a token would") as caught:
        locate("https://github.com/octo/zoo", api="http://me:SECRET@code.example.org/api", environment={})
    assert "SECRET" not in str(caught.value)
