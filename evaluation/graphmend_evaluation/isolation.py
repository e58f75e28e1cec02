"""Measure models in child processes: without secrets, within limits, and so that one model costs only its own row.

That guards against accidents, not against malice: see `containment` and `SECURITY.md`. This is what the codemod's
commands call. It imports neither torch nor any code that is measured.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_codemod.core.own_process import hide_this_process
from graphmend_evaluation import containment
from graphmend_evaluation.fork_server import ForkedChild, Request, server_for
from graphmend_evaluation.names import needs_network
from graphmend_evaluation.results import ModelMeasurement, ModelRow, Status, from_json
from graphmend_evaluation.worktree import provides_one_of

_Child = subprocess.Popen[bytes] | ForkedChild

DEFAULT_TIMEOUT = 600.0
LARGEST_OUTPUT = 64 * 2**20
LONGEST_MESSAGE = 300
_SWEEPING = 6.0  # seconds; a bit more than the supervisor takes

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY|CREDENTIAL|AUTH|COOKIE|PRIVATE"
    r"|ASKPASS|(^|_)(PASS|PAT)(_|$)|^GIT_CONFIG_(COUNT|KEY_|VALUE_|PARAMETERS)|^VSCODE_GIT"
    r"|^(HF|HUGGING_?FACE|HUGGINGFACEHUB|GITHUB|GH|GITLAB|CI_JOB|AWS|AZURE|GOOGLE|GCP|GCLOUD|WANDB|OPENAI|ANTHROPIC)_",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"://[^/\s@]+@|\bauthorization:", re.IGNORECASE)
# Folders that models are loaded from: no secrets, and without them what is there is not found.
_FOLDERS = frozenset({"HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME"})
_SETTINGS = re.compile(r"^(TORCH|PYTORCH|TORCHDYNAMO|TORCHINDUCTOR|DYNAMO|AOT)_|^PYTHON(WARNINGS|HASHSEED|STARTUP)$")
_FIXED = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_OFFLINE = frozenset({"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"})
_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append(sys.argv.pop(1)); import runpy; "
    "runpy.run_module('graphmend_evaluation.' + sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True)
class Policy:
    """What one child process may use.

    `timeout` is in seconds of wall time, `memory_bytes` of address space of each process; all its processes together
    have that, or else what `memory_for_one_of` gives to one of `jobs`. `environment` is what its
    environment is made from, `os.environ` if None; see `clean_environment`. `stop`, once set, ends the child from
    another thread. `network` lets the hub's client look for what is not on this machine yet. `own_processes` hides
    other processes where the system allows it, `sandbox` runs it in bubblewrap.
    """

    timeout: float = DEFAULT_TIMEOUT
    memory_bytes: int | None = None
    jobs: int = 1
    own_processes: bool = True
    sandbox: bool = False
    environment: Mapping[str, str] | None = None
    stop: threading.Event | None = None
    network: bool = False


DEFAULT_POLICY = Policy()


@dataclass(frozen=True)
class Ending:
    """How a child ended: `stopped` says why it was killed, None if it ended by itself."""

    returncode: int
    stopped: tuple[Status, str] | None
    seconds: float


def torch_is_installed() -> bool:
    """Whether models can be measured in this environment. Does not import torch."""
    return importlib.util.find_spec("torch") is not None


def measure_model(
    worktree: Path, model: str, *, folder: Path, against: Path | None = None, policy: Policy = DEFAULT_POLICY
) -> ModelMeasurement:
    """Measure `model`, a name as `names` has it, with the code of `worktree`, in a child process of its own.

    `folder` is made, and receives the state, the outputs and the streams of this arm. `against` is the folder of an
    earlier arm: its state is loaded strictly, and its eager results are compared with this arm's.

    Never raises for what the model or its factory does; the measurement's status says it.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    arguments = [] if against is None else ["--against", str(against.resolve())]
    policy = replace(policy, network=policy.network or needs_network(model))
    ending = run_with_model("measure", arguments, worktree, model, folder, policy)
    return _read(result, model, ending, folder)


def evaluate_model(base: Path, head: Path, model: str, *, folder: Path, policy: Policy = DEFAULT_POLICY) -> ModelRow:
    """Measure `model` in the worktree `base`, then in `head` with the same weights and inputs."""
    before, after = folder / "before", folder / "after"
    first = measure_model(base, model, folder=before, policy=policy)
    second = measure_model(head, model, folder=after, against=before if first.ok else None, policy=policy)
    return ModelRow(model, first, second)


