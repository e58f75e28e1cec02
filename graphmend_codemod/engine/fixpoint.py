"""Apply fixes until no finding has an applicable edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.findings import Edit, Finding, Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.engine.session import Checker

if TYPE_CHECKING:
    from graphmend_codemod.rewriting.helper_module import HelperModule

_MOST_PASSES = 20
_WORTH_SHARING = 100  # lines

Proof = Callable[[SourceFile, SourceFile, Sequence[Edit]], None]
"""Raises RewriteError unless the second text is the first with these edits and nothing else."""


class FileFix(NamedTuple):
    """One file's change. `applied` holds the findings of every pass whose edits were written."""

    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]


class Veto(NamedTuple):
    """A fix that must not be made, and why: that of the sites with this rule, function and statement in a file.

    `statement` is the first line of the site's text without indentation; empty, like `function`, for any.
    """

    path: str
    rule: str
    function: str
    statement: str
    reason: str

    def forbids(self, finding: Finding, statement: str) -> bool:
        """True when the finding's fix is meant."""
        return (
            (finding.path, finding.code) == (self.path, self.rule)
            and self.function in ("", finding.function)
            and self.statement in ("", statement)
        )


class _Fixed:
    def __init__(self, source: SourceFile) -> None:
        self.before = source
        self.source = source
        self.applied: list[Finding] = []
        self.needs_helpers = False


