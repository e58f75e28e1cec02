"""Measure the test modules of one generated file of ParityBench, in a process of its own."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import signal
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from graphmend_evaluation import runs
from graphmend_evaluation.compare import digest
from graphmend_evaluation.counting import BreakRecorder, Call, first_line
from graphmend_evaluation.loading import Model, seed
from graphmend_evaluation.others import stubs
from graphmend_evaluation.results import Counts

Row = dict[str, Any]
MOST_CASES = 40
_M_PERTURB = -6
_FILLED_WITH = 0x3C
"""A byte of which four are a small float: 0.0115."""
_PREIMPORTED = """matplotlib.pyplot numpy pandas scipy scipy.io scipy.spatial scipy.misc sklearn sklearn.cluster
torchaudio torchvision torchvision.models torchvision.transforms cv2 PIL.Image tqdm torch._dynamo""".split()


def preimport() -> None:
    """What nearly every generated file imports, once for all."""
    torch.set_num_threads(1)
    _fill_new_memory()
    stubs.install()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _PREIMPORTED:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
        torch._dynamo.reset()
    sys.modules["_paritybench_helpers"] = _helpers()


def _fill_new_memory() -> None:
    """Let memory that a module never initialises (`nn.Parameter(torch.FloatTensor(8))`) hold the same in every run."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, _FILLED_WITH ^ 0xFF)


def _limit_time(seconds: int) -> None:
    """End this process after so many seconds of its own work, or five times as many of waiting for a busy machine."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(5 * seconds)


def measure_file(
    path: Path, first: int, report: Callable[[Row], None], limit: int, only: frozenset[int] | None
) -> None:
    """Report a row for each test module of `path` from the one numbered `first` on; `limit` is in seconds for each.

    A case that takes longer ends this process: whoever started it goes on behind that case.
    """
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(path.parent))
    _limit_time(4 * limit)
    try:
        cases = _cases(path)
    except BaseException as error:
        report({"case": -1, "status": "unreadable", "why": f"{type(error).__name__}: {first_line(str(error))}"[:200]})
        return
    for number in range(first, min(len(cases), MOST_CASES)):
        if only is not None and number not in only:
            continue
        report({"case": number, "status": "started"})
        _limit_time(limit)
        report({"case": number, **_measured(cases[number], path.parent)})
    _limit_time(0)


def _measured(case: tuple[Any, ...], root: Path) -> Row:
    kind, make_arguments, make_inputs = case[:3]

    def model() -> Model:
        seed()
        arguments, options = make_arguments()
        module = kind(*arguments, **options)
        module.eval()
        inputs, named = make_inputs()
        return Model(module, (Call(tuple(inputs), dict(named)),), False)

    row: Row = {"class": getattr(kind, "__name__", "?")}
    try:
        with torch.no_grad():
            first = model()
            (eager,) = runs.observe(first, first.target, root)
        if eager.error is not None:
            raise RuntimeError(eager.error)
    except Exception as error:
        return {**row, "status": "eager fails", "why": f"{type(error).__name__}: {first_line(str(error))}"[:200]}
    row["eager"] = fingerprint(eager)
    recorder = BreakRecorder(root)
    try:
        second = model()
        with recorder.recording():
            compiled = torch.compile(second.target, backend=recorder.backend, dynamic=False)
            (observed,) = runs.observe(second, compiled, root)
    except Exception as error:
        return {**row, "status": "compile fails", "why": f"{type(error).__name__}: {first_line(str(error))}"[:200]}
    counts = recorder.counts()
    difference = observed.error or runs.compiled_difference(eager, observed)
    return {
        **row,
        "status": "ok",
        **_counted(counts),
        "compiled": None if difference is None else first_line(difference),
    }


def _counted(counts: Counts) -> Row:
    return {
        "events": max(counts.break_events, len(counts.skipped_frames)),
        "graphs": counts.graphs,
        "opaque": counts.opaque_operators,
        "sites": [[site.path, site.line, site.source, site.kind, site.events] for site in counts.sites],
    }


def fingerprint(observed: runs.Observed) -> str:
    """A digest of all that is observed of one call."""
    parts = [repr(observed.error), repr(sorted(observed.result.values.items())), repr(observed.messages)]
    parts += [f"{path} {digest(tensor)} {tensor.stride()}" for path, tensor in sorted(observed.result.tensors.items())]
    parts.append(repr(sorted(observed.state.items())))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _cases(path: Path) -> list[tuple[Any, ...]]:
    text = path.read_text(encoding="utf-8")
    stubs.stand_in(_imported(text))
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    found: list[tuple[Any, ...]] = module.__dict__.get("TESTCASES", [])
    return found


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


class _Config(dict[str, Any]):
    """A dictionary whose keys are attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


class _Layer(torch.nn.ReLU):
    expansion = 1


def _helpers() -> types.ModuleType:
    """The module that generated files import, as far as measuring needs it."""
    module = types.ModuleType("_paritybench_helpers")
    names: Mapping[str, Any] = {
        "_mock_config": _Config,
        "_mock_layer": _mock_layer,
        "_paritybench_base": unittest.TestCase,
        "_fails_compile": lambda: lambda function: function,
        "patch_functional": _join_functional,
    }
    module.__dict__.update(names)
    return module


def _mock_layer(in_features: Any = None, out_features: Any = None, *_: Any, **options: Any) -> torch.nn.Module:
    return torch.nn.Linear(in_features, out_features, **options) if in_features and out_features else _Layer()


def _join_functional() -> None:
    """Projects import `torch.functional` or `torch.nn.functional` as `F`, and the generated files have one `F`."""
    first, second = torch.functional, torch.nn.functional
    for source, target in ((first, second), (second, first)):
        for name in dir(source):
            if name[0].islower() and not hasattr(target, name):
                setattr(target, name, getattr(source, name))


def in_fork(path: Path, log: Path, limit: int, only: frozenset[int] | None) -> list[Row]:
    """All rows of a file; a case that takes the process down costs its own row."""
    rows: dict[int, Row] = {}
    first = 0
    while True:
        log.unlink(missing_ok=True)
        ended = _run_fork(path, first, log, limit, only)
        lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
        for row in map(json.loads, lines):
            rows[int(row["case"])] = row
        last = max(rows, default=-1)
        if ended == 0 or not rows or last < first:
            if not rows and ended:
                rows[-1] = {"case": -1, "status": "unreadable", "why": f"ended with {ended}"}
            return [rows[number] for number in sorted(rows)]
        rows[last] = {"case": last, "status": "timeout" if ended in {signal.SIGALRM, signal.SIGPROF} else "crashed"}
        first = last + 1


def _run_fork(path: Path, first: int, log: Path, limit: int, only: frozenset[int] | None) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            with log.open("a", encoding="utf-8") as file:
                measure_file(path, first, lambda row: print(json.dumps(row), file=file, flush=True), limit, only)
            code = 0
        finally:
            os._exit(code)
    _, ending = os.waitpid(process, 0)
    return os.WTERMSIG(ending) if os.WIFSIGNALED(ending) else os.WEXITSTATUS(ending)
