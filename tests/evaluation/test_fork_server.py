"""Measuring children are forks of a process that has imported torch, and as contained as a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphmend_evaluation.fork_server import Request, server_for
from graphmend_evaluation.isolation import Policy, clean_environment, measure_model
from graphmend_evaluation.results import ModelMeasurement, Status
from tests.evaluation.test_isolation import ENVIRONMENT, tree
from tests.tools.processes import nothing_runs

TELLS = """
    import json, os, pathlib, random, sys, tempfile
    import numpy, torch

    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    told = {
        "command": open("/proc/self/cmdline").read().replace("\\0", " "),
        "environment": dict(os.environ),
        "temporary": tempfile.gettempdir(),
        "folder": os.getcwd(),
        "random": [random.random(), float(numpy.random.rand())],
        "capabilities": int(status["CapEff"], 16) & ~int(status["CapBnd"], 16),
        "no new privileges": status["NoNewPrivs"].strip(),
        "arguments": sys.argv,
    }
    path = pathlib.Path(__file__).resolve().parent / "told.json"
    if not path.exists():
        path.write_text(json.dumps(told))

    def linear():
        return torch.nn.Linear(2, 2), (torch.rand(1, 2),)
"""


def told(root: Path, folder: Path, **files: str) -> dict[str, Any]:
    """What the code of a small model says of the process that measures it."""
    found = measure_model(tree(root, tells=TELLS, **files), "tells:linear", folder=folder)
    assert found.ok or files, found.message
    answer: dict[str, Any] = json.loads((root / "told.json").read_text())
    return answer


def is_fork(said: dict[str, Any]) -> bool:
    return "graphmend_evaluation.forking" in said["command"]


def test_a_fork_is_what_a_process_of_its_own_would_be(tmp_path: Path) -> None:
    said = [told(tmp_path / name, tmp_path / f"{name}-run") for name in ("one", "two")]
    assert all(map(is_fork, said))
    for name, each in zip(("one", "two"), said, strict=True):
        own = tmp_path / f"{name}-run"
        expected = clean_environment(None, own)
        assert {key: each["environment"].get(key) for key in expected} == expected
        assert (each["temporary"], each["folder"]) == (str(own / "tmp"), str(tmp_path / name))
        assert each["arguments"][1:3] == ["--root", str(tmp_path / name)]
        assert (each["capabilities"], each["no new privileges"]) == (0, "1")
    assert not set(said[0]["random"]) & set(said[1]["random"])


def test_nothing_of_the_server_is_left_in_temporary_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert server_for(lambda folder: clean_environment(None, folder)) is not None
    assert not list(tmp_path.iterdir())


def test_a_worktree_with_a_module_that_torch_imports_has_a_process_of_its_own(tmp_path: Path) -> None:
    assert not is_fork(told(tmp_path / "tree", tmp_path / "run", networkx="def __getattr__(name): raise ImportError"))
    assert is_fork(told(tmp_path / "other", tmp_path / "other-run", networks="", networkx__notes=""))


def measured(tmp_path: Path, code: str, timeout: float = 20) -> ModelMeasurement:
    root = tree(tmp_path / "tree", slow=code)
    return measure_model(root, "slow:factory", folder=tmp_path / "run", policy=Policy(timeout=timeout))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os._exit(3)", "the process ended with exit code 3 and left no result, while importing"),
        ("import os; os.kill(os.getpid(), 9)", "the process was ended by SIGKILL (out of memory?), while importing"),
    ],
)
def test_a_fork_that_dies_is_told_in_one_line(tmp_path: Path, code: str, message: str) -> None:
    found = measured(tmp_path, code)
    assert (found.status, found.message) == (Status.CRASHED, message)


HANGS = """
    import pathlib, subprocess, time
    subprocess.Popen(["setsid", "--fork", "sleep", "800.{number}"])
    pathlib.Path({marker!r}).touch()
    time.sleep(600)
"""


def test_a_fork_that_hangs_ends_with_all_that_it_started(tmp_path: Path) -> None:
    marker = tmp_path / "began"
    found = measured(tmp_path, HANGS.format(number=os.getpid(), marker=str(marker)), timeout=2)
    assert (found.status, found.message) == (Status.TIMEOUT, "no result after 2 s, while importing")
    assert marker.exists()
    assert nothing_runs(f"800.{os.getpid()}")


def test_a_fork_that_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    server = server_for(lambda folder: clean_environment(None, folder))
    assert server is not None
    code = "held = b'x' * (900 << 20)\nimport time\ntime.sleep(20)"
    arguments = ["--root", str(tree(tmp_path / "tree", big=code)), "--model", "big:factory", "--out", str(tmp_path)]
    note = tmp_path / "limit"
    environment = clean_environment(None, tmp_path)
    request = Request("measure", arguments, str(tmp_path), environment, str(note), 800 << 20, own_processes=True)
    assert server.fork(request, tmp_path).wait(20) == 1
    assert note.read_text() == "it took more than 0.781 GiB of memory"


SCRIPT = """
from pathlib import Path as P
import threading, time
from graphmend_evaluation import fork_server
from graphmend_evaluation.isolation import measure_model
work = lambda: measure_model(P("tree"), "slow:factory", folder=P("run"))
threading.Thread(target=work, daemon=True).start()
while not P({marker!r}).exists():
    time.sleep(0.05)
print(fork_server.server_for(lambda folder: fork_server._servers._server.environment)._process.pid, flush=True)
time.sleep(600)
"""


def test_the_server_and_its_forks_end_with_their_parent(tmp_path: Path) -> None:
    marker = str(tmp_path / "began")
    tree(tmp_path / "tree", slow=HANGS.format(number=os.getpid(), marker=marker))
    script = SCRIPT.format(marker=marker)
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        assert parent.wait(timeout=20) != 0
    deadline = time.monotonic() + 8
    while Path(f"/proc/{server}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{server}").exists()
    assert nothing_runs(f"800.{os.getpid()}")


def test_module_paths_that_begin_in_the_worktree_are_read_there() -> None:
    assert server_for(lambda folder: {"PYTHONPATH": f"{folder}{os.pathsep}parts"}) is None


def test_other_variables_are_other_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    said = told(tmp_path / "tree", tmp_path / "run")
    assert is_fork(said)
    assert said["environment"]["PYTHONPATH"] == str(tmp_path / "elsewhere")
