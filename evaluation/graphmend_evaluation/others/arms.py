"""The arms after the first: the code of each package fixed by its source, or that of each model by a recorded run."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphmend_codemod.core.cache import own_version
from graphmend_evaluation import fixed_copy, recording_rounds
from graphmend_evaluation.isolation import clean_environment
from graphmend_evaluation.others.builders import Package, half
from graphmend_evaluation.others.result import Result, covered, read, silent_events
from graphmend_evaluation.paper.prepare import PrepareError
from graphmend_evaluation.recording_rounds import TRACE, Round
from graphmend_evaluation.survey.row import Row


class Arm(NamedTuple):
    """The results after the fixes, how many events before are silent, and which models could be recorded."""

    after: Mapping[str, Result]
    silent: Mapping[str, int]
    recorded: frozenset[str] | None = None

    def has(self, key: str) -> bool:
        """False for a model that should have been recorded and was not."""
        return self.recorded is None or key in self.recorded


def measure(roots: Path, out: Path, models: Sequence[str], options: argparse.Namespace, *more: str) -> None:
    """Measure, or record, what is not yet in `out`."""
    work: Path = options.work.resolve()
    command = [sys.executable, "-m", "graphmend_evaluation.others.worker", "--roots", str(roots), "--out", str(out)]
    command += ["--builders", str(options.builders), "--timeout", str(options.timeout)]
    command += ["--backend", options.backend, *more, *models]
    environment = {**clean_environment(None, work), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    if subprocess.run(command, env=environment, check=False).returncode:
        raise PrepareError("the measuring process ended early; the same command goes on with what is missing")


def fixed(broken: Sequence[Package], keys: Sequence[str], work: Path, options: argparse.Namespace) -> Arm:
    """Each package as `graphmend fix` leaves it."""
    silent: dict[str, int] = {}
    for package in broken:
        base, head = work / "base" / package.name, work / "head" / package.name
        fixed_copy.after(base, head, _made_by(package), options.fix_options.split())
        silent |= {key: _silent(key, package, head, work) for key in _of(package, keys)}
    measure(work / "head", work / "after", keys, options, "--against", str(work / "before"))
    return Arm(read(work / "after" / "results.jsonl"), silent)


def recorded(broken: Sequence[Package], keys: Sequence[str], work: Path, options: argparse.Namespace) -> Arm:
    """For each model its package as `graphmend fix --opaque` leaves it with a trace of this model; a model that still
    breaks is recorded and fixed once more, as often as `options` say.

    One that cannot be recorded stays as before. Of the exam, traces and fixed code are removed as soon as all is
    measured.
    """
    before = read(work / "before" / "results.jsonl")
    rounds = recording_rounds.rounds(work, options.recorded, lambda key: work / "base" / key.partition(".")[0])
    steps = _Steps(broken, options)
    try:
        outcome = recording_rounds.run({key: before[key].row for key in keys}, rounds, steps)
    finally:
        for each in rounds:
            _forget_exam(each)
    return Arm({**{key: before[key] for key in keys}, **steps.after}, steps.silent, outcome.known)


class _Steps:
    """`recording_rounds.Steps` of models of packages. `after` has the last result of each, and `silent` how many
    events are on a line without a finding."""

    def __init__(self, broken: Sequence[Package], options: argparse.Namespace) -> None:
        self.after: dict[str, Result] = {}
        self.silent: dict[str, int] = {}
        self._broken = broken
        self._options = options

    def record(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Record what is not recorded yet."""
        more = ["--tree-per-model"] * (this.number > 1)
        measure(this.tree(keys[0]).parent, this.traces, keys, self._options, "--record", *more)
        return {key: each.row for key, each in read(this.traces / "results.jsonl").items()}

    def fix(self, this: Round, keys: Sequence[str], known: Sequence[str]) -> None:
        """Make the code of each recorded model that is not measured yet."""
        this.results.mkdir(exist_ok=True)
        counted, done = this.results / "silent.json", read(this.results / "results.jsonl")
        silent: dict[str, int] = json.loads(counted.read_text(encoding="utf-8")) if counted.is_file() else {}
        for package in self._broken:
            for key in _of(package, [key for key in keys if key not in done]):
                if key in known:
                    trace = this.traces / key.replace(".", "/") / TRACE
                    this.fix(key, trace, _made_by(package), self._options.fix_options.split())
                head = this.heads / key if key in known else this.tree(key)
                silent[key] = _silent(key, package, head, this.work)
        counted.write_text(json.dumps(silent), encoding="utf-8")
        self.silent |= silent

    def measure(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Measure each with its own code."""
        before = str(this.work / "before")
        measure(this.heads, this.results, keys, self._options, "--against", before, "--tree-per-model")
        found = read(this.results / "results.jsonl")
        self.after |= {key: found[key] for key in keys if key in found}
        return {key: each.row for key, each in found.items()}


def _forget_exam(this: Round) -> None:
    """Remove traces and code of the exam that is measured."""
    for key in read(this.results / "results.jsonl"):
        if half(key.partition(".")[0]) == "exam":
            kept = (each / key.replace(".", "/") for each in (this.traces, this.results))
            for folder in (*kept, this.heads / key):
                shutil.rmtree(folder, ignore_errors=True)


def _made_by(package: Package) -> str:
    return f"{own_version()} {package.source}"


def _of(package: Package, keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key.partition(".")[0] == package.name]


def _silent(key: str, package: Package, head: Path, work: Path) -> int:
    """How many events of the model are on a line without a finding."""
    base = work / "base" / package.name
    row = json.loads((work / "before" / key.replace(".", "/") / "row.json").read_text(encoding="utf-8"))
    return silent_events(Row.from_json(row), covered(base, _findings(package, base, work / "head"), head))


def _findings(package: Package, base: Path, folder: Path) -> list[dict[str, Any]]:
    """What `graphmend check` says of the package, kept in `folder`."""
    file, mark = folder / f"{package.name}.findings.json", _made_by(package)
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if kept.get("made_by") != mark:
        kept = {"made_by": mark, "findings": fixed_copy.findings(base)}
        folder.mkdir(exist_ok=True)
        file.write_text(json.dumps(kept), encoding="utf-8")
    found: list[dict[str, Any]] = kept["findings"]
    return found
