"""Fix a work tree one rule after the other, so that each rule's changes can become a commit of their own."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from graphmend_codemod.core.findings import Finding, Problem, Span
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.engine.api import CheckResult, FixResult
from graphmend_codemod.engine.fixpoint import FileFix, Veto, first_line
from graphmend_codemod.repository.worktree import Worktree, blob_id
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Rule

# One rule's fix can make room for another rule's. More rounds than this would be two rules undoing each other.
_MOST_ROUNDS = 5

Opcode = tuple[str, int, int, int, int]  # of difflib: what, lines of the base, lines of the text


class Check(Protocol):
    """`api.check`."""

    def __call__(self, paths: Sequence[Path], settings: Settings, *, jobs: int, cache: bool) -> CheckResult: ...


class Fix(Protocol):
    """`api.fix`."""

    def __call__(
        self,
        paths: Sequence[Path],
        settings: Settings,
        *,
        write: bool,
        jobs: int,
        cache: bool,
        vetoes: Sequence[Veto],
    ) -> FixResult: ...


def _nothing() -> None: ...


@dataclass(frozen=True)
class Engine:
    """What finds and fixes. The order of `rules` is the order of commits. `renew` is called before files are looked at
    that something else may have written since the engine read them.
    """

    check: Check = api.check
    fix: Fix = api.fix
    rules: Sequence[Rule] = field(default_factory=all_rules)
    renew: Callable[[], None] = _nothing


@dataclass(frozen=True)
class Step:
    """What one rule changed: the findings whose fixes were written, and the new bytes of each file.

    Paths are relative to the repository's root; lines are those of the commit that the work tree was made from.
    `round` counts the recorded runs up to the one that the rule's sites broke in; it is 0 where there was none.
    `statements` are the first lines of what was fixed, one for each of `applied`, as the rule found them.
    """

    rule: Rule
    applied: tuple[Finding, ...]
    files: Mapping[str, bytes]
    round: int = 0
    statements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fixed:
    """The outcome for a whole work tree; `remaining` are the findings that are left, placed as in `Step`."""

    steps: tuple[Step, ...]
    remaining: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int


def fix_rule_by_rule(
    worktree: Worktree,
    paths: Sequence[Path],
    settings: Settings,
    engine: Engine,
    *,
    jobs: int,
    cache: bool,
    progress: Callable[[str], None],
    vetoes: Sequence[Veto] = (),
    before: Sequence[Step] = (),
    run: int = 0,
) -> Fixed:
    """Fix `paths`, all inside `worktree`, in place, until no rule has anything left to write.

    The paths of `vetoes` are relative to the project's root. `before` are the steps that led to the files as they are;
    `run` is the round of the new ones, which alone are returned.
    """
    texts = _Texts(worktree, settings, before)
    steps: list[Step] = []
    for _ in range(_MOST_ROUNDS):
        progress("looking for break sites")
        checked = engine.check(paths, settings, jobs=jobs, cache=cache)
        todo = _rules_to_run(checked, texts, settings, engine.rules)
        new = []
        for number, (rule, files) in enumerate(todo, 1):
            progress(f"[{number}/{len(todo)}] {rule.code} {rule.title}")
            result = engine.fix(
                files, settings._replace(select=(rule.code,)), write=True, jobs=jobs, cache=cache, vetoes=vetoes
            )
            step = replace(texts.step(rule, result), round=run)
            if step.files:
                new.append(step)
        steps += new
        if not new:
            break
    remaining = _remaining(checked, texts, settings, engine, jobs=jobs, cache=cache, vetoes=vetoes)
    problems = tuple(dict.fromkeys((*map(texts.from_root, checked.problems), *texts.problems)))
    return Fixed(tuple(steps), remaining, problems, checked.files)


def left_after(
    worktree: Worktree,
    paths: Sequence[Path],
    settings: Settings,
    engine: Engine,
    *,
    jobs: int,
    cache: bool,
    vetoes: Sequence[Veto],
    before: Sequence[Step],
) -> tuple[Finding, ...]:
    """Findings in `paths` after the steps `before` that `settings` do not fix."""
    texts = _Texts(worktree, settings, before)
    checked = engine.check(paths, settings, jobs=jobs, cache=cache)
    return _remaining(checked, texts, settings, engine, jobs=jobs, cache=cache, vetoes=vetoes)


def _remaining(
    checked: CheckResult,
    texts: _Texts,
    settings: Settings,
    engine: Engine,
    *,
    jobs: int,
    cache: bool,
    vetoes: Sequence[Veto],
) -> tuple[Finding, ...]:
    left = _with_refusals(checked.findings, settings, engine, jobs=jobs, cache=cache, vetoes=vetoes)
    return tuple(texts.at_base(finding, texts.current(finding.path)) for finding in left)


def applies(finding: Finding, settings: Settings) -> bool:
    """Whether fixing with these settings writes this finding's edit."""
    return finding.is_applied(settings.unsafe_fixes, settings.opaque)


def _rules_to_run(
    checked: CheckResult, texts: _Texts, settings: Settings, rules: Sequence[Rule]
) -> list[tuple[Rule, list[Path]]]:
    files: dict[str, dict[str, None]] = {}
    for finding in checked.findings:
        if applies(finding, settings) and texts.may_write(finding.path):
            files.setdefault(finding.code, {})[finding.path] = None
    dear = list(dict.fromkeys(code for _, code, _, _ in settings.only_sites or ()))  # of a recorded run, dearest first
    wanted = sorted(
        (rule for rule in rules if rule.code in files),
        key=lambda rule: dear.index(rule.code) if rule.code in dear else len(dear),
    )
    return [(rule, [settings.root / path for path in files[rule.code]]) for rule in wanted]


