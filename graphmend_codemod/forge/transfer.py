"""Fetching from and pushing to a forge. Every command ends within a time, and no secret is anywhere but in a pipe.

Git asks a program for the password (GIT_ASKPASS). That program is three lines of shell that read it from a pipe which
the git command inherits: it is in no argument, variable or file. The program answers only for the forge's own address,
so that a redirect gets nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit

from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.forge.credentials import Credential, scrubbed
from graphmend_codemod.forge.retry import Patience
from graphmend_codemod.forge.sources import checked_out, left_out, recorded_runs
from graphmend_codemod.repository.git import OVERRIDES, Git

_TRIES = 3
_PASSING = re.compile(
    r"hung up|early EOF|RPC failed|unexpected disconnect|Could not resolve|Failed to connect|Connection (reset|timed)"
    r"|Recv failure|error: (429|50[0-9])|Empty reply|timed out",
    re.IGNORECASE,
)
_ASKED_AT_MOST = 16
_POLLED_AT_MOST = 1e6  # seconds
_PIPE = 4096  # bytes that any pipe holds before somebody reads
_CONFIG = (
    *OVERRIDES,
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",  # only ever to this machine: see location.py
    "protocol.ssh.allow=always",
    "http.followRedirects=initial",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.gpgSign=false",
    "push.followTags=false",
    "core.askPass=",
)


class BranchMoved(ForgeError):
    """Somebody else wrote to the branch since it was looked at; nothing was overwritten."""


class PushRefused(ForgeError):
    """The forge does not want this push, and will not want it later."""


@dataclass(frozen=True)
class Transfer:
    """A bare repository of our own in `folder`, and the repository at `url`. `scratch` is a folder for small files.

    With `sources_only`, of files only those that can matter are fetched (`sources.py`).
    """

    folder: Path
    url: str
    credential: Credential | None
    patience: Patience
    scratch: Path
    timeout: float
    sources_only: bool = False

    @cached_property
    def _git(self) -> Git:
        """Git in the folder. What its settings name is asked once, since nobody else writes to them."""
        return Git(self.folder)

    def heads(self, *branches: str) -> dict[str, str]:
        """Ids of the branches that there are."""
        patterns = [f"refs/heads/{branch}" for branch in branches]
        listing = self._patiently("ls-remote", "--quiet", "--refs", self.url, *patterns)
        rows = (line.split("\t", 1) for line in listing.splitlines() if "\t" in line)
        found = {name.removeprefix("refs/heads/"): oid for oid, name in rows}
        return {branch: found[branch] for branch in branches if branch in found}

    def fetch(self, reference: str, local: str, *, depth: int) -> None:
        """Fetch a branch (`refs/heads/...`) or `HEAD`, with no more history than asked for, as the reference `local`.

        With `sources_only`, without files.
        """
        options = ["--no-tags", "--no-write-fetch-head", f"--depth={depth}"]
        options += ["--filter=blob:none"] if self.sources_only else []
        self._patiently("fetch", "--quiet", *options, "--", self.url, f"+{reference}:{local}")
        self._seal()

    def fetch_sources(self, commit: str) -> None:
        """With `sources_only`, fetch the files of a commit that can matter and are not here yet."""
        if not self.sources_only:
            return
        git = self._git
        self._fetch_files(checked_out(git, commit) & left_out(git, commit))
        if runs := recorded_runs(git, commit, self.scratch):
            self._fetch_files(runs & left_out(git, commit))

    def _fetch_files(self, wanted: Collection[str]) -> None:
        if not wanted:
            return
        # Told what is here, the forge would believe that the files are, too.
        options = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
        self._patiently(
            *options,
            "--filter=blob:none",
            "--stdin",
            "--",
            self.url,
            stdin="".join(f"{oid}\n" for oid in sorted(wanted)),
        )
        self._seal()

    def _seal(self) -> None:
        """From here on what was left out is missing, and git does not go and fetch it file by file."""
        git = self._git
        if self.sources_only and git.succeeds("config", "--get", f"remote.{self.url}.promisor"):
            git.text("config", "--remove-section", f"remote.{self.url}")
            if not git.succeeds("config", "--get", "remote.left-out.promisor"):
                git.text("config", "remote.left-out.url", os.devnull)
                git.text("config", "remote.left-out.promisor", "true")

    def push(self, oid: str | None, branch: str, *, expected: str | None) -> None:
        """Set a branch to a commit, or delete it (None), if it still stands at `expected` (None: if there is none).

        Raises `BranchMoved` when it does not, `PushRefused` when a rule of the forge forbids it. A connection that
        breaks is no reason to believe that nothing happened: the branch is looked at before another try.
        """
        lease = f"--force-with-lease=refs/heads/{branch}:{expected or ''}"
        for left in reversed(range(_TRIES)):
            try:
                self._run("push", "--porcelain", "--no-verify", lease, self.url, f"{oid or ''}:refs/heads/{branch}")
                return
            except _Broken as error:
                if self.heads(branch).get(branch) == oid:
                    return
                if not left or not self._wait(left):
                    raise ForgeError(str(error)) from None

    def _patiently(self, *arguments: str, stdin: str = "") -> str:
        for left in reversed(range(_TRIES)):
            try:
                return self._run(*arguments, stdin=stdin)
            except _Broken as error:
                if not left or not self._wait(left):
                    raise ForgeError(str(error)) from None
        raise AssertionError("unreachable")

    def _wait(self, left: int) -> bool:
        seconds = float(_TRIES - left)
        if not self.patience.allows(seconds):
            return False
        self.patience.wait(seconds)
        return True

    def _run(self, *arguments: str, stdin: str = "") -> str:
        config = list(_CONFIG)
        if self.credential is not None:
            config.append("credential.helper=")  # ours is asked for, and theirs must not keep it
        options = [part for value in config for part in ("-c", value)]
        # Files, not pipes: what git has started may hold a pipe open for long after git has ended, as ssh masters do.
        with (
            self._askpass() as (variables, descriptors),
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            source.write(stdin.encode())
            source.seek(0)
            process = subprocess.Popen(
                ["git", "-C", str(self.folder), *options, *arguments],
                stdin=source,
                stdout=out,
                stderr=err,
                env={**_quiet_environment(), **self._git.environment, **variables},
                pass_fds=descriptors,
                start_new_session=True,
            )
            try:
                _wait_for(process, self.timeout)
            except subprocess.TimeoutExpired:
                _end(process)
                raise ForgeError(
                    f"git {_command(arguments)}: no end after {self.timeout:.0f} s; is {self._host()} reachable?"
                ) from None
            except BaseException:
                _end(process)
                raise
            printed, told = _text(out), _text(err)
        if process.returncode:
            raise self._failure(_command(arguments), f"{told}\n{printed}")
        return printed

    def _failure(self, command: str, told: str) -> ForgeError:
        told = scrubbed(told, self.credential)
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "!", "remote:"))] or lines[-1:]
        forbidding = self._git.hardening.forbidding
        if forbidding and "not allowed" in told:
            return ForgeError(
                f"git {command}: {forbidding[0]} in the settings of {self.folder} decides how git connects and is not "
                "trusted; push the branch by yourself, or name a clone without it"
            )
        said = "; ".join(" ".join(line.split()) for line in telling[:4])
        if "stale info" in told or "fetch first" in told or "cannot lock ref" in told:
            return BranchMoved(f"git push: the branch was written to meanwhile ({said}); run again")
        if "remote rejected" in told or "pre-receive hook declined" in told:
            return PushRefused(
                f"git push: {self._host()} refused the branch ({said}); "
                "allow it in the rules for branches, or choose another name in [tool.graphmend.pull-request] branch"
            )
        if re.search(r"Authentication failed|could not read (Username|Password)|error: 40[13]|Permission", told):
            return ForgeError(
                f"git {command}: {self._host()} refused the token ({said}); "
                "it needs the permission to write contents, or use --fork"
            )
        if "not found" in told or "error: 404" in told or "does not appear to be a git repo" in told:
            return ForgeError(f"git {command}: {self.url} does not exist, or the token may not see it ({said})")
        if _PASSING.search(told):
            return _Broken(f"git {command}: the connection to {self._host()} broke ({said}); try again later")
        return ForgeError(f"git {command}: {said or 'failed without a word'}")

    def _host(self) -> str:
        return urlsplit(self.url).netloc or self.url.partition(":")[0].rpartition("@")[2]

    @contextlib.contextmanager
    def _askpass(self) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
        """Variables and descriptors by which git gets the secret."""
        if self.credential is None or not self.url.startswith(("https://", "http://")):
            yield {"GIT_ASKPASS": "", "SSH_ASKPASS": ""}, ()
            return
        line = f"{self.credential.secret}\n".encode()
        if len(line) > _PIPE:
            raise ForgeError(f"what was given as the token for {self._host()} has {len(line)} bytes, which is no token")
        reading, writing = os.pipe()
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(line * min(_ASKED_AT_MOST, _PIPE // len(line)))
            script = self.scratch / "askpass"
            script.write_text(_askpass_script(self.url, self.credential.user, reading), encoding="utf-8")
            script.chmod(0o700)
            yield {"GIT_ASKPASS": str(script), "SSH_ASKPASS": ""}, (reading,)
        finally:
            os.close(reading)


class _Broken(ForgeError):
    """The connection broke; another try may succeed."""


def _askpass_script(url: str, user: str, descriptor: int) -> str:
    split = urlsplit(url)
    origin, encoded = f"{split.scheme}://{split.netloc}", quote(user, safe="")
    username = shlex.quote(f"Username for '{origin}': ")
    password = shlex.quote(f"Password for '{split.scheme}://{encoded}@{split.netloc}': ")
    return (
        "#!/bin/sh\n"
        'case "$1" in\n'
        f"{username}) printf '%s\\n' {shlex.quote(user)} ;;\n"
        f"{password}) IFS= read -r secret </dev/fd/{descriptor} && printf '%s\\n' \"$secret\" ;;\n"
        "*) exit 1 ;;\n"
        "esac\n"
    )


def _quiet_environment() -> dict[str, str]:
    """Without traces, which may show headers, in English, and asking nobody."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_TRACE", "GIT_CURL"))}
    kept.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=30")
    return {**kept, "LC_ALL": "C", "GIT_LFS_SKIP_PUSH": "1"}


def _command(arguments: tuple[str, ...]) -> str:
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def _wait_for(process: subprocess.Popen[bytes], timeout: float) -> None:
    """As `process.wait(timeout)`, which looks every 50 ms, longer than most commands take: Linux tells of the end."""
    until = time.monotonic() + timeout
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(process.pid)
            try:
                ending = select.poll()
                ending.register(descriptor, select.POLLIN)
                ending.poll(1000 * min(timeout, _POLLED_AT_MOST))
            finally:
                os.close(descriptor)
    process.wait(max(0.0, until - time.monotonic()))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace")
