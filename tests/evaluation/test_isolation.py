"""A model in a child process: what is measured, and that a bad one costs only its own row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from graphmend_evaluation.isolation import (
    Policy,
    clean_environment,
    evaluate_model,
    evaluate_models,
    measure_model,
)
from graphmend_evaluation.results import ModelMeasurement, ModelRow, Status
from tests.tools.processes import nothing_runs

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "evaluation")}
BEFORE = """
    import logging
    import os
    import warnings

    import torch

    logger = logging.getLogger(__name__)


    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x, shift=0.0):
            self.seen += 1
            x = self.linear(x)
            logger.warning("scaled")
            if x.shape[0] > 2:
                raise ValueError(f"too many: {x.shape[0]}")
            return {"scaled": x * 2 + shift, "shape": tuple(x.shape)}


    def scale():
        print("}{ garbage " * 1000)
        os.write(1, b"\\xff\\x00")
        return Scale(), [(torch.rand(2, 4),), {"x": torch.rand(1, 4), "shift": 0.5}, (torch.rand(3, 4),)]

"""
# The guard is right; other random numbers are drawn before the model is made, which pinned weights must survive.
AFTER = BEFORE.replace(
    '        logger.warning("scaled")',
    '        if not torch.compiler.is_compiling():\n                logger.warning("scaled")',
).replace("return Scale(), [", "torch.rand(7)\n        return Scale(), [")
BAD = """
    import ctypes
    import os
    import sys
    import time

    import torch


    def leaves():
        os._exit(0)


    def crashes():
        ctypes.string_at(0)


    def needs_much():
        return torch.nn.Linear(2, 2), (torch.empty(1 << 40),)
