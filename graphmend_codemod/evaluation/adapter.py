"""Adapter between the commands and the evaluation stage: findings in, verdicts and one `Evaluation` out.

Only this module, and what it is imported by on demand, knows `graphmend_evaluation`.
"""

from __future__ import annotations

import datetime
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from graphmend_codemod import __version__
from graphmend_codemod.evaluation.port import (
    Culprit,
    Measured,
    MeasuredVersion,
    ModelResult,
    RecordedModel,
    Sites,
    Trees,
    Wanted,
)
from graphmend_codemod.evaluation.recorder import Recorder
from graphmend_evaluation import machine, names
from graphmend_evaluation.changes import Mark
from graphmend_evaluation.evaluation import Cause, DeclinedSite, Evaluation, ModelEvaluation, Ref, Reverted
from graphmend_evaluation.gathering import Gathered, GatherOptions, gather
from graphmend_evaluation.isolation import DEFAULT_TIMEOUT, Policy
from graphmend_evaluation.remembered_rows import RowMemory
from graphmend_evaluation.reporting import quantities, view
from graphmend_evaluation.results import ModelMeasurement, ModelRow
from graphmend_evaluation.slower import options_for, slower
from graphmend_evaluation.speed.options import DEFAULT_BUDGET, SpeedOptions
from graphmend_evaluation.speed.results import SpeedRow
from graphmend_evaluation.stage import Judgement, Stage, WorkTrees, without_files
from graphmend_evaluation.xla.results import XlaRow

_OPERATOR = re.compile(r"\.library\.(custom_op|define)\(")


