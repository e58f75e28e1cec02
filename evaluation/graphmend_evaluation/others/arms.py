"""The arms after the first: the code of each package fixed by its source, or that of each model by a recorded run."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.isolation import clean_environment
from graphmend_evaluation.others import sources
from graphmend_evaluation.others.builders import Package, half
from graphmend_evaluation.others.result import TRACE, Result, covered, read, silent_events
from graphmend_evaluation.paper.prepare import PrepareError
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
        sources.after(base, head, _made_by(package), options.fix_options.split())
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
    arm = Arm({key: before[key] for key in keys}, {}, frozenset())
    rounds = [_Round(work, number) for number in range(1, options.recorded + 1)]
    try:
        for each in rounds:
            arm = each.after(arm, broken, options)
    finally:
        for each in rounds:
            each.forget_exam()
    return arm


class _Round(NamedTuple):
    """A round: each model that breaks is recorded, fixed, and measured."""

    work: Path
    number: int

    def folder(self, name: str) -> Path:
        """Where a part of what the round makes lies."""
        return self.work / (name if self.number == 1 else f"{name}-{self.number}")

    def tree(self, key: str) -> Path:
        """The code of a model before the round."""
        if self.number == 1:
            return self.work / "base" / key.partition(".")[0]
        return self._replace(number=self.number - 1).folder("head-recorded") / key

    def after(self, arm: Arm, broken: Sequence[Package], options: argparse.Namespace) -> Arm:
        """What is left of an arm behind the round."""
        traces, heads, out = map(self.folder, ("recorded", "head-recorded", "after-recorded"))
        keys = [key for key, each in arm.after.items() if each.row.ok and each.row.breaks and self.tree(key).is_dir()]
        if not keys:
            return arm
        more = ["--tree-per-model"] * (self.number > 1)
        measure(self.tree(keys[0]).parent, traces, keys, options, "--record", *more)
        rows = read(traces / "results.jsonl")
        known = [key for key in keys if key in rows and rows[key].row.ok]
        silent = self._fix(broken, keys, known, options)
        measure(heads, out, known, options, "--against", str(self.work / "before"), "--tree-per-model")
        found = read(out / "results.jsonl")
        after = {key: found.get(key, each) for key, each in arm.after.items()}
        return Arm(after, {**arm.silent, **silent}, arm.recorded or frozenset(known))

    def _fix(
        self, broken: Sequence[Package], keys: Sequence[str], known: Sequence[str], options: argparse.Namespace
    ) -> dict[str, int]:
        """Make the code of each recorded model that is not measured yet. The silent events of all, those of earlier
        runs included."""
        heads, out = self.folder("head-recorded"), self.folder("after-recorded")
        heads.mkdir(exist_ok=True)
        out.mkdir(exist_ok=True)
        counted, done = out / "silent.json", read(out / "results.jsonl")
        silent: dict[str, int] = json.loads(counted.read_text(encoding="utf-8")) if counted.is_file() else {}
        for package in broken:
            for key in _of(package, [key for key in keys if key not in done]):
                if key in known:
                    trace = self.folder("recorded") / key.replace(".", "/") / TRACE
                    by = f"{_made_by(package)} {hashlib.sha256(trace.read_bytes()).hexdigest()}"
                    more = ["--opaque", "--trace", str(trace), *options.fix_options.split()]
                    sources.after(self.tree(key), heads / key, by, more)
                silent[key] = _silent(key, package, heads / key if key in known else self.tree(key), self.work)
        counted.write_text(json.dumps(silent), encoding="utf-8")
        return silent

    def forget_exam(self) -> None:
        """Remove traces and code of the exam that is measured."""
        parts = list(map(self.folder, ("recorded", "after-recorded", "head-recorded")))
        for key in read(parts[1] / "results.jsonl"):
            if half(key.partition(".")[0]) == "exam":
                for folder in (*(each / key.replace(".", "/") for each in parts[:2]), parts[2] / key):
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
        kept = {"made_by": mark, "findings": sources.findings(base)}
        folder.mkdir(exist_ok=True)
        file.write_text(json.dumps(kept), encoding="utf-8")
    found: list[dict[str, Any]] = kept["findings"]
    return found
