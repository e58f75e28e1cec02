"""Rounds in which each model that breaks is recorded, its code fixed with the trace, and measured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from graphmend_evaluation import fixed_copy
from graphmend_evaluation.survey.row import Row

TRACE = "trace.json"
"""The file of a recorded run, in the folder of its model."""
FOLDERS = ("recorded*", "head-recorded*", "after-recorded*")
"""What all rounds leave in their work folder: traces, fixed code, results."""
OPTIONS = ("--opaque", "--trace")


class Round(NamedTuple):
    """One round in a work folder. `base` has the code of a model before the first of them."""

    work: Path
    number: int
    base: Callable[[str], Path]

    @property
    def traces(self) -> Path:
        """Where the recorded runs are."""
        return self._folder("recorded")

    @property
    def heads(self) -> Path:
        """Where the fixed code of each model is."""
        return self._folder("head-recorded")

    @property
    def results(self) -> Path:
        """Where the fixed models are measured."""
        return self._folder("after-recorded")

    def tree(self, key: str) -> Path:
        """The code of a model before the round."""
        return self.base(key) if self.number == 1 else self._replace(number=self.number - 1).heads / key

    def fix(self, key: str, trace: Path, made_by: str, options: Sequence[str] = ()) -> None:
        """Make the code of a model, as `graphmend fix --opaque --trace` leaves it."""
        by = f"{made_by} {hashlib.sha256(trace.read_bytes()).hexdigest()}"
        self.heads.mkdir(exist_ok=True)
        fixed_copy.after(self.tree(key), self.heads / key, by, [*OPTIONS, str(trace), *options])

    def _folder(self, name: str) -> Path:
        return self.work / (name if self.number == 1 else f"{name}-{self.number}")


class Steps(Protocol):
    """How models are recorded, fixed and measured."""

    def record(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Record what is not recorded yet. The rows of the recorded runs."""

    def fix(self, this: Round, keys: Sequence[str], known: Sequence[str]) -> None:
        """Make the code of those of `keys` that are `known`, as they could be recorded."""

    def measure(self, this: Round, keys: Sequence[str]) -> Mapping[str, Row]:
        """Measure what is not measured yet. The rows of all."""


class Outcome(NamedTuple):
    """Behind all rounds: the last row of each model, and the first recorded run of each that was to be recorded."""

    rows: Mapping[str, Row]
    recordings: Mapping[str, Row]

    @property
    def known(self) -> frozenset[str]:
        """The models that could be recorded."""
        return frozenset(key for key, row in self.recordings.items() if row.ok)


def rounds(work: Path, count: int, base: Callable[[str], Path]) -> list[Round]:
    """The first `count` of them."""
    return [Round(work, number, base) for number in range(1, count + 1)]


def run(before: Mapping[str, Row], each_round: Sequence[Round], steps: Steps) -> Outcome:
    """What is left of the models `before` behind the rounds; one that cannot be recorded stays as it was."""
    rows, recordings = dict(before), dict[str, Row]()
    for this in each_round:
        keys = [key for key, row in rows.items() if row.ok and row.breaks and this.tree(key).is_dir()]
        if not keys:
            break
        found = steps.record(this, keys)
        recordings = {**{key: found[key] for key in keys if key in found}, **recordings}
        known = [key for key in keys if key in found and found[key].ok]
        steps.fix(this, keys, known)
        measured = steps.measure(this, known)
        rows |= {key: measured[key] for key in known if key in measured}
    return Outcome(rows, recordings)
