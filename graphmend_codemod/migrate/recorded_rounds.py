"""Rounds of a migration: record the models that still break, fix what broke in the run, measure, and record again.

A break hides what comes behind it, and what only a run tells cannot be fixed before one. Each round's fixes are
measured like all others before the next run is recorded, and a fix that was reverted is not made again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_codemod.core.findings import Finding, why_left
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.engine.fixpoint import first_line
from graphmend_codemod.evaluation.port import Measured, ModelMeasurer, RecordedModel
from graphmend_codemod.evaluation.rounds import LeftBreak, RecordedFix, Round
from graphmend_codemod.migrate.per_rule import Fixed
from graphmend_codemod.migrate.revert import TakingBack, taken_key
from graphmend_codemod.reporting.recorded import holds_for
from graphmend_codemod.trace import join, merged, selection
from graphmend_codemod.trace.document import OWN, Site, Trace
from graphmend_codemod.trace.join import Answer, Remedy


@dataclass(frozen=True)
class Told:
    """What the rounds did, and what still breaks after the last one."""

    rounds: tuple[Round, ...] = ()
    left: tuple[LeftBreak, ...] = ()


@dataclass(frozen=True)
class _Run:
    """Recorded runs of the models that break, of one state of the code."""

    models: tuple[RecordedModel, ...]

    @property
    def traces(self) -> list[Trace]:
        return [each.trace for each in self.models if each.trace is not None]


class Rounds:
    """At most `most` rounds. `verdicts` measures and reverts what does not earn its place, `changed` names the files
    that differ from the base, `asked` are the paths that may be changed, all if there are none.
    """

    def __init__(
        self,
        judge: ModelMeasurer,
        taking_back: TakingBack,
        verdicts: Callable[[Fixed], tuple[Fixed, Measured]],
        changed: Callable[[Fixed], list[str]],
        asked: Sequence[Path],
        most: int,
        progress: Callable[[str], None],
    ) -> None:
        self._judge = judge
        self._taking_back = taking_back
        self._settings = taking_back.settings
        self._verdicts = verdicts
        self._changed = changed
        self._asked = asked
        self._most = most
        self._progress = progress
        self._done: list[tuple[Round, tuple[Finding, ...]]] = []
        self._left: tuple[LeftBreak, ...] = ()

    def run(self, fixed: Fixed, measured: Measured) -> tuple[Fixed, Measured]:
        """Record and fix until nothing breaks, or a round writes nothing."""
        if not self._most:
            return fixed, measured
        for number in range(1, self._most + 1):
            started = time.monotonic()
            run = self._recorded(fixed, measured)
            after = self._fixed(fixed, run)
            if after is fixed:
                break
            self._progress(f"round {number}: measuring what the recorded run fixed")
            applied = tuple(each for step in after.steps if step.round == number for each in step.applied)
            before = measured
            fixed, measured = self._verdicts(after)
            self._done.append((_round(number, run, before, measured, time.monotonic() - started), applied))
        else:
            run = self._recorded(fixed, measured)
        self._left = tuple(self._left_breaks(run))
        return fixed, measured

    def told(self, fixed: Fixed) -> Told:
        """What came of the rounds, where `fixed` is what is left of all fixes."""
        return Told(tuple(self._with_fixes(*each, fixed) for each in self._done), self._left)

    def _recorded(self, fixed: Fixed, measured: Measured) -> _Run:
        """New recordings of the models that still break."""
        models = [each.model for each in measured.models if each.after.breaks is not None and not each.after.whole]
        return _Run(self._judge.record(models, self._changed(fixed)) if models else ())

    def _fixed(self, fixed: Fixed, run: _Run) -> Fixed:
        """`fixed` itself where the runs show nothing that can be fixed."""
        if not run.traces:
            return fixed
        trace, jobs = merged.merged(run.traces), self._taking_back.jobs
        settings = selection.of_trace(trace, self._opaque, jobs=jobs, cache=False)
        only = tuple(key for key in settings.only_sites or () if self._may_change(key[0]))
        return self._taking_back.with_recorded(fixed, settings._replace(only_sites=only)) if only else fixed

    @property
    def _opaque(self) -> Settings:
        """What a trace is joined with: operators are allowed where the run broke."""
        return self._settings._replace(opaque=True, only_sites=None)

    def _may_change(self, path: str) -> bool:
        file = Path(os.path.normpath(self._settings.root / path))
        return file.is_file() and (not self._asked or any(file.is_relative_to(each) for each in self._asked))

    def _with_fixes(self, made: Round, applied: Sequence[Finding], fixed: Fixed) -> Round:
        kept = {taken_key(each) for step in fixed.steps if step.round == made.number for each in step.applied}
        taken = self._taking_back.taken
        fixes = []
        for finding in sorted(applied, key=taken_key):
            key = taken_key(finding)
            gone = "" if key in kept else taken[key].reason if key in taken else "reverted with another fix"
            path, line = finding.path, finding.span.start_line
            fixes.append(RecordedFix(finding.code, path, line, finding.function, holds_for(finding), gone))
        return replace(made, fixes=tuple(fixes))

    # -- what is left --------------------------------------------------------------------------------------------

    def _left_breaks(self, run: _Run) -> Iterator[LeftBreak]:
        joined = join.join(merged.merged(run.traces), self._opaque, jobs=self._taking_back.jobs, cache=False)
        models: dict[tuple[object, ...], dict[str, None]] = {}
        for each in run.models:
            for site in each.trace.sites if each.trace is not None else ():
                models.setdefault(merged.key_of(site), {})[each.model] = None
            if each.trace is None:
                yield LeftBreak("", 0, "", "not recorded", each.message, (each.model,))
        for site, answer in zip(joined.trace.sites, joined.answers, strict=True):
            named = models.pop(merged.key_of(site), None)
            if named is not None:
                shown = site.shown
                path = f"{self._taking_back.prefix}{shown.path}" if shown.where == OWN else shown.path
                reason = self._reason(site, answer)
                yield LeftBreak(path, shown.line, shown.function, site.kind, reason, tuple(named))

    def _reason(self, site: Site, answer: Answer) -> str:
        finding = answer.finding
        forbidden = "" if finding is None else self._taking_back.why_not(finding, self._statement(finding))
        if forbidden:
            return f"{answer.code}: {forbidden}"
        if answer.diff and answer.remedy in (Remedy.FIX, Remedy.OPAQUE):
            if not self._may_change(site.shown.path):
                return f"{answer.code}: it is outside of the paths that the migration is limited to"
            return f"{answer.code}: a further round may fix it: `--record {self._most + 1}`"
        if answer.diff and finding is not None:
            return f"{answer.code}: {why_left(finding)}"
        steps = " ".join(answer.steps[:1])
        if answer.reason:
            return f"{answer.code}: {answer.reason}"
        said = f"{answer.code}: {answer.message}" if answer.code else "no rule has anything for it"
        return f"{said}. {steps}" if steps else said

    def _statement(self, finding: Finding) -> str:
        try:
            text = SourceFile.below(str(self._settings.root), finding.path).text
        except SourceError:
            return ""
        return first_line(text, finding.span.start_line)


def _round(number: int, run: _Run, before: Measured, after: Measured, seconds: float) -> Round:
    was = {each.model: each.after.breaks for each in before.models}
    pairs = [(was.get(each.model), each.after.breaks) for each in after.models]
    counted = [(old, new) for old, new in pairs if old is not None and new is not None]
    return Round(
        number=number,
        recorded=tuple(each.model for each in run.models if each.trace is not None),
        failed=tuple(f"{each.model}: {each.message}" for each in run.models if each.trace is None),
        before=sum(old for old, _ in counted),
        after=sum(new for _, new in counted),
        fixes=(),
        seconds=round(seconds, 1),
    )