class Evaluating:
    """A `port.ModelMeasurer` that remembers what it measured, and every change that it sent back."""

    def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
        self._trees = trees
        self._wanted = wanted
        self._progress = progress
        self._policy = Policy(
            timeout=DEFAULT_TIMEOUT if wanted.timeout is None else wanted.timeout,
            memory_bytes=wanted.memory,
            sandbox=wanted.sandbox,
        )
        memory = RowMemory(trees.memory, trees.base_oid) if wanted.resume else None
        self._stage = Stage(
            WorkTrees(trees.base, trees.head, trees.trial, trees.helpers),
            trees.folder / "models",
            policy=self._policy,
            jobs=wanted.jobs,
            memory=memory,
            only_changed=bool(wanted.rounds),
            progress=progress,
        )
        self._recorder = Recorder(
            trees.head,
            trees.folder / "recorded",
            policy=self._policy,
            jobs=wanted.jobs,
            memory=memory,
            progress=progress,
        )
        self._gathered: Gathered | None = None
        self._names: dict[str, str] = {}
        self._sent_back: dict[str, Reverted] = {}
        self._remarks: dict[str, None] = {}
        self._speeds: dict[tuple[str, str], SpeedRow] = {}
        self._started = time.monotonic()
        self._load = machine.load_average()

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        """See `port.ModelMeasurer.verdict`; paths are relative to the trees."""
        found = {finding.path for finding, _ in sites.left} if self._wanted.rounds else set()
        gathered = self._gather(sorted({*changed, *found}))
        self._names = {names.shown(model.name): model.name for model in gathered.models}
        judgement = self._renamed(self._stage.judge(gathered.models, changed, _marks(sites)))
        self._remarks.update(dict.fromkeys((*gathered.remarks, *judgement.remarks)))
        evaluation = self._evaluation(judgement, sites)
        self._sent_back.update({each.change.id: each for each in judgement.culprits})
        return Measured(
            models=tuple(_result(each) for each in evaluation.models),
            culprits=tuple(_culprit(each) for each in judgement.culprits),
            remarks=tuple(self._remarks),
            evaluation=evaluation,
        )

    def _renamed(self, judgement: Judgement) -> Judgement:
        """The judgement with names that readers know."""

        def text(words: str) -> str:
            for short, name in self._names.items():
                words = words.replace(name, short)
            return words

        models = []
        for each in judgement.models:
            name = text(each.row.model)
            before, after = (replace(arm, model=name) for arm in (each.row.before, each.row.after))
            models.append(replace(each, row=replace(each.row, model=name, before=before, after=after)))
        culprits = (replace(each, model=text(each.model), detail=text(each.detail)) for each in judgement.culprits)
        return replace(
            judgement, models=tuple(models), culprits=tuple(culprits), remarks=tuple(map(text, judgement.remarks))
        )

    def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        """See `port.ModelMeasurer.record`."""
        return self._recorder.record({shown: self._names.get(shown, shown) for shown in models}, changed)

    def finish(self, measured: Measured) -> Measured:
        """See `port.ModelMeasurer.finish`."""
        evaluation = measured.evaluation
        if evaluation is None:
            return measured
        models = tuple(self._finished(each, number) for number, each in enumerate(evaluation.models))
        blamed = tuple(each for model in models for each in self._blamed(model)) if self._wanted.revert_slower else ()
        self._sent_back.update({each.change.id: each for each in blamed})
        seconds = round(time.monotonic() - self._started, 1)
        evaluation = replace(evaluation, models=models, seconds=seconds)
        times = tuple(each.words for each in view.answer(evaluation).speed)
        results = tuple(self._timed(each, result) for each, result in zip(models, measured.models, strict=True))
        slow = tuple(_culprit(each) for each in blamed)
        return replace(measured, models=results, evaluation=evaluation, times=times, slower=slow)

    def _timed(self, evaluated: ModelEvaluation, result: ModelResult) -> ModelResult:
        """The result with what was timed."""
        cold, steady = view.cold_start(evaluated.speed), view.steady_state(evaluated.speed)
        worse = slower(evaluated.speed, outlined=self._outlines(evaluated))
        return replace(
            result,
            cold="" if cold is None else quantities.change_words(cold),
            steady="" if steady is None else quantities.change_words(steady.latency_s),
            problems=(*result.problems, *(f"slower: {each}" for each in worse)),
        )

    def _blamed(self, evaluated: ModelEvaluation) -> tuple[Reverted, ...]:
        """The changes that make a model slower than it was."""
        row, outlined = evaluated.speed, self._outlines(evaluated)
        worse = slower(row, outlined=outlined)
        if row is None or not worse:
            return ()
        name, folder = self._name(evaluated), self._trees.folder / "slower"
        options = options_for(row, self._speed_options(), outlined=outlined)

        def is_slow(tree: Path) -> bool:
            shutil.rmtree(folder, ignore_errors=True)
            return bool(slower(self._timing(name, evaluated.name, tree, folder, options), outlined=outlined))

        found = self._stage.slower_changes(name, "; ".join(worse), is_slow)
        return tuple(replace(each, model=evaluated.name) for each in found)

    def _outlines(self, evaluated: ModelEvaluation) -> bool:
        return any(_OPERATOR.search(change.diff) for change in self._stage.changes_of(self._name(evaluated)))

    def _name(self, evaluated: ModelEvaluation) -> str:
        """The name that the stage knows a model by."""
        return self._names.get(evaluated.name, evaluated.name)

    def _finished(self, evaluated: ModelEvaluation, number: int) -> ModelEvaluation:
        row, wanted, trees = evaluated.row, self._wanted, self._trees
        folder = trees.folder / f"more-{number:04d}"
        name = self._name(evaluated)
        if not (row.before.ok and row.after.ok):
            return evaluated
        if wanted.speed and trees.base != trees.head and self._stage.changes_of(name):
            key = name, self._stage.digest_of(name)
            if key not in self._speeds:
                shutil.rmtree(folder / "speed", ignore_errors=True)
                self._speeds[key] = self._timing(name, row.model, trees.head, folder / "speed", self._speed_options())
            evaluated = replace(evaluated, speed=replace(self._speeds[key], model=row.model))
        if wanted.xla_python is not None:
            xla = self._xla(name, folder / "xla", wanted.xla_python)
            evaluated = replace(evaluated, xla=replace(xla, model=row.model))
        if wanted.flags and row.after.counts is not None and not row.after.counts.whole:
            from graphmend_evaluation.flags import measure_flags

            self._progress(f"trying capture flags on {row.model}")
            flags = measure_flags(trees.head, name, folder=folder / "flags", policy=self._policy)
            evaluated = replace(evaluated, flags=replace(flags, model=row.model))
        return evaluated

    def _speed_options(self) -> SpeedOptions:
        budget = self._wanted.speed_budget
        return SpeedOptions(budget_s=DEFAULT_BUDGET if budget is None else budget)

    def _timing(self, model: str, shown: str, tree: Path, folder: Path, options: SpeedOptions) -> SpeedRow:
        """A model's speed at the base and in another tree."""
        from graphmend_evaluation.speed.measuring import measure_speed

        trees = self._trees
        return measure_speed(
            trees.base,
            tree,
            model,
            folder=folder,
            policy=self._policy,
            options=options,
            seed=trees.folder / "seed",
            progress=lambda line: self._progress(f"timing {shown}: {line}"),
        )

    def _xla(self, model: str, folder: Path, python: Path) -> XlaRow:
        from graphmend_evaluation.xla.measuring import measure_xla

        self._progress(f"counting HLO graphs of {model}")
        trees = self._trees
        return measure_xla(trees.base, trees.head, model, folder=folder, policy=self._policy, python=python)

    def _gather(self, changed: Sequence[str]) -> Gathered:
        if self._gathered is None:
            wanted = self._wanted
            request = GatherOptions(
                named=wanted.named,
                configured=wanted.configured,
                from_tests=wanted.from_tests,
                huggingface=wanted.huggingface,
                hub=wanted.hub,
                trust_remote_code=wanted.trust_remote_code,
            )
            folder = self._trees.folder / "sources"
            self._gathered = gather(request, self._trees.base, changed, folder, self._policy, self._progress)
        return self._gathered

    def _evaluation(self, judgement: Judgement, sites: Sites) -> Evaluation:
        """What is known so far. Culprits of this round count as kept: if they go, the next round says so."""
        reverted = [*self._sent_back.values(), *(replace(each, kept=True) for each in judgement.culprits)]
        trees = self._trees
        return Evaluation(
            repository=trees.repository,
            base=Ref(trees.base_name, trees.base_oid),
            head=Ref(trees.head_name, trees.head_oid),
            date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            machine=machine.this_machine(self._load),
            versions=next((row.after.versions for row in _rows(judgement) if row.after.versions), ()),
            models=tuple(without_files(each) for each in judgement.models),
            changes=judgement.changes,
            reverted=tuple({(each.change.path, each.change.diff): each for each in reverted}.values()),
            declined=tuple(_declined(sites)),
            remarks=tuple(self._remarks),
            seconds=round(time.monotonic() - self._started, 1),
            graphmend=__version__,
        )