class Fixing:
    """One run of fixes. Texts change in memory only; `remaining` and `problems` tell about the last of them."""

    def __init__(
        self,
        checker: Checker,
        settings: Settings,
        vetoes: Sequence[Veto] = (),
        proof: Proof | None = None,
        *,
        alone: bool = False,
    ) -> None:
        """`alone`: the module of helpers may not change, only the files that are fixed."""
        self._checker = checker
        self._settings = settings
        self._vetoes = vetoes
        self._proof = proof
        self._alone = alone
        self._unproven: dict[str, Problem] = {}
        self._fixed: dict[str, _Fixed] = {}
        self._helper_lines: dict[str, list[int]] = {}
        self.remaining: tuple[Finding, ...] = ()
        self.problems: tuple[Problem, ...] = ()

    def run(self, files: Sequence[str], *, named: bool) -> None:
        """Apply what may be applied until a pass applies nothing."""
        for _ in range(_MOST_PASSES):
            found = self._checker.check(files, named=named)
            found = found._replace(findings=tuple(self._unless_forbidden(each) for each in found.findings))
            self.problems = (*found.problems, *self._unproven.values())
            refused: dict[Finding, str] = {}
            if not self._pass(found.findings, refused):
                self.remaining = tuple(
                    _declined(each, f"the edit cannot be applied here: {refused[each]}" if each in refused else None)
                    for each in found.findings
                )
                return
        self.remaining = found.findings
        codes = ", ".join(sorted({each.code for each in found.findings if self._applies(each)}))
        unsettled = sorted({each.path for each in found.findings if self._applies(each)})
        message = (
            f"the fixes of {codes} do not converge after {_MOST_PASSES} passes; the file was not changed; "
            "please report this"
        )
        self.problems = (*found.problems, *(Problem(path, message) for path in unsettled))
        for path in unsettled:
            self._fixed.pop(path, None)

    def changes(self) -> Iterator[FileFix]:
        """What changed, in order of path."""
        for path, fixed in sorted(self._fixed.items()):
            if fixed.source.raw != fixed.before.raw:
                yield FileFix(path, fixed.before.raw, fixed.source.raw, tuple(fixed.applied))

    @property
    def notes(self) -> tuple[str, ...]:
        """A word on helpers that many files got."""
        repeated = sum(sum(lines[1:]) for lines in self._helper_lines.values())
        if repeated < _WORTH_SHARING or self._alone:
            return ()
        files = max(len(lines) for lines in self._helper_lines.values())
        said = f"{files} files get the same functions, {repeated:,} lines that one copy would save"
        return (f"{said}; the setting `helpers` keeps them in one module of your package",)

    def needs_helpers(self, path: str) -> bool:
        """Whether a file that changed imports what the module of helpers may have got in this run."""
        return path in self._fixed and self._fixed[path].needs_helpers

    @cached_property
    def _helper_module(self) -> HelperModule | None:
        if self._settings.helpers is None:
            return None
        from graphmend_codemod.rewriting.helper_module import HelperModule

        try:
            source = self._checker.source(self._settings.helpers)
            source.parse()
        except SourceError as error:
            where = f"{self._settings.helpers}:{error.line}" if error.line is not None else self._settings.helpers
            raise SourceError(f"was not changed: {where}, the module of helpers, {error}") from error
        return HelperModule(source, self._settings.root, grows=not self._alone)

    def _unless_forbidden(self, finding: Finding) -> Finding:
        only = self._settings.only_sites
        key = (finding.path, finding.code, finding.function, "" if only is None else self._statement(finding))
        if only is not None and key not in only and self._applies(finding):
            return _declined(finding, "did not break in the recorded run")
        for veto in self._vetoes:
            if finding.path == veto.path and veto.forbids(finding, self._statement(finding)):
                return _declined(finding, veto.reason)
        return finding

    def _statement(self, finding: Finding) -> str:
        try:
            source = self._checker.source(finding.path)
        except SourceError:
            return ""
        return first_line(source.text, finding.span.start_line)

    def _applies(self, finding: Finding) -> bool:
        return finding.is_applied(self._settings.unsafe_fixes, self._settings.opaque)

    def _pass(self, findings: Sequence[Finding], refused: dict[Finding, str]) -> bool:
        by_path: dict[str, list[Finding]] = {}
        for finding in findings:
            if self._applies(finding) and finding.path not in self._unproven:
                by_path.setdefault(finding.path, []).append(finding)
        changed = [self._edit(path, wanted, refused) for path, wanted in sorted(by_path.items())]
        return any(changed)

    def _edit(self, path: str, findings: list[Finding], refused: dict[Finding, str]) -> bool:
        from graphmend_codemod.rewriting import RewriteError, apply

        try:
            source = self._checker.source(path)
            module = self._helper_module
            applied = apply(source, [each.edit for each in findings if each.edit is not None], module)
            if applied.text == source.text:
                refused.update({findings[number]: reason for number, reason in applied.skipped})
                return False
            after = source.with_text(applied.text)
            if self._proof is not None:
                self._proof(source, after, applied.made)
            grown = module.with_helpers(applied.imported) if module is not None else None
        except RewriteError as error:
            return self._leave_alone(path, str(error))
        except SourceError as error:
            self.problems = (*self.problems, Problem(path, str(error), error.line))
            return False
        except Exception as error:  # said in full, with exit code 2; the other files get their fixes
            self.problems = (*self.problems, Problem.internal(path, error))
            return False
        fixed = self._fixed.setdefault(path, _Fixed(source))
        fixed.source = after
        fixed.applied += [findings[number] for number in applied.applied]
        self._checker.overlay(after)
        for helper in applied.repeated:
            self._helper_lines.setdefault(helper.name, []).append(helper.source.count("\n") + 1)
        fixed.needs_helpers = fixed.needs_helpers or bool(applied.imported)
        if module is not None and grown is not None and grown.source.text != module.source.text:
            self._fixed.setdefault(module.source.path, _Fixed(module.source)).source = grown.source
            self._checker.overlay(grown.source)
            self._helper_module = grown
        return True

    def _leave_alone(self, path: str, reason: str) -> bool:
        """Give a file its first text back for good; True if that changes it."""
        problem = Problem(path, f"is skipped because its fix cannot be verified: {reason}; please report it")
        self._unproven[path] = problem
        self.problems = (*self.problems, problem)
        fixed = self._fixed.pop(path, None)
        if fixed is not None:
            self._checker.overlay(fixed.before)
        return fixed is not None


def first_line(text: str, line: int) -> str:
    """One line of a text, counted from 1, without its indentation; empty where there is none."""
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _declined(finding: Finding, reason: str | None) -> Finding:
    return finding if reason is None else finding._replace(edit=None, declined=reason)
