"""Git commands that leave nothing behind but what they are for.

No hooks, no filters, no signing, no refreshed index, no variables of a surrounding git process. Commands run through
GitPython's command layer. Its object model is not used: it writes refs and objects by itself, without git's locks,
and knows neither SHA-256 nor reftable.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git.cmd import Git as CommandLayer

OVERRIDES = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "i18n.commitEncoding=UTF-8",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}

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
        super().__init__(f"git {arguments[0]}: {self.detail}")


def _ending(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"exit code {status}"


class Git:
    """Git in one folder. Raises `RepositoryError` when there is no git, `GitFailed` when a command fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def output(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Standard output of a command, as it is."""
        overrides = [option for value in (*OVERRIDES, *self._without_filters) for option in ("-c", value)]
        return self._run((*overrides, *arguments), arguments, stdin)

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
    def _without_filters(self) -> list[str]:
        """Settings that turn every configured filter (`git lfs`, `nbstripout`) into a no-op."""
        pattern = r"^filter\..*\.(clean|smudge|process|required)$"
        listing = ("config", "--name-only", "-z", "--get-regexp", pattern)
        try:
            names = os.fsdecode(self._run(listing, listing, b"")).split("\0")
        except GitFailed:
            return []
        # `-c` splits at the first `=`, so a filter with one in its name cannot be overridden.
        usable = sorted({name for name in names if name and "=" not in name})
        return [f"{name}={'false' if name.endswith('.required') else ''}" for name in usable]

    def _run(self, command: tuple[str, ...], named: tuple[str, ...], stdin: bytes) -> bytes:
        runner = _command_layer()
        # `-C`, not a working directory: GitPython falls back to the caller's own directory when it cannot enter one.
        full = [runner.GIT_PYTHON_GIT_EXECUTABLE, "-C", str(self.folder), *command]
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            # GitPython ends a process when its wrapper is collected, so the wrapper must live as long.
            running = runner().execute(full, istream=source, as_process=True, env=ENVIRONMENT)
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
