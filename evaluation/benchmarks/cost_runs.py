"""Both arms of a case side by side: two child processes that are asked in turn."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.cost_arms import Pair
from benchmarks.cost_cases import Case, Phase
from benchmarks.outcome import load

from graphmend_evaluation.isolation import clean_environment
from graphmend_evaluation.speed.caches import copy_caches
from graphmend_evaluation.speed.turns import Turns

_CHILD = Path(__file__).with_name("cost_child.py")
_EVALUATION = Path(__file__).resolve().parents[1]
_TRIAL, _FEWEST, _MOST = 2, 1, 200


class ChildError(Exception):
    """A child that could not do what it was asked. The text is one line."""


@dataclass(frozen=True)
class Options:
    """How often, and for how long. `repeats` are cold starts an arm, `blocks` rounds of about `block_s` seconds.

    `turns` are shared by cases that are measured in other threads.
    """

    repeats: int = 1
    blocks: int = 8
    block_s: float = 0.06
    timeout: float = 900.0
    device: str = "cpu"
    turns: Turns = field(default_factory=Turns)


@dataclass(frozen=True)
class Record:
    """What one phase of a case took; each pair is before and after.

    `cold` and `wall` are seconds of cold starts, `steady` seconds of one call in interleaved blocks, `memory` bytes.
    `graphs`, `breaks` and `compilations` are those of the first cold start. `error` says why the rest is missing.
    """

    case: str
    phase: str
    digest: str
    date: str
    rules: tuple[str, ...]
    unsafe: tuple[str, ...]
    outlined: bool
    own_sizes: bool = False
    select: tuple[str, ...] = ()
    device: str = "cpu"
    cold: tuple[tuple[float, float], ...] = ()
    wall: tuple[tuple[float, float], ...] = ()
    steady: tuple[tuple[float, float], ...] = ()
    memory: tuple[int | None, int | None] = (None, None)
    graphs: tuple[int, int] = (0, 0)
    breaks: tuple[int, int] = (0, 0)
    compilations: tuple[int, int] = (0, 0)
    gradients: bool = True
    load: float = 0.0
    error: str = ""

    @property
    def key(self) -> tuple[str, str, tuple[str, ...], str]:
        """A record with the same key replaces another one."""
        return self.case, self.phase, self.select, self.device

    @property
    def cold_ratio(self) -> float | None:
        """After over before: processor seconds on a CPU, wall seconds on a GPU."""
        return _ratio(self.wall if self.device == "cuda" else self.cold)

    @property
    def steady_ratio(self) -> float | None:
        """After over before."""
        return _ratio(self.steady)


def read(path: Path) -> dict[tuple[str, str, tuple[str, ...], str], Record]:
    """The records of a file, the last of each key; none for a file that is not there."""
    found: dict[tuple[str, str, tuple[str, ...], str], Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, TypeError):  # the last line of an interrupted run
            record = from_json(json.loads(line))
            found[record.key] = record
    return found


def from_json(data: dict[str, Any]) -> Record:
    """The reverse of `asdict`, after JSON."""
    pairs = {name: tuple(tuple(each) for each in data[name]) for name in ("cold", "wall", "steady")}
    plain = ("rules", "unsafe", "select", "memory", "graphs", "breaks", "compilations")
    return Record(**{**data, **pairs, **{name: tuple(data[name]) for name in plain}})


def append(path: Path, record: Record) -> None:
    """Keep a record, whatever happens next."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")


class Partners:
    """A pair of child processes, one an arm, that end with the `with` block.

    A new pair is started when one of them has ended.
    """

    def __init__(self, work: Path, options: Options) -> None:
        self._work, self._options = work, options
        self._stack = contextlib.ExitStack()
        self._children: list[Partner] = []

    def __enter__(self) -> Partners:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        shutil.rmtree(self._work, ignore_errors=True)

    def measure(self, case: Case, phases: list[Phase], pair: Pair) -> Iterator[Record]:
        """One record for each of `phases`, as soon as it is measured. Never raises for what a model does."""
        fixes, device = pair.fixes, self._options.device
        empty = Record(
            case.id, "", pair.digest, _now(), fixes.rules, fixes.unsafe, fixes.outlined, case.own_sizes,
            device=device, load=load(),
        )  # fmt: skip
        try:
            children = self._alive()
            for child, arm in zip(children, (pair.before, pair.after), strict=True):
                child.ask("load", arm=str(arm), build=dict(case.build))
        except ChildError as error:
            yield from (replace(empty, phase=phase.name, error=str(error)) for phase in phases)
            return
        for phase in phases:
            try:
                yield _phase(replace(empty, phase=phase.name), phase, children, self._options)
            except ChildError as error:
                yield replace(empty, phase=phase.name, error=str(error))
                if any(child.ended for child in children):
                    return

    def imported(self, case: Case, arm: Path) -> frozenset[str]:
        """Files of an arm that the model of a case imports; none where it cannot be made."""
        child = self._alive()[0]
        try:
            child.ask("load", arm=str(arm), build=dict(case.build))
            return frozenset(child.ask("imported")["files"])
        except ChildError:
            return frozenset()

    def _alive(self) -> list[Partner]:
        if not self._children or any(child.ended for child in self._children):
            self._stack.close()
            self._children = [
                self._stack.enter_context(Partner(self._work / name, self._work.parent / "seed", self._options))
                for name in ("before", "after")
            ]
        return self._children


