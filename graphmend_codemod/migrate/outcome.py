"""What a migration did: the values that its summary and its report are views of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.core.findings import Finding, Problem, why_left
from graphmend_codemod.evaluation.port import Measured, ModelResult
from graphmend_codemod.evaluation.rounds import LeftBreak, Round
from graphmend_codemod.repository.checkout import Commit
from graphmend_codemod.rules.framework.rule import Rule

DONE, NOTHING_DONE = 0, 2


@dataclass(frozen=True)
class RuleCommit:
    """One commit: the findings whose fixes it holds and the files that it changes. `oid` is None after a dry run.

    `round` is that of the recorded run that its sites broke in, 0 for what the source alone shows.
    """

    rule: Rule
    subject: str
    oid: str | None
    applied: tuple[Finding, ...]
    files: tuple[str, ...]
    round: int = 0


@dataclass(frozen=True)
class TakenBack:
    """A fix that was reverted after evaluation. `finding` has the path and lines of the base.

    `harmless` is true where it only did not help; the run that measured it alone knows that.
    """

    finding: Finding
    reason: str
    harmless: bool = False


@dataclass(frozen=True)
class Migration:
    """The outcome. Paths are relative to the repository's root, `top`, which is None for a bare repository.

    `branch` exists when there are commits and `dry_run` is false. `remaining` are the findings at its end, `files`
    counts the files that were looked at, `report` is the folder that the report was written to. `taken_back` are fixes
    that the evaluation showed not to earn their place. `rounds` are those of recorded runs, `left_breaks` what still
    broke in the last one.
    """

    repository: str
    top: Path | None
    base: Commit
    branch: str
    commits: tuple[RuleCommit, ...]
    remaining: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    measured: Measured
    taken_back: tuple[TakenBack, ...]
    remarks: tuple[str, ...]
    unsafe_fixes: bool
    dry_run: bool
    report: Path | None
    rounds: tuple[Round, ...] = ()
    left_breaks: tuple[LeftBreak, ...] = ()

    @property
    def models(self) -> tuple[ModelResult, ...]:
        """The models that were evaluated."""
        return self.measured.models

    @property
    def recorded(self) -> bool:
        """True where models that broke were recorded."""
        return bool(self.rounds or self.left_breaks)

    @property
    def sites(self) -> int:
        """How many break sites were fixed."""
        return sum(len(commit.applied) for commit in self.commits)

    @property
    def changed_files(self) -> int:
        """How many files the branch changes."""
        return len({path for commit in self.commits for path in commit.files})

    @property
    def exit_code(self) -> int:
        """0 when a branch was made or nothing is to be fixed, 2 when no file could be looked at."""
        unreadable = {problem.path for problem in self.problems}
        return NOTHING_DONE if not self.commits and unreadable and len(unreadable) >= self.files else DONE

    @property
    def left_by_rule(self) -> Mapping[tuple[str, str], Counter[str]]:
        """How often each reason kept a site as it is, by rule (code and slug)."""
        reasons: dict[tuple[str, str], Counter[str]] = {}
        for finding in self.remaining:
            reasons.setdefault((finding.code, finding.slug), Counter())[why_left(finding)] += 1
        return dict(sorted(reasons.items()))
