"""The process above a child that runs code of a repository: it ends all that the child started, and watches its memory.

    python -I -S supervisor.py --parent PID --note FILE --memory BYTES [--own-processes | --keep-privileges] -- COMMAND

It ends with its parent, PID. With `--own-processes`, COMMAND gets a process namespace with a `/proc` of its own where
the system allows it: it sees no other process, and whatever it starts ends with it. Elsewhere this process adopts what
COMMAND leaves behind and ends it. `--keep-privileges` is for commands that give up their own (bwrap). Linux only, and
the standard library only. `supervise` does the same where a function is called in place of a command.

Exit code and signal are those of COMMAND. When it takes more than BYTES of memory, FILE says so in one line.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES = 0x0002_0000, 0x1000_0000, 0x2000_0000
_PRIVATE, _QUIET = 0x0004_0000 | 0x4000, 0x2 | 0x4 | 0x8  # MS_PRIVATE | MS_REC; MS_NOSUID | MS_NODEV | MS_NOEXEC
# Capabilities of root that reach other processes, the kernel or devices; those for files stay.
_DROPPED = (2, 5, 8, 12, 13, *range(16, 28), 29, 30, 31, 32, 33, 34, 37, 38, 39, 40)
_CAPABILITIES_VERSION = 0x20080522
_LOOK_EVERY = 0.2  # seconds
_LONGEST_SWEEP = 5.0
_STATUS = struct.Struct("i")
_SIGNALS = {signal.SIGCHLD, signal.SIGTERM}


def main(arguments: list[str]) -> int:
    """Run COMMAND, and what is left to do when it has ended."""
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    status = supervise(
        lambda: _execute(command),
        parent=int(options[options.index("--parent") + 1]),
        note=options[options.index("--note") + 1],
        memory=int(options[options.index("--memory") + 1]),
        own_processes="--own-processes" in options,
        keeps_privileges="--keep-privileges" in options,
    )
    if status is None:
        return 1
    if os.WIFSIGNALED(status):
        _die_by(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def supervise(
    begin: Callable[[], NoReturn],
    *,
    parent: int,
    note: str,
    memory: int,
    own_processes: bool,
    keeps_privileges: bool = False,
) -> int | None:
    """Call `begin` in a process below this one, and wait for the end of that and of all that it started.

    Returns its status as `os.waitpid` does; None when it was not begun. `begin` must not return. See the module for the
    rest.
    """
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    if not _ends_with(parent, signal.SIGTERM):
        return None
    run = _Run(begin, keeps_privileges=keeps_privileges)
    status = None
    if own_processes:
        status = _wait(_start(run.as_first_process), note, memory)
    if status is None:
        status = _wait(_start(run.as_child), note, memory)
    _sweep()
    return status


class _Run:
    """What is run, and how much it may."""

    def __init__(self, begin: Callable[[], NoReturn], *, keeps_privileges: bool) -> None:
        self._begin = begin
        self._keeps_privileges = keeps_privileges

    def as_child(self, answer: int) -> None:
        """In a process of its own, beside all others."""
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            os.close(answer)
            self._execute(parent)
        _report(answer, process)

    def as_first_process(self, answer: int) -> None:
        """In a process namespace; reports nothing when there can be none."""
        user, group = os.geteuid(), os.getegid()
        _prctl(_PR_SET_DUMPABLE, 1)  # for the files of its own in `/proc`
        if user != 0 or _LIBC.unshare(_NEW_PROCESSES | _NEW_MOUNTS) != 0:
            if _LIBC.unshare(_NEW_USER | _NEW_PROCESSES | _NEW_MOUNTS) != 0:
                return
            try:
                for file, text in (
                    ("setgroups", "deny"),
                    ("uid_map", f"{user} {user} 1"),
                    ("gid_map", f"{group} {group} 1"),
                ):
                    _write(f"/proc/self/{file}", text)
            except OSError:
                return
        first = os.fork()
        if first == 0:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # its parent is not seen from here
            private = _LIBC.mount(b"none", b"/", None, _PRIVATE, None) == 0
            if private and _LIBC.mount(b"proc", b"/proc", b"proc", _QUIET, None) == 0:
                self.as_child(answer)
            os._exit(0)  # which ends all that is left in the namespace
        os.close(answer)
        os.waitpid(first, 0)

    def _execute(self, parent: int) -> NoReturn:
        try:
            if _ends_with(parent, signal.SIGKILL):
                with contextlib.suppress(OSError):  # the first to go when memory runs out
                    _write("/proc/self/oom_score_adj", "1000")
                if not self._keeps_privileges:
                    for capability in _DROPPED:
                        _prctl(_PR_CAPBSET_DROP, capability)
                    _give_up(_DROPPED)
                    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
                self._begin()
        finally:
            os._exit(127)


def _execute(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127)


def _give_up(capabilities: tuple[int, ...]) -> None:
    """Drop capabilities of this process; that of the bounding set is felt by the next program alone."""
    header = struct.pack("Ii", _CAPABILITIES_VERSION, 0)
    held = ctypes.create_string_buffer(24)  # effective, permitted, inheritable, of 32 capabilities each; twice
    if _LIBC.capget(header, held) == 0:
        lost = [sum(1 << number % 32 for number in capabilities if number // 32 == half) for half in (0, 1)]
        kept = [bits & ~lost[place // 3] for place, bits in enumerate(struct.unpack("6I", held.raw))]
        _LIBC.capset(header, struct.pack("6I", *kept))


def _start(work: Callable[[int], None]) -> int:
    """The pipe on which a fork reports the status of the command."""
    answer, theirs = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        try:
            os.close(answer)
            if _ends_with(parent, signal.SIGKILL):
                work(theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    return answer


def _report(answer: int, process: int) -> None:
    """Wait for the process, and for all that it leaves meanwhile, and say how it ended."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == process:
            os.write(answer, _STATUS.pack(status))
            return