def _with_refusals(
    findings: Sequence[Finding],
    settings: Settings,
    engine: Engine,
    *,
    jobs: int,
    cache: bool,
    vetoes: Sequence[Veto],
) -> tuple[Finding, ...]:
    """`findings`, where those whose edits could not be written say so: only fixing finds that out."""
    refused = {finding.path for finding in findings if applies(finding, settings)}
    if not refused:
        return tuple(findings)
    files = [settings.root / path for path in sorted(refused)]
    tried = engine.fix(files, settings, write=False, jobs=jobs, cache=cache, vetoes=vetoes)
    others = [finding for finding in findings if finding.path not in refused]
    return tuple(sorted((*others, *tried.remaining), key=lambda finding: (finding.path, finding.span)))


class _Texts:
    """The files of a work tree as they were committed and as they are by now, by path from the project's root.

    `before` are the steps that were taken so far.
    """

    def __init__(self, worktree: Worktree, settings: Settings, before: Sequence[Step] = ()) -> None:
        project = settings.root
        self._helpers = settings.helpers
        self._worktree = worktree
        self._project = project
        self._prefix = "" if project == worktree.root else f"{project.relative_to(worktree.root).as_posix()}/"
        self._base: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}
        self._alignments: dict[bytes, list[Opcode]] = {}
        self.problems: dict[Problem, None] = {}
        for step in before:
            self._now |= {path.removeprefix(self._prefix): text for path, text in step.files.items()}
        for path in self._now:
            self._base[path] = self._committed(path)

    def may_write(self, path: str) -> bool:
        """Whether git tracks a regular file there: writing through a symbolic link could leave the work tree."""
        entry = self._worktree.entries.get(self._prefix + path)
        if entry is None or not entry.is_file:
            self._complain(path, "is not a regular file tracked by git; skipped")
            return False
        return True

    def step(self, rule: Rule, result: FixResult) -> Step:
        """Take over what a rule wrote."""
        for problem in result.problems:
            self.problems[self.from_root(problem)] = None
        applied: list[Finding] = []
        statements: list[str] = []
        files: dict[str, bytes] = {}
        for change in result.fixes:
            if change.path == self._helpers:
                continue  # what is left of it in the end goes into one commit
            if change.before != change.after and self._is_sound(change):
                text = change.before.decode("utf-8", "replace")
                statements += [first_line(text, finding.span.start_line) for finding in change.applied]
                applied += [self.at_base(finding, change.before) for finding in change.applied]
                self._now[change.path] = change.after
                files[self._prefix + change.path] = change.after
        return Step(rule, tuple(applied), files, statements=tuple(statements))

    def current(self, path: str) -> bytes | None:
        """The text of a file that was changed; None for one that is as it was."""
        return self._now.get(path)

    def at_base(self, finding: Finding, text: bytes | None) -> Finding:
        """A finding in `text`, where it stands in the repository's committed text."""
        base = self._base.get(finding.path)
        if text is None or base is None or base == text:
            span = finding.span
        else:
            span = _moved(finding.span, self._alignment(base, text))
        return finding._replace(path=self._prefix + finding.path, span=span)

    def from_root(self, problem: Problem) -> Problem:
        """A problem with its path from the root of the repository."""
        path = problem.path
        if os.path.isabs(path):
            path = os.path.relpath(path, self._worktree.root).replace(os.sep, "/")
        else:
            path = self._prefix + path
        return problem._replace(path=path)

    def _is_sound(self, change: FileFix) -> bool:
        """Whether a change starts from the text that we know; otherwise somebody else wrote, and it is undone."""
        path = change.path
        if not self.may_write(path):
            return False
        entry = self._worktree.entries[self._prefix + path]
        if path not in self._now and blob_id(change.before, like=entry.oid) == entry.oid:
            self._base[path] = change.before
        elif self._now.get(path) != change.before:
            known = self._now.get(path)
            (self._project / path).write_bytes(self._committed(path) if known is None else known)
            self._complain(path, "was changed by another process during the migration; skipped")
            return False
        return True

    def _committed(self, path: str) -> bytes:
        return self._worktree.git.output("cat-file", "blob", self._worktree.entries[self._prefix + path].oid)

    def _alignment(self, base: bytes, text: bytes) -> list[Opcode]:
        if text not in self._alignments:
            matcher = difflib.SequenceMatcher(None, base.splitlines(), text.splitlines())
            self._alignments[text] = list(matcher.get_opcodes())
        return self._alignments[text]

    def _complain(self, path: str, message: str) -> None:
        self.problems[Problem(self._prefix + path, message)] = None


def _moved(span: Span, alignment: Sequence[Opcode]) -> Span:
    """`span` in the text that it is aligned with: exact in unchanged lines, nearby in others."""
    line = span.start_line
    for _, base_start, base_stop, start, stop in alignment:
        if start < line <= stop:
            line = min(base_start + line - start, max(base_stop, base_start + 1))
            break
    return span._replace(start_line=line, end_line=line + span.end_line - span.start_line)
