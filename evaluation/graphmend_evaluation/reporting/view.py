"""What every report shows, computed once: the answer, the state of each model, the evidence for each change."""

from __future__ import annotations

import enum
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.evaluation import Change, DeclinedSite, Evaluation, ModelEvaluation, Reverted, Source
from graphmend_evaluation.flags import FlagRow
from graphmend_evaluation.reporting import quantities
from graphmend_evaluation.reporting.words import shortened
from graphmend_evaluation.results import BreakSite, Counts
from graphmend_evaluation.speed.results import Compared, SpeedRow, SpeedVerdict, Steady


class State(enum.Enum):
    """What became of a model, the worst first."""

    PROBLEM = "problem"
    WORSE = "more breaks"
    SAME = "still breaks"
    FEWER = "fewer breaks"
    FIXED = "one graph now"
    WHOLE = "one graph before and after"


@dataclass(frozen=True)
class SpeedAnswer:
    """One quantity over all models. `change` is the geometric mean, a share of before; -0.2 is a fifth less.

    `untold` counts models with too few repetitions to tell.
    """

    quantity: str
    models: int
    less: int
    more: int
    untold: int
    change: float

    @property
    def differs(self) -> bool:
        """Whether any model's difference is outside the noise."""
        return bool(self.less or self.more)

    @property
    def words(self) -> str:
        """`cold start -31% (6 of 8 models less, 2 no difference)`."""
        if not self.differs:
            return f"{self.quantity}: {self.nothing} in {plural(self.models, 'model')}"
        return f"{self.quantity} {quantities.percent(self.change)} in {plural(self.models, 'model')} ({self.counted})"

    @property
    def nothing(self) -> str:
        """What there is to say where no model differs."""
        if self.untold == self.models:
            return SpeedVerdict.TOO_FEW.value
        return self.counted if self.untold else SpeedVerdict.NO_DIFFERENCE.value

    @property
    def counted(self) -> str:
        """`6 less, 2 no difference`."""
        same = self.models - self.less - self.more - self.untold
        parts = [
            (self.less, "less"),
            (self.more, "more"),
            (same, SpeedVerdict.NO_DIFFERENCE.value),
            (self.untold, SpeedVerdict.TOO_FEW.value),
        ]
        return ", ".join(f"{count} {word}" for count, word in parts if count)


@dataclass(frozen=True)
class Removed:
    """A break site of the base that is gone. `events` are those of all `models` together."""

    site: BreakSite
    rule: str | None
    models: tuple[str, ...]
    events: int


class Effect(enum.Enum):
    """What the evaluation shows of one change."""

    VERIFIED = "verified"
    NONE = "no effect measured"
    UNREACHED = "not exercised"


@dataclass(frozen=True)
class Evidence:
    """A change with the breaks that it removed. `broke` says that a model broke at its place before."""

    change: Change
    removed: tuple[Removed, ...]
    broke: bool

    @property
    def effect(self) -> Effect:
        """Verified when a break is gone; without one, whether a model broke at its place before at all."""
        if self.removed:
            return Effect.VERIFIED
        return Effect.NONE if self.broke else Effect.UNREACHED


@dataclass(frozen=True)
class Answer:
    """The figures that a report begins with. `counted` models were counted on both sides, `same` gave identical eager
    results, out of `compared`. `opaque` models of those that are one graph afterwards call operators that are not
    torch's own."""

    models: int
    counted: int
    breaks: tuple[int, int]
    whole: tuple[int, int]
    opaque: int
    compared: int
    same: int
    speed: tuple[SpeedAnswer, ...]
    reverted: int
    kept: int
    problems: int
    changes: int
    effects: tuple[tuple[Effect, int], ...] = ()

    @property
    def headline(self) -> str:
        """The answer in one line."""
        before, after = self.breaks
        if not self.models:
            return "no model was evaluated"
        if not self.counted:
            return f"none of {plural(self.models, 'model')} could be measured on both sides"
        over = plural(self.counted, "model")
        if not self.changes:
            return f"{plural(before, 'graph break')} in {over}, and no change to judge"
        return f"graph breaks {before} -> {after} over {over}"

    @property
    def details(self) -> tuple[str, ...]:
        """What belongs to the answer, one clause each."""
        if not self.counted:
            return ()
        opaque = f" ({self.opaque} with opaque operators)" if self.opaque else ""
        found = [f"{self.whole[0]} -> {self.whole[1]} of {plural(self.counted, 'model')} run as one graph{opaque}"]
        if self.counted < self.models:
            found.append(f"{plural(self.models - self.counted, 'model')} not counted on both sides")
        if self.compared:
            found.append(f"eager results identical in {self.same} of {plural(self.compared, 'model')}")
        found += [each.words for each in self.speed]
        found.append(f"{plural(self.reverted, 'change')} reverted" if self.reverted else "nothing reverted")
        if self.kept:
            found.append(f"{plural(self.kept, 'change')} kept against the evidence")
        if self.effects:
            found.append("changes " + ", ".join(f"{effect.value}: {count}" for effect, count in self.effects))
        return tuple(found)


