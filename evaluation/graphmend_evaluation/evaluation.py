"""What an evaluation says: the models, the changes they judge, what was reverted and why. Views show nothing else.

All values are frozen and travel as JSON through `results.to_json` and `results.from_json`: an object for each class,
with its field names as keys, and arrays for tuples. This module does not import torch.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from graphmend_codemod.evaluation.rounds import LeftBreak, Round
from graphmend_evaluation.flags import FlagRow
from graphmend_evaluation.results import BreakSite, ModelRow
from graphmend_evaluation.speed.results import SpeedRow
from graphmend_evaluation.xla.results import XlaRow

EVALUATION_SCHEMA = 1


@dataclass(frozen=True)
class Ref:
    """A commit, `name` as the user wrote it. `oid` is empty for a branch that is not committed yet."""

    name: str
    oid: str


@dataclass(frozen=True)
class Change:
    """One changed place of the branch: a hunk of the diff from the base to the head.

    Lines count from 1; a hunk that only adds lines has `base_lines` 0 and stands before line `base_start`. `rules` are
    the codes of the findings that it mends, empty where none is known. `diff` is the hunk as `git diff` shows it, from
    its `@@` line on. `is_support` is true for an import or a helper, which cannot be judged apart from what uses it.
    """

    id: str
    path: str
    rules: tuple[str, ...]
    function: str
    base_start: int
    base_lines: int
    head_start: int
    head_lines: int
    diff: str
    is_support: bool = False


@dataclass(frozen=True)
class JudgedSite:
    """A break site with what graphmend has to say about it.

    `rule` is the code of the finding at its place, None where no rule finds it. `change` is the id of the change that
    was made there, if any; `reason` says why the site was left as it is, empty for one that was fixed.
    """

    site: BreakSite
    rule: str | None
    change: str | None
    reason: str


class Source(enum.Enum):
    """Where a model came from."""

    OPTION = "--model"
    SETTINGS = "settings"
    TESTS = "tests"
    HUGGINGFACE = "huggingface"
    HUB = "hub"


@dataclass(frozen=True)
class ModelEvaluation:
    """One model before and after.

    `fixed` are break sites of the base that the head has no more, with lines of the base; `left` are those of the
    head, with lines of the head. `remembered` is true when the numbers are those of an earlier, interrupted run.
    `flags` says what capture flags do to a model that the head still breaks.
    """

    row: ModelRow
    source: Source
    fixed: tuple[JudgedSite, ...]
    left: tuple[JudgedSite, ...]
    speed: SpeedRow | None = None
    xla: XlaRow | None = None
    remembered: bool = False
    flags: FlagRow | None = None

    @property
    def name(self) -> str:
        """`package.module:factory`, or the name that its source gave it."""
        return self.row.model


class Cause(enum.Enum):
    """Why a change does not stay."""

    EAGER_CHANGED = "the eager result changed"
    COMPILE_FAILS = "the compiled model fails or is wrong, and was not before"
    STILL_BREAKS = "its break is still there"
    SLOWER = "it makes compiled code slower"


@dataclass(frozen=True)
class Reverted:
    """A change that did not earn its place. `kept` is true when the user asked to keep it all the same.

    `model` is the one that showed it, `detail` what was seen, in one line.
    """

    change: Change
    model: str
    cause: Cause
    detail: str
    kept: bool = False


@dataclass(frozen=True)
class DeclinedSite:
    """A site that was found and left alone, with the condition that failed. Line numbers refer to the base commit."""

    rule: str
    slug: str
    path: str
    line: int
    function: str
    message: str
    reason: str


@dataclass(frozen=True)
class Machine:
    """Where it ran. `gpus` are names, `load` the load average of the last minute at start and end."""

    processor: str
    cores: int
    system: str
    gpus: tuple[str, ...] = ()
    load: tuple[float, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of a branch. `date` is ISO 8601 in UTC, `seconds` wall time, `versions` of python, torch and more.

    `remarks` are lines that a reader should know: models that no source could give, limits that were reached.
    `rounds` are those of recorded runs, if there were any, and `left_breaks` what the last run still broke at.
    """

    repository: str
    base: Ref
    head: Ref
    date: str
    machine: Machine
    versions: tuple[tuple[str, str], ...]
    models: tuple[ModelEvaluation, ...]
    changes: tuple[Change, ...]
    reverted: tuple[Reverted, ...]
    declined: tuple[DeclinedSite, ...]
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0
    graphmend: str = ""
    schema: int = field(default=EVALUATION_SCHEMA)
    rounds: tuple[Round, ...] = ()
    left_breaks: tuple[LeftBreak, ...] = ()

    @property
    def breaks(self) -> tuple[int, int]:
        """Break events before and after, over the models that were counted on both sides."""
        counted = [
            (each.row.before.counts.break_events, each.row.after.counts.break_events)
            for each in self.models
            if each.row.before.counts is not None and each.row.after.counts is not None
        ]
        return sum(before for before, _ in counted), sum(after for _, after in counted)

    @property
    def problems(self) -> tuple[str, ...]:
        """What a reviewer must know, one line each, beginning with the model's name."""
        return tuple(f"{each.name}: {problem}" for each in self.models for problem in each.row.problems)

    @property
    def exercised(self) -> frozenset[str]:
        """Ids of the changes at whose place at least one model broke before."""
        judged = [site for each in self.models for site in (*each.fixed, *each.left)]
        return frozenset(site.change for site in judged if site.change is not None)
