"""A process that has imported torch, and forks each measuring child: importing takes longer than most measurements.

It runs no code of a repository; its forks do, each under a supervisor of its own. There is at most one, and it ends
with this process. Linux only: elsewhere, and where a fork would not be what a new process is, there is none.

Imports no torch.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LARGEST_MESSAGE = 1 << 16
NUMBER = struct.Struct("i")
"""How a fork tells its process number, and how it ended."""

_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append(sys.argv.pop(1)); "
    "import runpy; runpy.run_module('graphmend_evaluation.forking', run_name='__main__', alter_sys=True)"
)
# Folders of each child, which torch reads when it is used and not when it is imported, and what differs in each test.
_ITS_OWN = frozenset({"HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "PYTEST_CURRENT_TEST"})
_ENDED_BY_ITS_SUPERVISOR = 1


@dataclass(frozen=True)
class Request:
    """What a fork becomes: `main(arguments)` of a module of this package, in `worktree`, with these variables.

    `note`, `memory` and `own_processes` are what `supervisor.supervise` needs.
    """

    module: str
    arguments: Sequence[str]
    worktree: str
    environment: Mapping[str, str]
    note: str
    memory: int
    own_processes: bool


class ForkedChild:
    """A fork of the server: what of `subprocess.Popen` is used of a child."""

    def __init__(self, told: int) -> None:
        self._told = told
        self.returncode: int | None = None
        number = self._read()
        if number is None:
            os.close(told)
            raise OSError("the server of forks ended")
        self.pid = number

    def poll(self) -> int | None:
        """How it ended, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            number = self._read()
            self.returncode = _ENDED_BY_ITS_SUPERVISOR if number is None else number
            os.close(self._told)
        return self.returncode

    def terminate(self) -> None:
        """Have its supervisor end it."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End its supervisor, and so it."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _read(self) -> int | None:
        told = os.read(self._told, NUMBER.size)
        return int(NUMBER.unpack(told)[0]) if len(told) == NUMBER.size else None


class ForkServer:
    """One server. `imported` are the names of the modules that its forks find imported; empty when it is of no use."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.environment = environment
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-c", _START, str(Path(__file__).resolve().parent.parent), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        said = self._connection.recv(LARGEST_MESSAGE)
        self.imported = frozenset(json.loads(said)) if said else frozenset()
        self._running: list[ForkedChild] = []

    @property
    def has_ended(self) -> bool:
        """Whether somebody ended it."""
        return self._process.poll() is not None

    @property
    def is_idle(self) -> bool:
        """Whether no fork of it runs."""
        self._running = [child for child in self._running if child.poll() is None]
        return not self._running

    def fork(self, request: Request, folder: Path) -> ForkedChild:
        """A fork that does what is asked; its streams go to files in `folder`. Raises `OSError`."""
        message = json.dumps(asdict(request)).encode()
        if len(message) > LARGEST_MESSAGE:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        told, theirs = os.pipe()
        try:
            with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
                socket.send_fds(self._connection, [message], [out.fileno(), err.fileno(), theirs])
        except OSError:
            os.close(told)
            raise
        finally:
            os.close(theirs)
        child = ForkedChild(told)
        self._running.append(child)
        return child

    def close(self) -> None:
        """End it, and with it the forks that are left."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class _Servers:
    """The server of this process, made when it is first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: ForkServer | None = None

    def serving(self, environment: Mapping[str, str], folder: Path) -> ForkServer | None:
        """The server with this environment, None where there is none to be had."""
        with self._lock:
            if self._server is not None and _shared(self._server.environment) != _shared(environment):
                if not self._server.is_idle:
                    return None
                self.close()
            if self._server is not None and self._server.has_ended:
                self.close()
            if self._server is None:
                self._server = ForkServer(environment, folder)
                atexit.register(self.close)
            return self._server if self._server.imported else None

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.close()
        self._server = None
        atexit.unregister(self.close)


_servers = _Servers()


def server_for(environment: Callable[[Path], Mapping[str, str]]) -> ForkServer | None:
    """The server for children with the variables that `environment` makes for a folder; None where there is none.

    Variables of a module path that begins in the current folder lead each child elsewhere. The folder is there only
    while the server starts: forks have their own.
    """
    if sys.platform != "linux":
        return None
    with tempfile.TemporaryDirectory(prefix="graphmend-forks-") as folder:
        variables = environment(Path(folder))
        paths = variables.get("PYTHONPATH")
        if paths and not all(map(os.path.isabs, paths.split(os.pathsep))):
            return None
        return _servers.serving(variables, Path(folder))


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _ITS_OWN}
