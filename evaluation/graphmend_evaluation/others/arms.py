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
    command += ["--builders", str(options.builders), "--timeout", str(options.timeout), *more, *models]
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
    """For each model its package as `graphmend fix --opaque` leaves it with a trace of this model.

    One that cannot be recorded stays as before. Of the exam, traces and fixed code are removed as soon as all is
    measured.
    """
    traces, heads, out = work / "recorded", work / "head-recorded", work / "after-recorded"
    measure(work / "base", traces, keys, options, "--record")
    rows = read(traces / "results.jsonl")
    known = [key for key in keys if key in rows and rows[key].row.ok]
    try:
        silent = _fix_each(broken, keys, known, work, options)
        measure(heads, out, known, options, "--against", str(work / "before"), "--tree-per-model")
    finally:
        for key in read(out / "results.jsonl"):
            if half(key.partition(".")[0]) == "exam":
                for folder in (traces / key.replace(".", "/"), out / key.replace(".", "/"), heads / key):
                    shutil.rmtree(folder, ignore_errors=True)
    before = read(work / "before" / "results.jsonl")
    after = {**{key: before[key] for key in keys}, **read(out / "results.jsonl")}
    return Arm(after, silent, frozenset(known))


def _fix_each(
    broken: Sequence[Package], keys: Sequence[str], known: Sequence[str], work: Path, options: argparse.Namespace
) -> dict[str, int]:
    """Make the code of each recorded model that is not measured yet. The silent events of all, those of earlier runs
    included."""
    heads, out = work / "head-recorded", work / "after-recorded"
    heads.mkdir(exist_ok=True)
    out.mkdir(exist_ok=True)
    counted, done = out / "silent.json", read(out / "results.jsonl")
    silent: dict[str, int] = json.loads(counted.read_text(encoding="utf-8")) if counted.is_file() else {}
    for package in broken:
        base = work / "base" / package.name
        for key in _of(package, [key for key in keys if key not in done]):
            if key in known:
                trace = work / "recorded" / key.replace(".", "/") / TRACE
                by = f"{_made_by(package)} {hashlib.sha256(trace.read_bytes()).hexdigest()}"
                more = ["--opaque", "--trace", str(trace), *options.fix_options.split()]
                sources.after(base, heads / key, by, more)
            silent[key] = _silent(key, package, heads / key if key in known else base, work)
    counted.write_text(json.dumps(silent), encoding="utf-8")
    return silent


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
