"""The arm of a corpus with recorded runs: each row alone, its copy of the package fixed with a trace of this row."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.cache import own_version
from graphmend_evaluation import recording_rounds
from graphmend_evaluation.recording_rounds import FOLDERS, TRACE, Round
from graphmend_evaluation.survey.row import Row, read

Worker = Callable[..., None]
"""Measures rows: the folder of code, that of the results, the rows, more options of the worker."""


class Recorded(NamedTuple):
    """A row behind all rounds; `message` says why it could not be recorded, and `row` is None then.

    `seconds` were spent on recorded runs and on `graphmend fix`, in all rounds.
    """

    row: Row | None
    message: str
    seconds: float


def measured(
    work: Path, wanted: Sequence[str], rounds: int, worker: Worker, *, keep: bool = False
) -> dict[str, Recorded]:
    """Each of the `wanted` rows behind so many rounds; what other versions of graphmend made is used if `keep`."""
    if not keep:
        _forget_older(work, rounds)
    base = {row.type: row for row in read(work / "rows-base" / "results.jsonl")}
    all_rounds = recording_rounds.rounds(work, rounds, lambda _: work / "base")
    outcome = recording_rounds.run({key: base[key] for key in wanted if key in base}, all_rounds, _Steps(worker))
    found = {}
    for key, first in outcome.recordings.items():
        seconds = sum(_seconds(each, key) for each in all_rounds)
        found[key] = Recorded(outcome.rows[key] if first.ok else None, "" if first.ok else first.message, seconds)
    return found


class _Steps:
    """`recording_rounds.Steps` of rows of transformers."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def record(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Record what is not recorded yet, from one process where all rows have the same code."""
        waiting = [key for key in keys if key not in _rows(this.traces)]
        for same in [waiting] if this.number == 1 else [[key] for key in waiting]:
            if same:
                self._worker(this.tree(same[0]), this.traces, same, "--record")
        return _rows(this.traces)

    def fix(self, this: Round, keys: Sequence[str], known: Sequence[str]) -> None:
        """Make the code of each recorded row that is not measured yet."""
        done = _rows(this.results)
        for key in (key for key in known if key not in done):
            print(f"graphmend fix {' '.join(recording_rounds.OPTIONS)} {key}", flush=True)
            started = time.monotonic()
            this.fix(key, this.traces / key / TRACE, own_version())
            (this.traces / key / "fixed.json").write_text(json.dumps(time.monotonic() - started), encoding="utf-8")

    def measure(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Measure each with its own code."""
        for key in (key for key in keys if key not in _rows(this.results)):
            self._worker(this.heads / key, this.results, [key])
        return _rows(this.results)


def _rows(folder: Path) -> dict[str, Row]:
    return {row.type: row for row in read(folder / "results.jsonl")}


def _seconds(this: Round, key: str) -> float:
    """Of a round: the recorded run, and `graphmend fix`."""
    row, took = _rows(this.traces).get(key), this.traces / key / "fixed.json"
    fixing = float(json.loads(took.read_text(encoding="utf-8"))) if took.is_file() else 0.0
    return fixing + (0.0 if row is None else row.seconds)


def _forget_older(work: Path, rounds: int) -> None:
    """Remove what another version of graphmend, or another number of rounds, left."""
    mark, now = work / "recorded-made-by", f"{own_version()} {rounds}"
    if mark.is_file() and mark.read_text(encoding="utf-8") == now:
        return
    for folder in (each for pattern in FOLDERS for each in work.glob(pattern) if each.is_dir()):
        shutil.rmtree(folder)
    mark.write_text(now, encoding="utf-8")
