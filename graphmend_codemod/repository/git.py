"""Run git commands without side effects on the user's repository.

No hooks, no filters, no signing, no refreshed index, no variables of a surrounding git process, no command that the
repository's own settings name (`command_settings`). Commands run through GitPython's command layer. Its object model is
not used: it writes refs and objects by itself, without git's locks, and knows neither SHA-256 nor reftable.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.repository.command_settings import Hardening, hardening

if TYPE_CHECKING:
    from git.cmd import Git as CommandLayer

OVERRIDES = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "i18n.commitEncoding=UTF-8",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
}

# Where a surrounding git (a hook, an alias, `git rebase --exec`) says that *its* repository and index are.
_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_CONFIG",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)

_LINES_TOLD = 3


class RepositoryError(Exception):
    """What cannot be done with a repository. The text is one line: what, cause, way out."""


class GitFailed(RepositoryError):
    """A git command failed. `detail` is git's own last words."""

    def __init__(self, arguments: tuple[str, ...], status: int, stderr: str) -> None:
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
        self.detail = "; ".join(telling[:_LINES_TOLD] or lines[-1:]) or _ending(status)
        self._command = arguments[0]
        super().__init__(f"git {self._command}: {self.detail}")

    def explain(self, forbidding: Sequence[str]) -> None:
        """Say which settings of the repository kept git from connecting, if that is what failed."""
        if forbidding and "not allowed" in self.detail:
            self.detail = (
                f"files are missing here and cannot be fetched, since the repository's own {forbidding[0]} decides how "
                "git connects, which is not trusted; fetch them with git, or move the setting to your own settings "
                "(`git config --global`)"
            )
            self.args = (f"git {self._command}: {self.detail}",)


def _ending(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"exit code {status}"


class Git:
    """Git in one folder. Raises `RepositoryError` when there is no git, `GitFailed` when a command fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def output(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Standard output of a command, as it is."""
        options = [option for value in OVERRIDES for option in ("-c", value)]
        try:
            return self._run((*options, *arguments), arguments, stdin, self.hardening)
        except GitFailed as error:
            error.explain(self.hardening.forbidding)
            raise

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        """Standard output without its final newline; undecodable bytes are kept as surrogates, as in file names."""
        return os.fsdecode(self.output(*arguments, stdin=stdin).removesuffix(b"\n"))

    def succeeds(self, *arguments: str) -> bool:
        """Whether a command that answers by its exit code says yes."""
        try:
            self.output(*arguments)
        except GitFailed:
            return False
        return True

    @cached_property
    def hardening(self) -> Hardening:
        """What switches off the commands that are named in the settings here."""
        for scope in (("--show-scope",), ()):  # git before 2.26 does not know scopes
            listing = ("config", "--list", "-z", "--name-only", *scope)
            try:
                told = os.fsdecode(self._run(listing, listing, b"", Hardening(()))).split("\0")[:-1]
            except GitFailed:
                continue
            return hardening(zip(told[::2], told[1::2], strict=True) if scope else (("local", name) for name in told))
        return Hardening(())

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a git command that is started in another way, beside those of this process."""
        return {**ENVIRONMENT, **self.hardening.environment(os.environ)}

    def _run(self, command: tuple[str, ...], named: tuple[str, ...], stdin: bytes, hardened: Hardening) -> bytes:
        runner = _command_layer()
        # `-C`, not a working directory: GitPython falls back to the caller's own directory when it cannot enter one.
        full = [runner.GIT_PYTHON_GIT_EXECUTABLE, "-C", str(self.folder), *command]
        environment = {**ENVIRONMENT, **hardened.environment(os.environ)}
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            # GitPython ends a process when its wrapper is collected, so the wrapper must live as long.
            running = runner().execute(full, istream=source, as_process=True, env=environment)
            process = running.proc
            assert process is not None
            try:
                out, err = process.communicate()
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if process.returncode:
            raise GitFailed(named, process.returncode, err.decode("utf-8", "replace"))
        return bytes(out)


def _command_layer() -> type[CommandLayer]:
    try:
        from git.cmd import Git as CommandLayer
    except ImportError as error:
        raise RepositoryError("git cannot be started: install git and put it on PATH") from error
    return CommandLayer


@contextlib.contextmanager
def without_git_environment() -> Iterator[None]:
    """Take out of the environment what binds git to another repository, and put it back afterwards."""
    removed = {name: os.environ.pop(name) for name in _INHERITED if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(removed)