def evaluate_models(
    base: Path,
    head: Path,
    models: Sequence[str],
    *,
    folder: Path,
    policy: Policy = DEFAULT_POLICY,
    jobs: int = 1,
    progress: Callable[[ModelRow], None] | None = None,
) -> tuple[ModelRow, ...]:
    """`evaluate_model` for each of `models`, `jobs` at a time; `progress` is called with each row as it is finished."""
    rows: dict[int, ModelRow] = {}

    def evaluate(number: int, policy: Policy) -> None:
        rows[number] = evaluate_model(base, head, models[number], folder=folder / f"{number:03d}", policy=policy)
        if progress is not None:
            progress(rows[number])

    in_parallel(evaluate, len(models), jobs=jobs, policy=policy)
    return tuple(rows[number] for number in range(len(models)))


def in_parallel(work: Callable[[int, Policy], None], count: int, *, jobs: int, policy: Policy) -> None:
    """Call `work` with each number below `count` and a policy, in `jobs` threads.

    On an exception, Ctrl-C too, the children that run under the policy are ended, nothing more is begun, and the
    exception is raised.
    """
    stop = threading.Event()
    policy = replace(policy, stop=stop, jobs=max(1, min(jobs, count)))
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        running = [pool.submit(work, number, policy) for number in range(count)]
        try:
            for each in as_completed(running):
                each.result()
        except BaseException:  # Ctrl-C reaches only this thread: children are in groups of their own
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def clean_environment(environment: Mapping[str, str] | None, folder: Path, *, network: bool = False) -> dict[str, str]:
    """`environment` without secrets and settings of torch; home, caches and temporary files are in `folder`.

    A variable goes when its name looks like a token, key or password, belongs to a hub, forge or cloud (`HF_`,
    `GITHUB_`, `AWS_`, ...) or leads to a program that knows passwords, or when its value is an address with a user or a
    header. Clients of the hub are told to stay offline unless `network` is allowed.
    """
    source = os.environ if environment is None else environment
    kept = {
        name: value
        for name, value in source.items()
        if name in _FOLDERS or not (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value) or _SETTINGS.search(name))
        if name not in containment.LEADING_HOME
    }
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        **containment.home_of_its_own(source, folder),
        **{name: value for name, value in _FIXED.items() if not (network and name in _OFFLINE)},
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }


def run_with_model(
    module: str, arguments: Sequence[str], worktree: Path, model: str, folder: Path, policy: Policy
) -> Ending:
    """Run a module of this package that imports torch and the code of one model, until it ends or must.

    `arguments` are those beside the worktree, the model, the folder and the limit of memory. It runs in a fork of a
    process that has imported torch already (`fork_server`), or in one of its own where that may not be the same.
    """
    arguments = ["--root", str(worktree.resolve()), "--model", model, "--out", str(folder), *arguments]
    if policy.memory_bytes is not None:
        arguments += ["--memory-bytes", str(policy.memory_bytes)]
    started = time.monotonic()
    forked = _fork(module, arguments, worktree.resolve(), model, folder, policy)
    if forked is not None:
        return _until_it_ends(forked, started, folder, policy)
    command = [sys.executable, "-c", _START, str(Path(__file__).resolve().parent.parent), module, *arguments]
    return run_child(command, worktree, folder, policy)


def _fork(
    module: str, arguments: Sequence[str], worktree: Path, model: str, folder: Path, policy: Policy
) -> ForkedChild | None:
    if policy.sandbox or policy.network or provides_one_of(worktree, model, {"torch"}):
        return None
    server = server_for(lambda own: clean_environment(policy.environment, own))
    if server is None or provides_one_of(worktree, model, server.imported):
        return None
    request = Request(
        module,
        arguments,
        str(worktree),
        clean_environment(policy.environment, folder),
        str(containment.note(folder)),
        _memory(policy),
        policy.own_processes,
    )
    hide_this_process()
    containment.forget_limit(folder)
    try:
        return server.fork(request, folder)
    except OSError:
        return None


