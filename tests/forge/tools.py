"""The bot run against a forge on this machine."""

from __future__ import annotations

import contextlib
import io
import os
import re
from dataclasses import dataclass

from graphmend_codemod.cli.main import main
from tests.forge.github_fake import GitHubFake, Pull
from tests.forge.server import Fault, Server
from tests.repository.tools import Repository

TOKEN = "ghp_do/not+show=this"
BRANCH = "graphmend/fix-graph-breaks"


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Hub:
    """A GitHub with `octo/zoo`, a clone of it, and the waits of the bot."""

    server: Server
    fake: GitHubFake
    clone: Repository
    slept: list[float]

    @property
    def pulls(self) -> list[Pull]:
        """Pull requests of `octo/zoo`."""
        return self.fake.repos["octo/zoo"].pulls

    @property
    def tip(self) -> str | None:
        """Where the bot's branch is."""
        return self.server.branches("octo/zoo").get(BRANCH)

    def pr(self, *options: str, path: str = "octo/zoo", token: str = TOKEN, evaluate: bool = False) -> Ran:
        """`graphmend pr`, in this process; nothing that it says shows the token."""
        os.environ["GITHUB_TOKEN"] = token
        command = ["pr", f"{self.server.url}/{path}.git", "--forge", "github", "--api-url", self.fake.url]
        return run(*command, *options, token=token, evaluate=evaluate)

    def push(self, *refs: str) -> None:
        """Push as a person does."""
        self.clone.git("push", "--quiet", "origin", *refs)

    def fail(self, method: str, pattern: str, status: int | None = None, **more: object) -> None:
        """Let the next request that matches fail."""
        self.server.faults.append(Fault(method, pattern, status, **more))  # type: ignore[arg-type]

    def asked(self, pattern: str) -> int:
        """How many requests matched."""
        return sum(bool(re.search(pattern, line)) for line in self.server.seen)


def run(*arguments: str, token: str, evaluate: bool = False) -> Ran:
    """A command in this process; no line that it writes holds the token."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, "--evaluate" if evaluate else "--no-evaluate", "--jobs", "1", "--no-cache"])
    assert token not in out.getvalue() + err.getvalue()
    assert {"GITHUB_TOKEN", "GITLAB_TOKEN"}.isdisjoint(os.environ)
    return Ran(code, out.getvalue(), err.getvalue())


def adopt(server: Server, path: str, clone: Repository) -> None:
    """Make a repository of the forge out of a clone."""
    folder = server.root / f"{path}.git"
    folder.parent.mkdir(exist_ok=True, parents=True)
    clone.git("clone", "--quiet", "--bare", ".", str(folder))
    server.git(path, "config", "http.receivepack", "true")
    server.git(path, "config", "uploadpack.allowFilter", "true")
    clone.git("remote", "add", "origin", str(folder))
