"""Answers that no forge gives, as proxies and broken servers send them: one line, and nothing is made twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphmend_codemod.forge.base import Forge, ForgeError, Project, Proposal
from graphmend_codemod.forge.credentials import Credential
from graphmend_codemod.forge.github import GitHub
from graphmend_codemod.forge.gitlab import GitLab
from graphmend_codemod.forge.retry import Patience
from tests.forge.server import Fault, Server
from tests.forge.tools import TOKEN, Hub

HTML = b"<!doctype html><title>Sign in</title><p>Your session is over."
ODD = {
    "truncated": b'{"id": 1, "full_name": "octo/zo',
    "a page": HTML,
    "a list": b"[]",
    "a list of numbers": b"[1, 2]",
    "a list of lists": b"[[]]",
    "null": b"null",
    "empty": b"",
    "a text": b'"hello"',
    "a number": b"7",
    "an empty object": b"{}",
    "another object": b'{"message": "ok", "number": "7", "iid": [], "title": 1, "state": "odd", "id": {}}',
    "no UTF-8": b'{"full_name": "\xff\xfe"}',
    "deep": b"[" * 100_000,
    "an endless number": b'{"id": 1' + b"0" * 5000 + b"}",
}
SOURCE = Project("octo/zoo", "", "", "main", False, True, 31)
PROPOSAL = Proposal(SOURCE, "branch", "main", "title", "body")
ASKED: dict[str, Callable[[Forge], object]] = {
    "project": lambda forge: forge.project(),
    "pull requests": lambda forge: forge.pull_requests(SOURCE, "branch"),
    "create": lambda forge: forge.create(PROPOSAL),
    "comments": lambda forge: forge.comments(7),
    "comment": lambda forge: forge.comment(7, "text"),
    "update": lambda forge: forge.update(7, title="title"),
    "fork": lambda forge: forge.fork(),
    "existing fork": lambda forge: forge.existing_fork(),
    "labels": lambda forge: forge.add_labels(7, ("one",)),
    "reviewers": lambda forge: forge.ask_for_review(7, ("ada",)),
    "attach": lambda forge: forge.attach("0" * 40, ("text",)),
}


def forge_at(server: Server, kind: str) -> Forge:
    credential = Credential("bot", TOKEN)
    if kind == "github":
        return GitHub(f"{server.url}/api/v3", "octo/zoo", credential, Patience(0))
    return GitLab(server.url, "octo/zoo", credential, Patience(0))


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_every_request_is_answered_oddly(server: Server, kind: str, name: str) -> None:
    """Each ends with an error of ours or with nothing found, never with one of a library's."""
    server.faults += [Fault(method, "", 200, body=ODD[name], times=999) for method in ("GET", "POST", "PATCH", "PUT")]
    for asked, ask in ASKED.items():
        with pytest.raises(ForgeError) as told:
            raise_if_quiet(ask(forge_at(server, kind)), asked)
        assert "\n" not in str(told.value), asked
        assert len(str(told.value)) < 500, asked


def raise_if_quiet(answer: object, asked: str) -> None:
    """Only what reads nothing of an answer may be content with any."""
    if answer is False and asked == "attach":
        raise ForgeError("not attached")
    raise AssertionError(f"{asked} took it for an answer: {answer!r}")


@pytest.mark.parametrize(
    ("request_line", "name"),
    [
        ("GET /api/v3/repos/octo/zoo$", "truncated"),
        ("GET /api/v3/repos/octo/zoo$", "a list"),
        ("GET /pulls[?]", "null"),
        ("GET /pulls[?]", "empty"),
        ("POST /pulls$", "a page"),
        ("POST /pulls$", "null"),
    ],
)
def test_the_bot_says_so_in_one_line(hub: Hub, request_line: str, name: str) -> None:
    method, _, pattern = request_line.partition(" ")
    hub.server.faults.append(Fault(method, pattern, 200, body=ODD[name], times=99))
    ran = hub.pr()
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert "the answer is none that GitHub gives" in line
    assert hub.pulls == []


@pytest.mark.parametrize("name", ["truncated", "null"])
def test_what_was_opened_in_spite_of_an_odd_answer_is_found(hub: Hub, name: str) -> None:
    hub.server.faults.append(Fault("POST", "/pulls$", 200, body=ODD[name], done=True))
    assert hub.pr().out.startswith("opened")
    assert len(hub.pulls) == 1


@pytest.mark.parametrize("status", [200, 302, 500])
def test_a_page_in_place_of_git_is_told_in_one_line(hub: Hub, status: int) -> None:
    headers = {"Location": "/sign-in"} if status == 302 else {}
    hub.server.faults.append(Fault("GET", "info/refs", status, headers=headers, body=HTML, times=99))
    ran = hub.pr()
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "Traceback" not in ran.err
