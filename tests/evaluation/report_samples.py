"""Evaluations for tests of the reports: measured ones from a file, and copies that are hostile, large or timed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphmend_codemod.evaluation.rounds import LeftBreak, RecordedFix, Round
from graphmend_evaluation.evaluation import Cause, Evaluation, ModelEvaluation, Reverted
from graphmend_evaluation.results import Comparison, ModelRow, Status, from_json
from graphmend_evaluation.speed.results import (
    Cold,
    ColdCall,
    Compared,
    Difference,
    SpeedRow,
    SpeedVerdict,
    Spread,
    Steady,
)
from graphmend_evaluation.xla.results import Split, XlaArm, XlaRow, XlaRun

SAMPLE = Path(__file__).parents[1] / "data" / "evaluation.json"
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"`|&amp;\\"
    "@octocat #1 https://example.org [a](https://example.org) \u202e\u2066\x00\x1b[31m\udc80 ``` ~~~ <!-- --> {{ 7*7 }}"
    " שלום <b>${x}</b>"
)


def measured() -> Evaluation:
    """Six models of transformers, as they were measured."""
    return from_json(Evaluation, json.loads(SAMPLE.read_text(encoding="utf-8")))


def timed(evaluation: Evaluation) -> Evaluation:
    """With times for every model: one faster, one slower, the others inside the noise. Also one XLA view."""
    changes = dict(enumerate((-0.2, 0.1)))
    models = [
        replace(model, speed=_speed(model.name, changes.get(number, 0.001)))
        for number, model in enumerate(evaluation.models)
    ]
    models[0] = replace(models[0], xla=_xla(models[0].name))
    return replace(evaluation, models=tuple(models))


def troubled(evaluation: Evaluation) -> Evaluation:
    """With a change of eager results in the first model, a model that crashed, and two changes sent back."""
    first, second, *others = evaluation.models
    after = replace(first.row.after, against_base=Comparison(("output 0: 3 of 64 elements differ",)))
    crashed = replace(second.row.after, status=Status.CRASHED, message="out of memory", counts=None, calls=())
    gone = [
        Reverted(change, first.name, Cause.EAGER_CHANGED, "output 0 differs", kept=kept)
        for change, kept in zip(evaluation.changes[:2], (False, True), strict=True)
    ]
    models = (_with_after(first, after), _with_after(second, crashed), *others)
    return replace(evaluation, models=models, reverted=tuple(gone), remarks=("one source gave no model",))


def recorded(evaluation: Evaluation) -> Evaluation:
    """With two recorded runs, and a place that still breaks."""
    path = evaluation.changes[0].path
    holds = ("x: torch.float32, 2 dimensions, cpu", "x.shape[1] == 4")
    operator = RecordedFix("GM801", path, 12, "Model.forward", holds)
    gone = RecordedFix("GM801", path, 31, "Model.forward", (), "its break is still there")
    names = tuple(each.name for each in evaluation.models)
    rounds = (
        Round(1, names, (), 9, 4, (operator, gone), 20.5),
        Round(2, names[:1], (f"{names[1]}: no result after 600 s",), 4, 3, (RecordedFix("GM201", path, 40, ""),), 3.0),
    )
    left = (
        LeftBreak(path, 52, "forward", "Unsupported function call", "GM801: it changed the instance", names[:2]),
        LeftBreak("", 0, "", "not recorded", "no result after 600 s", names[1:2]),
    )
    return replace(evaluation, rounds=rounds, left_breaks=left)


def hostile(evaluation: Evaluation) -> Evaluation:
    """With hostile text behind every text, and one line of 10 kB."""
    spoiled: Evaluation = _spoiled(evaluation)
    return replace(spoiled, remarks=(*spoiled.remarks, HOSTILE, "x" * 10_000))


def large(evaluation: Evaluation, models: int) -> Evaluation:
    """The same models under other names, until there are enough."""
    found = [
        replace(each, row=replace(each.row, model=f"{each.name}_{number}"))
        for number, each in enumerate((evaluation.models * (models // len(evaluation.models) + 1))[:models])
    ]
    return replace(evaluation, models=tuple(found))


def _with_after(model: ModelEvaluation, after: Any) -> ModelEvaluation:
    return replace(model, row=ModelRow(model.row.model, model.row.before, after))


def _spoiled(value: Any) -> Any:
    if isinstance(value, str):
        return f"{value}{HOSTILE}"
    if isinstance(value, tuple):
        return tuple(_spoiled(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _spoiled(getattr(value, each.name)) for each in dataclasses.fields(value)})
    return value


def compared(before: float, change: float) -> Compared:
    """A quantity that changes by a share; less than 5 % is inside the noise."""
    after = before * (1 + change)
    verdict = (
        SpeedVerdict.NO_DIFFERENCE if abs(change) < 0.05 else SpeedVerdict.LESS if change < 0 else SpeedVerdict.MORE
    )
    spread, other = (Spread(value, value * 0.99, value * 1.02, 12) for value in (before, after))
    return Compared(spread, other, Difference(change, change - 0.02, change + 0.02, 0.02, 12, verdict))


def _speed(model: str, change: float) -> SpeedRow:
    cold = [ColdCall(number, *(compared(2.0, change) for _ in range(4))) for number in range(5)]
    blocks = tuple(0.002 * (1 + number / 500) for number in range(20))
    steady = Steady("inductor", compared(0.002, change), 500.0, 500.0, 10**8, 10**8, blocks, blocks, None, None)
    return SpeedRow(
        model, Status.OK, "", 60.0, "cpu", "inductor", "2026-11-21T05:00:00+00:00", None, (),
        Cold(5, tuple(cold[1:]), cold[0], 4, 1, None), (steady,), ("two cores",),
    )  # fmt: skip


def _xla(model: str) -> XlaRow:
    def arm(graphs: int) -> XlaArm:
        runs = [
            XlaRun(mode, graphs, graphs - 1, graphs, graphs, 1.0, 0.0, (), 0.01, 0.1) for mode in ("openxla", "lazy")
        ]
        return XlaArm(Status.OK, "", runs[0], runs[1], (Split.DYNAMO,), "split in Dynamo only")

    return XlaRow(model, arm(4), arm(1))
