import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from graphmend_codemod.cli.main import main
from graphmend_codemod.core import workers
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.workers import Workers, WorkersError
from graphmend_codemod.engine import api

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the test runner's threads hold no lock
forked = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux alone")
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        if torch.isinf(x).any():
            x = torch.clamp(x, -1.0, 1.0)
        return x
"""


@pytest.fixture(params=[pytest.param(True, id="forked", marks=forked), pytest.param(False, id="fresh")])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both kinds of workers in turn."""
    monkeypatch.setattr(workers, "can_fork", lambda: request.param)
    yield
    if not request.param:
        get_reusable_executor().shutdown(wait=True)  # its threads are none of the next test's


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked workers, whatever threads the test runner has."""
    monkeypatch.setattr(workers, "can_fork", lambda: True)


def project(root: Path) -> Path:
    for number in range(70):
        (root / f"m{number}.py").write_text(MODEL.replace("Model", f"Model{number}"))
    return root


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def until(true: object, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def doubled(number: int) -> int:
    return 2 * number


def of_the_legacy(number: int) -> int:
    return int(workers.inherited()[number]())


def die(*anything: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_results_come_in_the_order_of_the_arguments(either: None) -> None:
    with Workers(2) as crew:
        first = crew.run(doubled, ((number,) for number in range(20)))
        second = crew.run(doubled, ((number,) for number in range(20, 30)))
        assert [*first, *second] == [2 * number for number in range(30)]


ASK = "from graphmend_codemod.core.workers import can_fork; print(can_fork())"
WITH_A_THREAD = f"import threading; threading.Thread(target=input, daemon=True).start(); {ASK}"


@forked
@pytest.mark.parametrize(("text", "answer"), [(ASK, "True"), (WITH_A_THREAD, "False")])
def test_a_process_with_one_thread_can_fork(text: str, answer: str) -> None:
    asked = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert asked.stdout is not None
    assert asked.stdout.readline().strip() == answer
    asked.communicate("\n", timeout=60)


@forked
def test_forked_workers_have_what_cannot_be_sent(forks: None) -> None:
    with Workers(2, [lambda: 1, lambda: 2, lambda: 3]) as crew:
        assert list(crew.run(of_the_legacy, ((number,) for number in range(3)))) == [1, 2, 3]


def test_workers_that_are_not_forked_find_the_same(tmp_path: Path, either: None) -> None:
    project(tmp_path)
    alone = api.check([], Settings(tmp_path), jobs=1, cache=False)
    assert api.check([], Settings(tmp_path), jobs=2, cache=False) == alone
    assert len(alone.findings) == 70


def test_a_worker_that_was_killed_is_one_clear_line(either: None) -> None:
    reason = "killed, possibly out of memory; try --jobs 1"
    with pytest.raises(WorkersError, match=reason), Workers(2) as crew:
        list(crew.run(die, [(1,), (2,)]))


@forked
def test_the_command_says_that_a_worker_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project(tmp_path))
    monkeypatch.setattr("graphmend_codemod.engine.parallel._load_part", die)
    assert main(["check", "--jobs", "2", "--no-cache"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("graphmend: error: a worker process was killed")
    assert told.err.count("\n") == 1


SLEEPER = """
    import os, sys, time
    from graphmend_codemod.core.workers import Workers
    def sleep(number):
        with open(os.path.join(sys.argv[1], str(os.getpid())), "w"):
            time.sleep(60)
    with Workers(2) as crew:
        list(crew.run(sleep, [(1,), (2,)]))
"""


@forked
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_is_left_when_the_run_ends_early(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SLEEPER), str(tmp_path)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert until(lambda: len(list(tmp_path.iterdir())) == 2)
    processes = [int(path.name) for path in tmp_path.iterdir()]
    assert all(map(alive, processes))
    running.send_signal(how)
    running.communicate(timeout=30)
    assert until(lambda: not any(map(alive, processes)))