def _wait(answer: int, note: str, memory: int) -> int | None:
    """The status that is reported; None when nothing is, or this process is to end."""
    with os.fdopen(answer, "rb", buffering=0) as pipe:
        os.set_blocking(answer, False)
        looked = time.monotonic()
        while True:
            told = pipe.read(_STATUS.size)
            if told:
                return int(_STATUS.unpack(told)[0])
            if told == b"":
                return None
            with contextlib.suppress(ChildProcessError):  # what was adopted and has ended by itself
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            signalled = signal.sigtimedwait(_SIGNALS, _LOOK_EVERY)
            if signalled is not None and signalled.si_signo == signal.SIGTERM:
                _sweep()
                os._exit(1)
            if not memory or time.monotonic() - looked < _LOOK_EVERY:
                continue
            looked = time.monotonic()
            if _taken(quick=True) > memory and _taken(quick=False) > memory:
                _write(note, f"it took more than {memory / 2**30:.3g} GiB of memory")
                _sweep()
                os._exit(1)


def _sweep() -> None:
    """End every process that is left. Orphans become children of this one, so that none gets away."""
    until = time.monotonic() + _LONGEST_SWEEP
    while time.monotonic() < until:
        for child in _children(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _taken(*, quick: bool) -> int:
    """Bytes of all processes below; the quick count takes shared pages for each of them."""
    total, pending = 0, list(_children(os.getpid()))
    while pending:
        process = pending.pop()
        pending += _children(process)
        with contextlib.suppress(OSError, ValueError, IndexError):
            if quick:
                total += int(_read(f"/proc/{process}/statm").split()[1]) * resource.getpagesize()
            else:
                lines = _read(f"/proc/{process}/smaps_rollup").splitlines()
                total += next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _children(process: int) -> Iterator[int]:
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError):
                yield from map(int, _read(f"/proc/{process}/task/{thread}/children").split())
    except OSError:
        return


def _die_by(number: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
    os.kill(os.getpid(), number)


def _ends_with(parent: int, number: int) -> bool:
    """Have a signal sent when the parent ends; false when it has ended before."""
    _prctl(_PR_SET_PDEATHSIG, number)
    return os.getppid() == parent


def _prctl(option: int, value: int) -> None:
    _LIBC.prctl(option, value, 0, 0, 0)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