"""


def tree(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree(tmp_path_factory.mktemp("base"), tiny__nested____init__="", tiny____init__="", tiny__models=BEFORE)


@pytest.fixture(scope="module")
def row(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelRow, Path]:
    head = tree(tmp_path_factory.mktemp("head"), tiny____init__="", tiny__models=AFTER)
    folder = tmp_path_factory.mktemp("run")
    return evaluate_model(base, head, "tiny.models:scale", folder=folder), folder


def test_breaks_before_and_none_after(row: tuple[ModelRow, Path]) -> None:
    found, _ = row
    assert found.before.counts is not None
    assert found.after.counts is not None, found.after.message
    assert [site.path for site in found.before.counts.sites] == ["tiny/models.py"] * len(found.before.counts.sites)
    assert 'logger.warning("scaled")' in [site.source for site in found.before.counts.sites]
    assert 'logger.warning("scaled")' not in [site.source for site in found.after.counts.sites]


def test_right_rewrite_is_identical_in_eager_mode(row: tuple[ModelRow, Path]) -> None:
    found, _ = row
    assert found.after.against_base is not None
    assert found.after.against_base.differences == ()
    assert found.problems == ()
    assert found.ok


def test_a_model_that_prints_anything_is_measured(row: tuple[ModelRow, Path]) -> None:
    assert (row[0].before.status, row[0].after.status) == (Status.OK, Status.OK)


def test_every_call_is_observed(row: tuple[ModelRow, Path]) -> None:
    calls = row[0].after.calls
    assert [call.eager_error for call in calls] == [None, None, "ValueError: too many: 3"]
    assert [call.compiled_error for call in calls] == [None, None, "ValueError: too many: 3"]
    assert [call.compiled_difference for call in calls] == [None, None, None]
    assert [[message.text for message in call.eager_messages] for call in calls] == [["scaled"]] * 3
    assert [call.compiled_messages for call in calls[:2]] == [(), ()]
    assert calls[0].eager_messages[0].where == "tiny/models.py:forward"


@pytest.mark.parametrize(
    ("factory", "status", "told"),
    [
        ("leaves", Status.CRASHED, "ended with exit code 0 and no result, while running in eager mode"),
        ("crashes", Status.CRASHED, "ended by SIGSEGV, while running in eager mode"),
    ],
)
def test_bad_model_costs_its_own_row(tmp_path: Path, factory: str, status: Status, told: str) -> None:
    found = measure_model(tree(tmp_path / "tree", bad=BAD), f"bad:{factory}", folder=tmp_path / "run")
    assert found.status is status, found
    assert told in found.message
    assert "\n" not in found.message


def test_memory_limit_costs_the_row_of_the_model_that_needs_more(tmp_path: Path) -> None:
    policy = Policy(memory_bytes=8 << 30)
    found = measure_model(tree(tmp_path / "tree", bad=BAD), "bad:needs_much", folder=tmp_path / "run", policy=policy)
    assert found.status is Status.FAILED
    assert "memory" in found.message


# A module named `torch` in the worktree is what the child imports first: these children end before they load much.
def measured_with_own_torch(tmp_path: Path, source: str, timeout: float = 20) -> ModelMeasurement:
    root = tree(tmp_path / "tree", torch=source)
    return measure_model(root, "torch:factory", folder=tmp_path / "run", policy=Policy(timeout=timeout))


def test_hanging_child_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    found = measured_with_own_torch(
        tmp_path,
        f"""
        import subprocess, time
        subprocess.Popen(["sleep", "600.{os.getpid()}"])
        subprocess.Popen(["setsid", "--fork", "sleep", "600.{os.getpid()}"])
        open({str(marker)!r}, "w").close()
        time.sleep(600)
        """,
        timeout=2,
    )
    assert found.status is Status.TIMEOUT
    assert found.message == "no result after 2 s, while importing"
    assert marker.exists()
    assert nothing_runs(f"600.{os.getpid()}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import os; os._exit(3)", "the process ended with exit code 3 and left no result, while importing"),
        ("import os; os.kill(os.getpid(), 9)", "the process was ended by SIGKILL (out of memory?), while importing"),
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys; sys.exit('enough')", "while importing: enough"),
    ],
)
def test_child_that_dies_early_is_told_in_one_line(tmp_path: Path, source: str, told: str) -> None:
    found = measured_with_own_torch(tmp_path, source)
    assert found.status is Status.CRASHED
    assert told in found.message
    assert "\n" not in found.message


def test_child_that_floods_its_streams_is_killed(tmp_path: Path) -> None:
    found = measured_with_own_torch(tmp_path, "while True: print('x' * 1000000)")
    assert found.status is Status.FAILED
    assert found.message.startswith("wrote more than 64 MiB to its standard streams")


@pytest.mark.parametrize("own", [True, False], ids=["own processes", "shared"])
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_children_end_with_their_parent(tmp_path: Path, sign: signal.Signals, own: bool) -> None:
    root = tree(
        tmp_path / "tree",
        torch=f"""
        import secrets, pathlib, subprocess, time
        subprocess.Popen(["setsid", "--fork", "sleep", "700.{os.getpid()}"])
        pathlib.Path({str(tmp_path)!r}, f"{{secrets.token_hex(8)}}.began").touch()
        time.sleep(600)
        """,
    )
    arguments = f"P({str(root)!r}), P({str(root)!r}), ['torch:a', 'torch:b'], folder=P('run'), jobs=2"
    call = f"evaluate_models({arguments}, policy=Policy(own_processes={own}))"
    script = (
        f"from pathlib import Path as P; from graphmend_evaluation.isolation import Policy, evaluate_models; {call}"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while len(children := list(tmp_path.glob("*.began"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.send_signal(sign)
    assert parent.wait(timeout=20) != 0
    assert len(children) == 2
    assert nothing_runs(f"{root} --model")
    assert nothing_runs(f"700.{os.getpid()}")


def test_rows_come_one_by_one_and_in_order(tmp_path: Path) -> None:
    root = tree(tmp_path / "tree", torch="raise RuntimeError('never')")
    told: list[str] = []
    rows = evaluate_models(
        root,
        root,
        ["torch:one", "torch:two"],
        folder=tmp_path / "run",
        progress=lambda row: told.append(row.model),
    )
    assert [row.model for row in rows] == told == ["torch:one", "torch:two"]
    assert all(not row.ok for row in rows)


def test_children_see_no_secrets(tmp_path: Path) -> None:
    environment = {
        "PATH": "/bin",
        "HOME": "/home/someone",
        "GITHUB_TOKEN": "x",
        "HF_TOKEN": "x",
        "HF_HOME": "/models",
        "HF_ENDPOINT": "x",
        "AWS_REGION": "x",
        "MY_SECRET": "x",
        "DB_PASSWORD": "x",
        "API_KEY": "x",
        "SSH_AUTH_SOCK": "x",
        "google_application_credentials": "x",
        "HTTPS_PROXY": "http://user:pass@proxy:3128",
        "http_proxy": "http://proxy:3128",
        "DB_PASS": "x",
        "GHE_PAT": "x",
        "GIT_ASKPASS": "/usr/bin/knows",
        "VSCODE_GIT_IPC_HANDLE": "/run/knows",
        "PIP_INDEX_URL": "https://ghp_abc@packages.example.org/simple",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": "Authorization: basic abc",
        "EXTRA_HEADER": "Authorization: Bearer abc",
        "COMPASS": "north",
        "TORCH_LOGS": "+dynamo",
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "1",
    }
    cleaned = clean_environment(environment, tmp_path)
    assert {name: cleaned.get(name) for name in environment if name in cleaned} == {
        "PATH": "/bin",
        "HOME": str(tmp_path / "home"),
        "HF_HOME": "/models",
        "http_proxy": "http://proxy:3128",
        "COMPASS": "north",
    }
    assert cleaned["HF_HUB_OFFLINE"] == "1"
    assert cleaned["HF_HUB_CACHE"] == "/models/hub"
    assert clean_environment({"HOME": "/home/someone"}, tmp_path)["TORCH_HOME"] == "/home/someone/.cache/torch"


def test_measuring_imports_no_torch_into_the_parent(tmp_path: Path) -> None:
    script = "import sys, graphmend_evaluation.isolation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, cwd=tmp_path, check=False).returncode == 0


def test_only_a_model_of_the_hub_may_use_the_network(tmp_path: Path) -> None:
    assert clean_environment({}, tmp_path)["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in clean_environment({}, tmp_path, network=True)
