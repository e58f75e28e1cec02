"""Capture flags as advice that was tried (GM701): what each does to a model that still breaks. Nothing is edited.

Over real models the flags remove some breaks and break some models, so only a measurement can tell. Imports neither
torch nor what is measured.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.compilations import Compilations, Compiled, Way
from graphmend_evaluation.compiling import compile_in_ways
from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy
from graphmend_evaluation.results import Status

RULE = "GM701"
SCALARS = "capture_scalar_outputs"
SHAPES = "capture_dynamic_output_shape_ops"
_CONFIG = "torch._dynamo.config"
_AS_IT_IS = Way("as it is")
_TRIED = (
    Way(SCALARS, (SCALARS,)),
    Way(SHAPES, (SHAPES,)),
    Way(f"{SCALARS} and {SHAPES}", (SCALARS, SHAPES)),
    Way("dynamic=True", dynamic=True),
)


class FlagVerdict(enum.Enum):
    """What a setting does to one model."""

    HELPS = "helps"
    NO_DIFFERENCE = "no difference"
    MORE_BREAKS = "more breaks"
    BREAKS_THE_MODEL = "breaks the model"


@dataclass(frozen=True)
class FlagTrial:
    """One setting. Breaks are break events and skipped frames over all calls, `breaks` is None where it fails.

    `problem` is one line for a model that fails or differs from eager mode only under this setting, else empty.
    """

    setting: str
    flags: tuple[str, ...]
    dynamic: bool
    verdict: FlagVerdict
    breaks: int | None
    recompiles: int | None
    problem: str = ""


@dataclass(frozen=True)
class FlagRow:
    """A model that still breaks, without any setting and with each. `message` is empty for `OK`.

    `breaks` and `recompiles` are those without a setting. A model with no break left has no trials.
    """

    model: str
    status: Status
    message: str
    seconds: float
    breaks: int = 0
    recompiles: int = 0
    trials: tuple[FlagTrial, ...] = ()

    @property
    def best(self) -> FlagTrial | None:
        """The setting that leaves the fewest breaks, of equal ones that which sets least; None where none helps."""
        helping = [trial for trial in self.trials if trial.verdict is FlagVerdict.HELPS]
        return min(helping, key=lambda trial: (trial.breaks or 0, trial.dynamic, len(trial.flags)), default=None)

    @property
    def advice(self) -> tuple[str, ...]:
        """One line for each setting that helps or that breaks the model, the best first.

        The best setting with one more, which adds nothing, is left out.
        """
        best = self.best
        ordered = sorted(self.trials, key=lambda trial: trial is not best)
        return tuple(line for line in (self._line(trial) for trial in ordered if not _only_more(trial, best)) if line)

    def _line(self, trial: FlagTrial) -> str:
        if trial.verdict is FlagVerdict.HELPS:
            more = (trial.recompiles or 0) - self.recompiles
            recompiles = f", {more} more recompile{'' if more == 1 else 's'}" if more > 0 else ""
            change = f"{self.breaks} -> {trial.breaks} breaks, results right{recompiles}"
            return f"{_instruction(trial)} at the place that compiles {self.model}: {change}"
        if trial.verdict is FlagVerdict.BREAKS_THE_MODEL:
            return f"leave {trial.setting} off where {self.model} is compiled: {trial.problem}"
        return ""


def measure_flags(head: Path, model: str, *, folder: Path, policy: Policy = DEFAULT_POLICY) -> FlagRow:
    """Try the capture flags and `dynamic=True` on `model` (`package.module:factory`) with the code of `head`.

    A model that has no break is not asked. Never raises for what the model does; the row's status says it.
    """
    ways = (_AS_IT_IS, *_TRIED)
    return flag_row(compile_in_ways(head, model, ways, folder=folder, policy=policy, only_if_broken=True))


def flag_row(found: Compilations) -> FlagRow:
    """What compilations say, of which the first is that without a setting."""
    if not found.compiled or found.compiled[0].status is not Status.OK:
        plain = found.compiled[0] if found.compiled else None
        status = found.status if plain is None else plain.status
        message = found.message if plain is None else plain.message
        return FlagRow(found.model, status, message, found.seconds)
    plain, *tried = found.compiled
    return FlagRow(
        model=found.model,
        status=Status.OK,
        message="",
        seconds=found.seconds,
        breaks=plain.breaks or 0,
        recompiles=_recompiles(plain) or 0,
        trials=tuple(_trial(plain, each) for each in tried),
    )


def _trial(plain: Compiled, tried: Compiled) -> FlagTrial:
    new = [problem for problem in tried.problems if problem not in plain.problems]
    problem = new[0] if new and len(tried.problems) > len(plain.problems) else ""
    return FlagTrial(
        setting=tried.way.name,
        flags=tried.way.flags,
        dynamic=tried.way.dynamic is True,
        verdict=_verdict(plain.breaks or 0, tried.breaks, problem),
        breaks=tried.breaks,
        recompiles=_recompiles(tried),
        problem=problem,
    )


def _verdict(before: int, after: int | None, problem: str) -> FlagVerdict:
    if problem or after is None:
        return FlagVerdict.BREAKS_THE_MODEL
    if after == before:
        return FlagVerdict.NO_DIFFERENCE
    return FlagVerdict.HELPS if after < before else FlagVerdict.MORE_BREAKS


def _recompiles(compiled: Compiled) -> int | None:
    return None if compiled.counts is None else compiled.counts.recompiles


def _only_more(trial: FlagTrial, best: FlagTrial | None) -> bool:
    """Whether a setting that helps is the best one and another."""
    if best is None or best.dynamic or trial.verdict is not FlagVerdict.HELPS:
        return False
    return set(trial.flags) > set(best.flags)


def _instruction(trial: FlagTrial) -> str:
    if trial.dynamic:
        return "pass dynamic=True to torch.compile"
    return "set " + " and ".join(f"{_CONFIG}.{flag} = True" for flag in trial.flags)
