"""Measure the models of a migration before and after, and revert the fixes that do not earn their place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.core.findings import Finding, why_left
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.evaluation import port
from graphmend_codemod.evaluation.port import Measure, Measured, ModelMeasurer, Sites, Trees, Wanted
from graphmend_codemod.migrate.per_rule import Fixed
from graphmend_codemod.migrate.recorded_rounds import Rounds, Told
from graphmend_codemod.migrate.revert import TakingBack
from graphmend_codemod.repository.checkout import Checkout
from graphmend_codemod.repository.checkout_state import changed_meanwhile, checkout_state
from graphmend_codemod.repository.worktree import Worktree, worktree

# Each round takes back what the one before has shown; a fix that stays in spite of it goes with its function, its file.
_MOST_VERDICTS = 5
# Each may take minutes a model.
_MOST_TIMINGS = 2


@dataclass(frozen=True)
class Proving:
    """How the fixes of one work tree are proven. `folder` receives trees and measurements, `asked` are the paths that
    the migration is limited to, and `keep` leaves fixes that do not earn their place.
    """

    checkout: Checkout
    tree: Worktree
    folder: Path
    settings: Settings
    wanted: Wanted
    taking_back: TakingBack
    asked: Sequence[Path]
    keep: bool
    progress: Callable[[str], None]

    def prove(self, fixed: Fixed, branch: str, measure: Measure) -> tuple[Fixed, Measured, Told]:
        """What is left of `fixed`, with what recorded runs add to it, and what was measured and recorded."""
        if not self.wanted.anything:
            return fixed, Measured(), Told()
        with contextlib.ExitStack() as stack:
            state = checkout_state(self.checkout)
            judge = measure(self._trees(fixed, branch, stack), self.wanted, self.progress)
            fixed, measured = self._verdicts(fixed, judge)
            rounds = Rounds(
                judge,
                self.taking_back,
                lambda now: self._verdicts(now, judge),
                self._changed,
                self.asked,
                self.wanted.rounds,
                self.progress,
            )
            fixed, measured = rounds.run(fixed, measured)
            measured = judge.finish(measured)
            for _ in range(_MOST_TIMINGS):
                remaining = self.taking_back.without(fixed, measured.slower) if measured.slower else fixed
                if remaining == fixed:
                    break
                fixed, measured = self._verdicts(remaining, judge)
                measured = judge.finish(measured)
            measured = measured.noting(changed_meanwhile(state, checkout_state(self.checkout)))
            told = rounds.told(fixed)
            return fixed, measured.telling(told.rounds, told.left), told

    def _verdicts(self, fixed: Fixed, judge: ModelMeasurer) -> tuple[Fixed, Measured]:
        known: set[port.Culprit] = set()
        for _ in range(_MOST_VERDICTS):
            measured = judge.verdict(self._sites(fixed), self._changed(fixed))
            new = set(measured.culprits)
            if not new or self.keep:
                break
            remaining = self.taking_back.without(fixed, measured.culprits)
            if remaining == fixed and new <= known:
                break
            known |= new
            fixed = remaining
        return fixed, measured

    def _trees(self, fixed: Fixed, branch: str, stack: contextlib.ExitStack) -> Trees:
        head = self.settings.root
        inside = head.relative_to(self.tree.root)
        folders = [head, head]
        if fixed.steps or self.wanted.rounds:
            for number, name in enumerate(("base", "trial")):
                folder = self.folder / name
                folder.mkdir()
                tree = stack.enter_context(worktree(self.checkout, self.tree.commit, folder))
                folders[number] = tree.root / inside
        return Trees(
            base=folders[0],
            head=head,
            trial=folders[1],
            folder=self.folder / "measured",
            memory=self.checkout.common / "graphmend" / "rows",
            repository=self.checkout.name,
            base_name=self.tree.commit.name,
            base_oid=self.tree.commit.oid,
            head_name=branch,
            helpers=self.settings.helpers or "",
        )

    def _sites(self, fixed: Fixed) -> Sites:
        """Findings as the evaluation knows files: by their paths from the project's root."""
        applied = [finding for step in fixed.steps for finding in step.applied]
        return Sites(
            tuple(self._inside(finding) for finding in applied),
            tuple((self._inside(finding), why_left(finding)) for finding in fixed.remaining),
        )

    def _inside(self, finding: Finding) -> Finding:
        return finding._replace(path=finding.path.removeprefix(self._prefix))

    def _changed(self, fixed: Fixed) -> list[str]:
        paths = {path for step in fixed.steps for path in step.files}
        found = {path.removeprefix(self._prefix) for path in paths}
        return sorted(found | {self.settings.helpers} if found and self.settings.helpers is not None else found)

    @property
    def _prefix(self) -> str:
        inside = self.settings.root.relative_to(self.tree.root).as_posix()
        return "" if inside == "." else f"{inside}/"
