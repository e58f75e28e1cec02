"""Revert single fixes of a migration by fixing their files again from the base without those sites.

The files are fixed again, rather than lines undone, so imports and helpers that only a reverted fix needed are gone as
well. Fixes of recorded runs are made in the same order as the first time: what the source shows, then each run in turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.fixpoint import Veto
from graphmend_codemod.evaluation.port import Culprit
from graphmend_codemod.migrate.outcome import TakenBack
from graphmend_codemod.migrate.per_rule import Engine, Fixed, Step, fix_rule_by_rule, left_after
from graphmend_codemod.repository.worktree import Worktree

_NEARBY = 3

TakenKey = tuple[str, str, int]


class _Forbidden(NamedTuple):
    """A fix that must not be made again. `round` is that in which it was made; a `harmless` one only did not help."""

    round: int
    veto: Veto
    harmless: bool


@dataclass
class TakingBack:
    """The fixes of one work tree that must go, growing with every verdict, and those that recorded runs add."""

    worktree: Worktree
    settings: Settings
    engine: Engine
    jobs: int
    cache: bool
    progress: Callable[[str], None]
    taken: dict[TakenKey, TakenBack] = field(default_factory=dict)
    _forbidden: list[_Forbidden] = field(default_factory=list)
    _rounds: list[Settings] = field(default_factory=list)

    def without(self, fixed: Fixed, culprits: Sequence[Culprit]) -> Fixed:
        """The work tree, and what `fixed` said of it, without the fixes at `culprits`; paths from the project's root.

        Of several fixes at one place, those of the latest recorded run go first. A site that is named again although it
        was forbidden stands for its whole function, then for its whole file.
        """
        paths: dict[str, None] = {}
        for culprit in culprits:
            for number, finding, statement in _at(culprit, fixed, self.prefix):
                self._forbid(number, finding, statement, culprit)
                paths[finding.path] = None
        if not paths:
            return fixed
        self.progress(f"reverting fixes in {len(paths)} file{'' if len(paths) == 1 else 's'}")
        for path in paths:
            (self.worktree.root / path).write_bytes(self._base(path))
        return _merged(fixed, self._again(list(paths)), set(paths))

    def with_recorded(self, fixed: Fixed, settings: Settings) -> Fixed:
        """The work tree, and what `fixed` said of it, with fixes of what broke in a recorded run.

        `settings` know the run. Returns `fixed` itself where there is nothing to write.
        """
        more = self._fixed(self._files_of(settings), settings, fixed.steps, len(self._rounds) + 1)
        if not more.steps:
            return fixed
        self._rounds.append(settings)
        changed = {path for step in more.steps for path in step.files}
        steps = (*fixed.steps, *more.steps)
        left = self._left(sorted(changed), steps)
        return Fixed(
            steps,
            tuple(sorted((*(each for each in fixed.remaining if each.path not in changed), *left), key=_order)),
            tuple(dict.fromkeys((*fixed.problems, *more.problems))),
            fixed.files,
        )

    def why_not(self, finding: Finding, statement: str) -> str:
        """Why a recorded run may not have a finding fixed, whose path is that from the project's root; empty where it
        may."""
        return next((veto.reason for veto in self._vetoes_of(1) if veto.forbids(finding, statement)), "")

    def _vetoes_of(self, number: int) -> list[Veto]:
        """What is forbidden in a round. A fix that only did not help says nothing of what a run makes of its place."""
        return [each.veto for each in self._forbidden if not number or each.round or not each.harmless]

    def _again(self, paths: Sequence[str]) -> Fixed:
        """Files that are as they were committed, fixed once more."""
        again = self._fixed(paths, self.settings, (), 0)
        for number, settings in enumerate(self._rounds, 1):
            files = [path for path in self._files_of(settings) if path in paths]
            more = self._fixed(files, settings, again.steps, number)
            again = replace(again, steps=(*again.steps, *more.steps), problems=(*again.problems, *more.problems))
        return replace(again, remaining=self._left(paths, again.steps)) if self._rounds else again

    def _fixed(self, paths: Sequence[str], settings: Settings, before: Sequence[Step], number: int) -> Fixed:
        if not paths:
            return Fixed((), (), (), 0)
        if number or self._rounds:
            self.engine.renew()
        return fix_rule_by_rule(
            self.worktree,
            [self.worktree.root / path for path in paths],
            settings,
            self.engine,
            jobs=self.jobs,
            cache=self.cache,
            progress=self.progress,
            vetoes=self._vetoes_of(number),
            before=before,
            run=number,
        )

    def _left(self, paths: Sequence[str], steps: Sequence[Step]) -> tuple[Finding, ...]:
        self.engine.renew()
        return left_after(
            self.worktree,
            [self.worktree.root / path for path in paths],
            self.settings,
            self.engine,
            jobs=self.jobs,
            cache=self.cache,
            vetoes=self._vetoes_of(0),
            before=steps,
        )

    def _files_of(self, settings: Settings) -> list[str]:
        """The files of a recorded run's sites, from the root of the repository."""
        return sorted({f"{self.prefix}{path}" for path, *_ in settings.only_sites or ()})

    @property
    def prefix(self) -> str:
        """What paths from the root of the repository begin with, before those from the root of the project."""
        inside = os.path.relpath(self.settings.root, self.worktree.root).replace(os.sep, "/")
        return "" if inside == "." else f"{inside}/"

    def _base(self, path: str) -> bytes:
        return self.worktree.git.output("cat-file", "blob", self.worktree.entries[path].oid)

    def _forbid(self, number: int, finding: Finding, statement: str, culprit: Culprit) -> None:
        exact = Veto(
            finding.path.removeprefix(self.prefix),
            finding.code,
            finding.function,
            statement,
            f"reverted after evaluation: {culprit.reason}",
        )
        ladder = [exact, exact._replace(statement=""), exact._replace(statement="", function="")]
        known = [(veto.path, veto.rule, veto.function, veto.statement) for veto in self._vetoes_of(number)]
        for veto in ladder:
            if (veto.path, veto.rule, veto.function, veto.statement) not in known:
                self._forbidden.append(_Forbidden(number, veto, culprit.harmless))
                break
        self.taken.setdefault(taken_key(finding), TakenBack(finding, culprit.reason, culprit.harmless))