def answer(evaluation: Evaluation) -> Answer:
    """The figures of an evaluation."""
    pairs = [pair for pair in map(counts_of, evaluation.models) if pair is not None]
    compared = [each.row.after.against_base for each in evaluation.models if each.row.after.against_base is not None]
    return Answer(
        models=len(evaluation.models),
        counted=len(pairs),
        breaks=evaluation.breaks,
        whole=(sum(before.whole for before, _ in pairs), sum(after.whole for _, after in pairs)),
        opaque=sum(after.whole and after.opaque_operators > 0 for _, after in pairs),
        compared=len(compared),
        same=sum(each.identical for each in compared),
        speed=tuple(_speed_answers(evaluation.models)),
        reverted=sum(not each.kept for each in evaluation.reverted),
        kept=sum(each.kept for each in evaluation.reverted),
        problems=len(evaluation.problems),
        changes=len(evaluation.changes) + sum(not each.kept for each in evaluation.reverted),
        effects=_effects(evaluation),
    )


def _effects(evaluation: Evaluation) -> tuple[tuple[Effect, int], ...]:
    """How many changes have each effect, imports and helpers left out."""
    counts = Counter(each.effect for each in evidence(evaluation) if not each.change.is_support)
    return tuple((effect, counts[effect]) for effect in Effect if counts[effect])


def counts_of(model: ModelEvaluation) -> tuple[Counts, Counts] | None:
    """The counts of both arms, None where one is missing."""
    before, after = model.row.before.counts, model.row.after.counts
    return None if before is None or after is None else (before, after)


def state(model: ModelEvaluation) -> State:
    """What became of a model."""
    pair = counts_of(model)
    if pair is None or model.row.problems:
        return State.PROBLEM
    before, after = pair
    if after.whole:
        return State.WHOLE if before.whole else State.FIXED
    if after.break_events == before.break_events:
        return State.SAME
    return State.FEWER if after.break_events < before.break_events else State.WORSE


def cold_start(row: SpeedRow | None) -> Compared | None:
    """The first calls of a fresh process together: wall time, on a CPU processor time, which others disturb less."""
    if row is None or row.cold is None:
        return None
    return row.cold.total.cpu_s if row.device == "cpu" else row.cold.total.wall_s


def cold_words(models: Sequence[ModelEvaluation]) -> str:
    """What `cold_start` is of these models."""
    devices = {each.speed.device for each in models if each.speed is not None and each.speed.cold is not None}
    return "cold start, CPU time" if devices == {"cpu"} else "cold start"