def _rows(judgement: Judgement) -> Iterator[ModelRow]:
    return (each.row for each in judgement.models)


def _marks(sites: Sites) -> Iterator[Mark]:
    for finding in sites.fixed:
        span = finding.span
        yield Mark(finding.code, finding.path, span.start_line, span.end_line, finding.function)
    for finding, reason in sites.left:
        span = finding.span
        yield Mark(finding.code, finding.path, span.start_line, span.end_line, finding.function, reason)


def _declined(sites: Sites) -> Iterator[DeclinedSite]:
    for finding, reason in sites.left:
        yield DeclinedSite(
            finding.code,
            finding.slug,
            finding.path,
            finding.span.start_line,
            finding.function,
            finding.message,
            reason,
        )


def _culprit(found: Reverted) -> Culprit:
    change = found.change
    last = change.base_start + max(change.base_lines, 1) - 1
    reason = f"{found.cause.value} ({found.model}: {found.detail})"
    return Culprit(change.path, change.base_start, last, reason, harmless=found.cause is Cause.STILL_BREAKS)


def _result(evaluated: ModelEvaluation) -> ModelResult:
    row = evaluated.row
    versions = row.after.versions or row.before.versions
    if row.after == row.before:
        arm = _arm(row.before)
        return ModelResult(row.model, arm, arm, (arm.message,) if arm.message else (), versions)
    return ModelResult(row.model, _arm(row.before), _arm(row.after), row.problems, versions)


def _arm(measured: ModelMeasurement) -> MeasuredVersion:
    counts = measured.counts
    if not measured.ok or counts is None:
        return MeasuredVersion(None, None, False, (), measured.message or measured.status.value)
    sites = tuple(f"{site.path}:{site.line} {site.kind or site.reason}" for site in counts.sites)
    return MeasuredVersion(counts.break_events, counts.graphs, counts.whole, sites, "", counts.opaque_operators)
