"""Revert single fixes of a migration by fixing their files again from the base without those sites.

Fixing again, and not undoing lines, leaves no import and no helper behind that only a fix taken back had needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.fixpoint import Veto, first_line
from graphmend_codemod.evaluation.port import Culprit
from graphmend_codemod.migrate.outcome import TakenBack
from graphmend_codemod.migrate.per_rule import Engine, Fixed, Step, fix_rule_by_rule
from graphmend_codemod.repository.worktree import Worktree

_NEARBY = 3


@dataclass
class TakingBack:
    """The fixes of one work tree that must go, growing with every verdict."""

    worktree: Worktree
    settings: Settings
    engine: Engine
    jobs: int
    cache: bool
    progress: Callable[[str], None]
    taken: dict[tuple[str, str, int], TakenBack] = field(default_factory=dict)
    _vetoes: list[Veto] = field(default_factory=list)

    def without(self, fixed: Fixed, culprits: Sequence[Culprit]) -> Fixed:
        """The work tree, and what `fixed` said of it, without the fixes at `culprits`; paths from the project's root.

        A site that is named again although it was forbidden stands for its whole function, then for its whole file.
        """
        paths: dict[str, None] = {}
        for culprit in culprits:
            for finding in _at(culprit, fixed, self._prefix):
                self._forbid(finding, culprit)
                paths[finding.path] = None
        if not paths:
            return fixed
        self.progress(f"reverting fixes in {len(paths)} file{'' if len(paths) == 1 else 's'}")
        for path in paths:
            (self.worktree.root / path).write_bytes(self._base(path))
        again = fix_rule_by_rule(
            self.worktree,
            [self.worktree.root / path for path in paths],
            self.settings,
            self.engine,
            jobs=self.jobs,
            cache=self.cache,
            progress=self.progress,
            vetoes=self._vetoes,
        )
        return _merged(fixed, again, set(paths))

    @property
    def _prefix(self) -> str:
        inside = os.path.relpath(self.settings.root, self.worktree.root).replace(os.sep, "/")
        return "" if inside == "." else f"{inside}/"

    def _base(self, path: str) -> bytes:
        return self.worktree.git.output("cat-file", "blob", self.worktree.entries[path].oid)

    def _forbid(self, finding: Finding, culprit: Culprit) -> None:
        statement = first_line(self._base(finding.path).decode("utf-8", "replace"), finding.span.start_line)
        exact = Veto(
            finding.path.removeprefix(self._prefix),
            finding.code,
            finding.function,
            statement,
            f"reverted after evaluation: {culprit.reason}",
        )
        ladder = [exact, exact._replace(statement=""), exact._replace(statement="", function="")]
        known = [(veto.path, veto.rule, veto.function, veto.statement) for veto in self._vetoes]
        for veto in ladder:
            if (veto.path, veto.rule, veto.function, veto.statement) not in known:
                self._vetoes.append(veto)
                break
        key = (finding.path, finding.code, finding.span.start_line)
        self.taken.setdefault(key, TakenBack(finding, culprit.reason))


def _at(culprit: Culprit, fixed: Fixed, prefix: str) -> list[Finding]:
    """The fixes at a change. One that another fix made room for is placed only nearby."""
    path = f"{prefix}{culprit.path}"
    in_file = [finding for step in fixed.steps for finding in step.applied if finding.path == path]
    for distance in (0, _NEARBY):
        first, last = culprit.first - distance, culprit.last + distance
        found = [each for each in in_file if each.span.start_line <= last and each.span.end_line >= first]
        if found:
            return found
    return []


def _merged(old: Fixed, new: Fixed, paths: set[str]) -> Fixed:
    """`old` with what `new` says about `paths`; each rule keeps its place, so that a file's texts stay in order."""
    steps = [
        replace(
            step,
            applied=tuple(each for each in step.applied if each.path not in paths),
            files={path: text for path, text in step.files.items() if path not in paths},
        )
        for step in old.steps
    ]
    place = 0
    for step in new.steps:
        later = [number for number in range(place, len(steps)) if steps[number].rule.code == step.rule.code]
        if later:
            place = later[0]
            steps[place] = _joined(steps[place], step)
        else:
            place = len(steps)
            steps.append(step)
        place += 1
    return Fixed(
        tuple(step for step in steps if step.files),
        tuple(sorted((*(each for each in old.remaining if each.path not in paths), *new.remaining), key=_order)),
        tuple(dict.fromkeys((*old.problems, *new.problems))),
        old.files,
    )


def _joined(first: Step, second: Step) -> Step:
    files: Mapping[str, bytes] = dict(sorted({**first.files, **second.files}.items()))
    return replace(first, applied=tuple(sorted((*first.applied, *second.applied), key=_order)), files=files)


def _order(finding: Finding) -> tuple[str, int, int, str]:
    return finding.path, finding.span.start_line, finding.span.start_column, finding.code
