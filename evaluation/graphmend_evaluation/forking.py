"""The process that `fork_server` starts: it imports torch once, and forks for each request.

    python -c START PACKAGE-PARENT SOCKET

The first message on the socket is a JSON array with the names of what is imported. Each message to it is a
`fork_server.Request` as JSON, with three descriptors: both streams of the fork, and a pipe on which the fork tells its
process number, and at its end how it ended. It ends when the other end of the socket is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any, NoReturn

from graphmend_evaluation import child_process, supervisor
from graphmend_evaluation.fork_server import LARGEST_MESSAGE, NUMBER

_PR_SET_DUMPABLE = 4
# What measuring imports, and of torch what compiling a first graph does (private, so that it may be missing).
_IMPORTED = (
    *(f"graphmend_evaluation.{name}" for name in ("measure", "compile_ways", "runs", "loading")),
    *("torch._dynamo.repro.after_dynamo", "torch._dynamo.backends.inductor", "torch.nn.attention.flex_attention"),
)


def main(descriptor: int) -> int:
    """Answer requests until the socket is closed."""
    _allow_to_look_in(False)
    connection = socket.socket(fileno=descriptor)
    child_process.import_torch()
    for module in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.freeze()
    connection.send(
        json.dumps(sorted({name.partition(".")[0] for name in sys.modules}) if _is_alone() else []).encode()
    )
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for a fork: it tells of its end itself
    server = os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, LARGEST_MESSAGE, 3)
        if not message:
            return 0
        if os.fork() == 0:
            connection.close()
            _supervise(server, json.loads(message), *descriptors)
        for each in descriptors:
            os.close(each)


def _allow_to_look_in(allowed: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(allowed), 0, 0, 0)


def _is_alone() -> bool:
    """Whether there is one thread: a fork has no other."""
    return len(os.listdir("/proc/self/task")) == 1


def _supervise(server: int, request: dict[str, Any], out: int, err: int, told: int) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for descriptor, stream in ((out, 1), (err, 2)):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.write(told, NUMBER.pack(os.getpid()))
        status = supervisor.supervise(
            functools.partial(_run, request, told),
            parent=server,
            note=request["note"],
            memory=request["memory"],
            own_processes=request["own_processes"],
        )
        if status is not None:
            os.write(told, NUMBER.pack(os.waitstatus_to_exitcode(status)))
    finally:
        os._exit(1)


def _run(request: dict[str, Any], told: int) -> NoReturn:
    """Be the process that is asked for, as one that was started anew would be."""
    status = 1
    try:
        os.close(told)
        _allow_to_look_in(True)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["worktree"])
        tempfile.tempdir = None
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        module = importlib.import_module(f"graphmend_evaluation.{request['module']}")
        sys.argv = [str(module.__file__), *request["arguments"]]
        status = module.main(request["arguments"])
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