def run_child(command: list[str], worktree: Path, folder: Path, policy: Policy) -> Ending:
    """Run a command in `worktree` under `policy` until it ends or must; its streams go to files in `folder`."""
    started = time.monotonic()
    return _until_it_ends(start_child(command, worktree, folder, policy), started, folder, policy)


def _until_it_ends(process: _Child, started: float, folder: Path, policy: Policy) -> Ending:
    stopped = None
    try:
        stopped = _watch(process, started, policy, folder)
    finally:
        kill_group(process)
        returncode = process.wait()
    return Ending(returncode, stopped, time.monotonic() - started)


def start_child(
    command: list[str], worktree: Path, folder: Path, policy: Policy, *, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a command as `run_child` does, and leave time limit and end (`kill_group`, `wait`) to the caller."""
    environment = clean_environment(policy.environment, folder, network=policy.network)
    whole = _contained(command, worktree, folder, policy, environment)
    hide_this_process()
    containment.forget_limit(folder)
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        return subprocess.Popen(
            whole,
            cwd=worktree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            pass_fds=pass_fds,
        )


def _contained(
    command: list[str], worktree: Path, folder: Path, policy: Policy, environment: Mapping[str, str]
) -> list[str]:
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    sandbox: list[str] = []
    if policy.sandbox:
        sandbox = containment.sandboxed(worktree, folder, environment, python=program, network=policy.network)
    return containment.contained(
        command, folder, memory=_memory(policy), own_processes=policy.own_processes, sandbox=sandbox
    )


def _memory(policy: Policy) -> int:
    return containment.memory_for_one_of(policy.jobs) if policy.memory_bytes is None else policy.memory_bytes


def how_it_ended(ending: Ending, folder: Path) -> str:
    """One line about a child that left no result."""
    if ending.stopped is not None:
        return f"{ending.stopped[1]}{_stage(folder)}"
    limit = containment.exceeded(folder)
    if limit is not None:
        return f"{limit}{_stage(folder)}"
    return f"{_death(ending.returncode)}{_stage(folder)}{_last_words(folder)}"


def _watch(process: _Child, started: float, policy: Policy, folder: Path) -> tuple[Status, str] | None:
    """Wait for the end. The reason to kill the process, None when it ended by itself."""
    for pause in _pauses():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(pause)
            return None
        if time.monotonic() - started >= policy.timeout:
            return Status.TIMEOUT, f"no result after {policy.timeout:g} s"
        if policy.stop is not None and policy.stop.is_set():
            return Status.FAILED, "interrupted"
        written = sum((folder / name).stat().st_size for name in ("stdout.txt", "stderr.txt"))
        if written > LARGEST_OUTPUT:
            return Status.FAILED, f"wrote more than {LARGEST_OUTPUT // 2**20} MiB to its standard streams"
    return None


def _pauses() -> Iterator[float]:
    pause = 0.01
    while True:
        yield pause
        pause = min(pause * 1.5, 0.25)


def kill_group(process: _Child) -> None:
    """Kill the process and all that it started, also what has left its group: the supervisor looks for that."""
    if process.poll() is None and sys.platform == "linux":
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SWEEPING)
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _read(result: Path, model: str, ending: Ending, folder: Path) -> ModelMeasurement:
    if ending.stopped is not None:
        return ModelMeasurement(model, ending.stopped[0], how_it_ended(ending, folder), ending.seconds)
    try:
        return from_json(ModelMeasurement, json.loads(result.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ModelMeasurement(model, Status.CRASHED, how_it_ended(ending, folder), ending.seconds)
    except (ValueError, TypeError, KeyError) as error:
        return ModelMeasurement(model, Status.CRASHED, f"unreadable result: {error}", ending.seconds)


def _stage(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return f", while {(folder / 'stage').read_text(encoding='utf-8').strip()}"
    return ", while starting"


def _death(returncode: int) -> str:
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = f"signal {-returncode}"
        return f"the process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"the process ended with exit code {returncode} and left no result"


def _last_words(folder: Path) -> str:
    """The last line of standard error, which names the cause more often than not."""
    with contextlib.suppress(OSError):
        lines = (folder / "stderr.txt").read_bytes()[-8192:].decode("utf-8", "replace").strip().splitlines()
        if lines:
            return f": {lines[-1].strip()[:LONGEST_MESSAGE]}"
    return ""
