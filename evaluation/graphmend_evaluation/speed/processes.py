"""Child processes that are asked for measurements. Imports no torch."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graphmend_evaluation.isolation import Ending, Policy, how_it_ended, kill_group, run_child, start_child
from graphmend_evaluation.results import Status

_MODULE = "graphmend_evaluation.speed.child"
_RESULT = "result.json"
_LONGEST_PAUSE = 0.25
_PIECE = 1 << 16
# Only this package is taken from where it lies: what else is installed beside it is not the child's.
_START = (
    "import sys, runpy, importlib.util as u; sys.path[:] = [p for p in sys.path if p]; f = sys.argv.pop(1); "
    "s = u.spec_from_file_location('graphmend_evaluation', f + '/__init__.py', submodule_search_locations=[f]); "
    "m = u.module_from_spec(s); sys.modules[s.name] = m; s.loader.exec_module(m); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


class MeasureError(Exception):
    """A measurement that could not be made, and how it ended. The text is one line."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def child_command(module: str, arguments: Sequence[str], *, python: Path | None = None) -> list[str]:
    """The command that runs a module of this package with `python`, or with this interpreter."""
    package = Path(__file__).resolve().parent.parent
    return [str(python or sys.executable), "-c", _START, str(package), module, *arguments]


def ask_once(
    module: str, arguments: Sequence[str], *, worktree: Path, folder: Path, policy: Policy, python: Path | None = None
) -> Any:
    """What a child that ends by itself left in `folder/result.json`.

    Raises `MeasureError` when it says that it could not, or left nothing.
    """
    result = folder / _RESULT
    result.unlink(missing_ok=True)
    command = child_command(module, [*arguments, "--out", str(folder), *_limits(policy)], python=python)
    try:
        ending = run_child(command, worktree, folder, policy)
    except OSError as error:
        raise MeasureError(Status.FAILED, f"{command[0]} cannot be started: {error.strerror}") from error
    if ending.stopped is not None:
        raise MeasureError(ending.stopped[0], how_it_ended(ending, folder))
    try:
        return _returned(result.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MeasureError(Status.CRASHED, how_it_ended(ending, folder)) from None


def answered(folder: Path) -> Any:
    """What an earlier child left in `folder`; None where none was, or where it could not do it."""
    try:
        return _returned((folder / _RESULT).read_text(encoding="utf-8"))
    except (FileNotFoundError, MeasureError):
        return None


class Partner:
    """A long-lived child that answers requests. It ends with the `with` block, whatever it does."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        worktree: Path,
        folder: Path,
        policy: Policy,
        module: str = _MODULE,
        python: Path | None = None,
    ) -> None:
        self.folder = folder
        self._policy = policy
        self._text = b""
        theirs, requests = os.pipe()
        self._answers, answers = os.pipe()
        pipes = ["--requests", str(theirs), "--answers", str(answers)]
        command = child_command(module, [*arguments, *pipes, "--out", str(folder), *_limits(policy)], python=python)
        self._started = time.monotonic()
        try:
            self._process = start_child(command, worktree, folder, policy, pass_fds=(theirs, answers))
        except BaseException:
            os.close(requests)
            os.close(self._answers)
            raise
        finally:
            os.close(theirs)
            os.close(answers)
        self._requests = os.fdopen(requests, "w")

    def __enter__(self) -> Partner:
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self._process)
        self._process.wait()
        with contextlib.suppress(OSError):  # what was still to be written to a dead process
            self._requests.close()
        os.close(self._answers)

    def ask(self, configuration: str, what: str, **arguments: Any) -> Any:
        """The answer to a request about one configuration, which must come within the policy's time limit.

        Raises `MeasureError` for an answer that is a failure, no answer, or an interruption.
        """
        try:
            self._requests.write(json.dumps({"of": configuration, "ask": what, "with": arguments}) + "\n")
            self._requests.flush()
        except BrokenPipeError:
            raise self._ended(None) from None
        deadline = time.monotonic() + self._policy.timeout
        while b"\n" not in self._text:
            ready, _, _ = select.select([self._answers], [], [], _LONGEST_PAUSE)
            if ready:
                piece = os.read(self._answers, _PIECE)
                if not piece:
                    raise self._ended(None)
                self._text += piece
            elif time.monotonic() > deadline:
                raise self._ended((Status.TIMEOUT, f"no answer after {self._policy.timeout:g} s"))
            elif self._policy.stop is not None and self._policy.stop.is_set():
                raise self._ended((Status.FAILED, "interrupted"))
        line, _, self._text = self._text.partition(b"\n")
        return _returned(line.decode())

    def _ended(self, stopped: tuple[Status, str] | None) -> MeasureError:
        if stopped is not None:
            kill_group(self._process)
        ending = Ending(self._process.wait(), stopped, time.monotonic() - self._started)
        return MeasureError(stopped[0] if stopped else Status.CRASHED, how_it_ended(ending, self.folder))


@contextlib.contextmanager
def partners(
    arguments: Sequence[Sequence[str]], *, worktrees: Sequence[Path], folders: Sequence[Path], policy: Policy
) -> Iterator[list[Partner]]:
    """Several partners, all ended with the block."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Partner(each, worktree=worktree, folder=folder, policy=policy))
            for each, worktree, folder in zip(arguments, worktrees, folders, strict=True)
        ]


def _limits(policy: Policy) -> list[str]:
    return [] if policy.memory_bytes is None else ["--memory-bytes", str(policy.memory_bytes)]


def _returned(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise MeasureError(Status.CRASHED, f"unreadable result: {error}") from error
    if "failed" in found:
        raise MeasureError(Status.FAILED, found["failed"])
    return found["returned"]