def _phase(record: Record, phase: Phase, children: list[Partner], options: Options) -> Record:
    cold: list[list[dict[str, Any]]] = []
    for number in range(options.repeats):
        answers: dict[int, dict[str, Any]] = {}
        for arm in (0, 1) if number % 2 == 0 else (1, 0):
            with options.turns.compiling():
                answers[arm] = children[arm].ask(
                    "cold", calls=list(phase.calls), gradients=phase.gradients, block=phase.block
                )
            if not answers[arm]["gradients"]:
                return replace(record, gradients=False)
        cold.append([answers[0], answers[1]])
    with options.turns.timing():
        steady = _steady(phase, children, options)
        memory = [child.ask("memory", passes=2)["bytes"] for child in children]

    def counts(name: str) -> tuple[int, int]:
        return cold[0][0][name], cold[0][1][name]

    return replace(
        record,
        cold=tuple((one["cpu"], two["cpu"]) for one, two in cold),
        wall=tuple((one["wall"], two["wall"]) for one, two in cold),
        steady=tuple(steady),
        memory=(memory[0], memory[1]),
        graphs=counts("graphs"),
        breaks=counts("breaks"),
        compilations=counts("compilations"),
    )


def _steady(phase: Phase, children: list[Partner], options: Options) -> list[tuple[float, float]]:
    """Seconds of one call before and after, in blocks that take turns."""
    trial = max(child.ask("block", passes=_TRIAL)["seconds"] for child in children) * len(phase.calls)
    passes = min(max(round(options.block_s / max(trial, 1e-6)), _FEWEST), _MOST)
    steady = []
    for number in range(options.blocks):
        seconds = {arm: children[arm].ask("block", passes=passes)["seconds"] for arm in _order(number)}
        steady.append((seconds[0], seconds[1]))
    return steady


@dataclass
class Partner:
    """A child process that answers. It ends with the `with` block.

    `seed` keeps what the first start of the toolchain leaves; what a phase compiles has caches of its own.
    """

    folder: Path
    seed: Path
    options: Options
    ended: bool = False
    _text: bytes = b""
    _process: Any = field(init=False, default=None)

    def __enter__(self) -> Partner:
        self.folder.mkdir(parents=True, exist_ok=True)
        copy_caches(self.seed, self.folder)
        environment = {
            **clean_environment(None, self.folder),
            "PYTHONPATH": str(_EVALUATION),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        command = [sys.executable, str(_CHILD), "--work", str(self.folder)]
        with (self.folder / "errors.txt").open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, "--device", self.options.device],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=self.folder,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        with contextlib.suppress(OSError):  # what was still to be written to a dead process
            self._process.stdin.close()
        with self.options.turns.starting:
            if not self.seed.is_dir():
                copy_caches(self.folder, self.seed)

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """The answer. Raises `ChildError` for a failure, no answer in time, or a dead child."""
        try:
            self._process.stdin.write(json.dumps({"ask": what, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._dead("ended before it was asked") from None
        deadline = time.monotonic() + self.options.timeout
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left))
            if not ready:
                self._process.kill()
                raise self._dead(f"no answer to {what} after {self.options.timeout:g} s")
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                raise self._dead(f"ended while it was asked for {what}")
            self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        answer = json.loads(line)
        if "failed" in answer:
            raise ChildError(f"{self.folder.name}: {answer['failed']}")
        found: dict[str, Any] = answer["returned"]
        return found

    def _dead(self, how: str) -> ChildError:
        self.ended = True
        lines = (self.folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return ChildError(f"{self.folder.name}: {how}{f': {lines[-1][:200]}' if lines else ''}")


def _order(number: int) -> tuple[int, int]:
    return (0, 1) if number % 2 == 0 else (1, 0)


def _ratio(pairs: tuple[tuple[float, float], ...]) -> float | None:
    return statistics.median(after / before for before, after in pairs) if pairs else None


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