def speed_remarks(models: Sequence[ModelEvaluation]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a reader of the times must know, each with the models that it is about."""
    found: dict[str, list[str]] = {}
    for model in models:
        for remark in () if model.speed is None else filter(None, (model.speed.message, *model.speed.remarks)):
            found.setdefault(remark, []).append(model.name)
    return tuple((remark, tuple(names)) for remark, names in found.items())


def steady_state(row: SpeedRow | None) -> Steady | None:
    """Steady state with the backend that was asked for, or the first that is compiled."""
    if row is None:
        return None
    compiled = [each for each in row.steady if each.configuration != "eager"]
    return next((each for each in compiled if each.configuration == row.backend), next(iter(compiled), None))


def evidence(evaluation: Evaluation) -> tuple[Evidence, ...]:
    """Every change of the branch; those that removed most breaks first, then those that no model reached."""
    broke = evaluation.exercised
    found = [Evidence(change, _removed(evaluation, change.id), change.id in broke) for change in evaluation.changes]
    return tuple(sorted(found, key=lambda each: -sum(removed.events for removed in each.removed)))


def removed_elsewhere(evaluation: Evaluation) -> tuple[Removed, ...]:
    """Breaks that are gone although no change was made at their place."""
    return _removed(evaluation, None)


@dataclass(frozen=True)
class Declined:
    """Sites of one rule that were left alone, by reason; the most frequent reason first."""

    rule: str
    slug: str
    reasons: tuple[tuple[str, tuple[DeclinedSite, ...]], ...]

    @property
    def sites(self) -> int:
        """How many there are."""
        return sum(len(sites) for _, sites in self.reasons)


def declined(evaluation: Evaluation) -> tuple[Declined, ...]:
    """Declined sites by rule and reason, in the order of the codes."""
    rules: dict[tuple[str, str], dict[str, list[DeclinedSite]]] = {}
    for site in evaluation.declined:
        rules.setdefault((site.rule, site.slug), {}).setdefault(site.reason, []).append(site)
    return tuple(
        Declined(rule, slug, tuple((why, tuple(sites)) for why, sites in sorted(reasons.items(), key=_most_first)))
        for (rule, slug), reasons in sorted(rules.items())
    )


def _most_first(item: tuple[str, list[DeclinedSite]]) -> tuple[int, str]:
    return -len(item[1]), item[0]


def reverted_first(evaluation: Evaluation) -> tuple[Reverted, ...]:
    """What did not earn its place: what went, then what was kept all the same."""
    return tuple(sorted(evaluation.reverted, key=lambda each: each.kept))


def flag_words(row: FlagRow) -> tuple[str, ...]:
    """What capture flags do to a model that still breaks, one line each."""
    if row.message:
        return (row.message,)
    return row.advice or ("no setting leaves fewer breaks",)


def cause_of_cut(counts: Counts, graph: int) -> str:
    """Why graph number `graph` ends, in one line; empty for the last one, which reaches the end."""
    if graph == counts.graphs - 1 and (not counts.ended_by or counts.ended_by[graph] is None):
        return ""
    if not counts.ended_by:
        return site_words(counts.sites[0]) if len(counts.sites) == 1 else f"one of {plural(len(counts.sites), 'site')}"
    number = counts.ended_by[graph]
    if number is None:
        return "plain Python between two graphs, after an earlier break"
    return site_words(counts.sites[number])


def site_words(site: BreakSite) -> str:
    """A break site in a short line."""
    name = site.path.rpartition("/")[2]
    return f"{name}:{site.line}: {site.kind or site.reason}: {shortened(site.source, 60)}"


def reproduce(evaluation: Evaluation) -> str:
    """The command that makes this evaluation again."""
    words = ["graphmend", "evaluate"]
    base = evaluation.base
    words += ["--base", base.oid[:12] if base.oid and base.name == "HEAD" else base.name]
    if evaluation.head.name and evaluation.head != base:
        words += ["--head", evaluation.head.name]
    sources = Counter(each.source for each in evaluation.models)
    for each in evaluation.models:
        if each.source is Source.OPTION:
            words += ["--model", each.name]
        elif each.source is Source.HUB:
            words += ["--huggingface-id", each.name.partition(":")[2] or each.name]
    if sources[Source.TESTS]:
        words += ["--from-tests", "<pytest arguments>"]
    if sources[Source.HUGGINGFACE]:
        words.append("--huggingface")
    if any(each.speed is not None for each in evaluation.models):
        words.append("--speed")
    if any(each.flags is not None for each in evaluation.models):
        words.append("--flags")
    if any(each.xla is not None for each in evaluation.models):
        words += ["--xla-python", "<python with torch_xla>"]
    return shlex.join(words)


def measured_on(evaluation: Evaluation) -> str:
    """Machine, versions and moment in one line."""
    machine = evaluation.machine
    load = f"load {' to '.join(f'{each:.1f}' for each in machine.load)}" if machine.load else ""
    parts = [
        machine.processor,
        plural(machine.cores, "core"),
        *machine.gpus,
        machine.system,
        load,
        *(f"{name} {version}" for name, version in evaluation.versions),
        f"graphmend {evaluation.graphmend}" if evaluation.graphmend else "",
        evaluation.date,
        f"{evaluation.seconds:.0f} s" if evaluation.seconds else "",
    ]
    return ", ".join(part for part in parts if part)


def _speed_answers(models: Sequence[ModelEvaluation]) -> Iterator[SpeedAnswer]:
    quantities: tuple[tuple[str, Callable[[ModelEvaluation], Compared | None]], ...] = (
        (cold_words(models), lambda each: cold_start(each.speed)),
        ("steady latency", _steady_latency),
    )
    for quantity, of in quantities:
        found = [compared for compared in map(of, models) if compared is not None]
        if found:
            yield _speed_answer(quantity, found)


def _steady_latency(model: ModelEvaluation) -> Compared | None:
    steady = steady_state(model.speed)
    return None if steady is None else steady.latency_s


def _speed_answer(quantity: str, found: Sequence[Compared]) -> SpeedAnswer:
    verdicts = Counter(each.difference.verdict for each in found)
    logs = [math.log(max(1 + each.difference.change, 1e-9)) for each in found]
    change = math.exp(sum(logs) / len(logs)) - 1
    less, more, untold = (verdicts[each] for each in (SpeedVerdict.LESS, SpeedVerdict.MORE, SpeedVerdict.TOO_FEW))
    return SpeedAnswer(quantity, len(found), less, more, untold, change)


def _removed(evaluation: Evaluation, change: str | None) -> tuple[Removed, ...]:
    found: dict[tuple[str, int, str], list[tuple[str, BreakSite, str | None]]] = {}
    for model, site, rule in _fixed(evaluation.models, change):
        found.setdefault((site.path, site.line, site.kind), []).append((model, site, rule))
    return tuple(
        Removed(each[0][1], each[0][2], tuple(model for model, _, _ in each), sum(site.events for _, site, _ in each))
        for each in found.values()
    )


def _fixed(models: Iterable[ModelEvaluation], change: str | None) -> Iterator[tuple[str, BreakSite, str | None]]:
    for model in models:
        for judged in model.fixed:
            if judged.change == change:
                yield model.name, judged.site, judged.rule