def taken_key(finding: Finding) -> TakenKey:
    """What a fix is known by in `TakingBack.taken`."""
    return finding.path, finding.code, finding.span.start_line


def _at(culprit: Culprit, fixed: Fixed, prefix: str) -> list[tuple[int, Finding, str]]:
    """The fixes at a change, each with its round and its statement; those of the latest round where there are several.

    One that another fix made room for is placed only nearby.
    """
    path = f"{prefix}{culprit.path}"
    in_file = [
        (step.round, finding, statement)
        for step in fixed.steps
        for finding, statement in zip(step.applied, step.statements, strict=True)
        if finding.path == path
    ]
    for distance in (0, _NEARBY):
        first, last = culprit.first - distance, culprit.last + distance
        found = [each for each in in_file if each[1].span.start_line <= last and each[1].span.end_line >= first]
        if found:
            latest = max(number for number, _, _ in found)
            return [each for each in found if each[0] == latest]
    return []


def _merged(old: Fixed, new: Fixed, paths: set[str]) -> Fixed:
    """`old` with what `new` says about `paths`; each rule keeps its place, so that a file's texts stay in order."""
    steps = [
        _with(step, (), {path: text for path, text in step.files.items() if path not in paths}) for step in old.steps
    ]
    place = 0
    for step in new.steps:
        later = range(place, len(steps))
        same = [n for n in later if (steps[n].rule.code, steps[n].round) == (step.rule.code, step.round)]
        if same:
            place = same[0]
            steps[place] = _with(steps[place], [step], {**steps[place].files, **step.files})
        else:
            place = next((n for n in later if steps[n].round > step.round), len(steps))
            steps.insert(place, step)
        place += 1
    return Fixed(
        tuple(step for step in steps if step.files),
        tuple(sorted((*(each for each in old.remaining if each.path not in paths), *new.remaining), key=_order)),
        tuple(dict.fromkeys((*old.problems, *new.problems))),
        old.files,
    )


def _with(step: Step, others: Iterable[Step], files: Mapping[str, bytes]) -> Step:
    """A step with what others of the same rule did, limited to `files`."""
    every = [pair for each in (step, *others) for pair in zip(each.applied, each.statements, strict=True)]
    kept = sorted((pair for pair in every if pair[0].path in files), key=lambda pair: _order(pair[0]))
    applied, statements = tuple(each for each, _ in kept), tuple(each for _, each in kept)
    return replace(step, applied=applied, statements=statements, files=dict(sorted(files.items())))


def _order(finding: Finding) -> tuple[str, int, int, str]:
    return finding.path, finding.span.start_line, finding.span.start_column, finding.code
