"""The one-shot migration: fix rule by rule in a work tree of our own, measure, commit to a new branch.

The user's checkout, index, stash and HEAD are never touched. Until the branch is made, in one atomic step at the end,
nothing has happened: an error or an interruption leaves the repository as it was.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_codemod import __version__, measuring
from graphmend_codemod.interruption import interruptible, uninterrupted
from graphmend_codemod.measuring import Measure, MeasuringError, ModelResult
from graphmend_codemod.migrated import Migration, RuleCommit
from graphmend_codemod.reporting import commit_message
from graphmend_codemod.reporting import migration as views
from graphmend_codemod.repository.checkout import (
    Checkout,
    open_checkout,
    remarks,
    require_identity,
    resolve_commit,
)
from graphmend_codemod.repository.commits import Changes, create_branch, require_new_branch, write_commits
from graphmend_codemod.repository.git import RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import (
    Worktree,
    remove_stale_worktrees,
    temporary_folder,
    worktree,
)
from graphmend_codemod.rule_by_rule import Engine, Fixed, Step, fix_rule_by_rule
from graphmend_codemod.settings import Settings, SettingsError

Progress = Callable[[str], None]


class MigrationError(Exception):
    """Why nothing was migrated. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    `repository` is the repository's folder, or one inside it that the migration is limited to; `paths` are relative to
    it. `settings` gives the settings at a path of the work tree. `models` replace the configured ones. `branch` is
    named after the day, and `report` lies in the repository's git directory, when they are None.
    """

    repository: Path
    settings: Callable[[Path], Settings]
    base: str = "HEAD"
    branch: str | None = None
    paths: tuple[Path, ...] = ()
    models: tuple[str, ...] = ()
    measure: bool = True
    model_timeout: float | None = None
    report: Path | None = None
    dry_run: bool = False
    jobs: int = 1
    cache: bool = True


def migrate(
    request: Request,
    *,
    engine: Engine | None = None,
    measure: Measure | None = None,
    progress: Progress = lambda line: None,
) -> Migration:
    """Migrate a repository. Without `measure`, models are measured by the evaluation stage.

    Raises `MigrationError` when it cannot be done, `SettingsError` for settings that cannot be used, `Interrupted`
    on Ctrl-C, SIGTERM or SIGHUP. After any of them there is no branch and no work tree.
    """
    with without_git_environment(), interruptible() as interruption, _one_line_errors():

        def heedful(line: str) -> None:
            interruption.heed()
            progress(line)

        checkout = open_checkout(request.repository)
        base = resolve_commit(checkout, request.base)
        branch = request.branch or f"graphmend/{datetime.date.today().isoformat()}"
        report = _report_folder(request, checkout, branch)
        if not request.dry_run:
            require_new_branch(checkout, branch)
            require_identity(checkout)
        remove_stale_worktrees(checkout)
        noted = remarks(checkout, base)
        heedful(f"checking out {base}")
        with temporary_folder() as folder, worktree(checkout, base, folder) as tree:
            run = _Run(request, checkout, tree, folder, heedful)
            fixed = run.fix(engine or Engine())
            models = run.measure(fixed, measure)
            if tree.submodules:
                noted = (*noted, f"submodules are not migrated: {', '.join(tree.submodules)}")
            outcome = Migration(
                repository=checkout.name,
                top=checkout.top,
                base=base,
                branch=branch,
                commits=tuple(_commit(step) for step in fixed.steps),
                remaining=fixed.remaining,
                problems=fixed.problems,
                files=fixed.files,
                models=models,
                remarks=noted,
                unsafe_fixes=run.settings.unsafe_fixes,
                dry_run=request.dry_run,
                report=report,
            )
            heedful("committing")
            return _write(outcome, checkout, tree, fixed.steps)


class _Run:
    """One migration in its work tree."""

    def __init__(self, request: Request, checkout: Checkout, tree: Worktree, folder: Path, progress: Progress) -> None:
        self._request = request
        self._checkout = checkout
        self._tree = tree
        self._folder = folder
        self._progress = progress
        self._start = tree.root / checkout.inside
        self.settings = self._settings()
        self._models = request.models or self.settings.models if request.measure else ()

    def fix(self, engine: Engine) -> Fixed:
        """Fix the work tree."""
        if self._models:
            # Before minutes of work, not after.
            self._require_models()
        paths = self._paths() or (self._start,)
        request = self._request
        return fix_rule_by_rule(
            self._tree, paths, self.settings, engine, jobs=request.jobs, cache=request.cache, progress=self._progress
        )

    def measure(self, fixed: Fixed, measure: Measure | None) -> tuple[ModelResult, ...]:
        """Measure the models at the base and in the work tree."""
        if not self._models:
            return ()
        with contextlib.ExitStack() as stack:
            head = self.settings.root
            base = head
            if fixed.steps:
                folder = self._folder / "base"
                folder.mkdir()
                original = stack.enter_context(worktree(self._checkout, self._tree.commit, folder))
                base = original.root / head.relative_to(self._tree.root)
            return (measure or measuring.measure)(
                base,
                head,
                self._models,
                folder=self._folder / "measured",
                timeout=self._request.model_timeout,
                progress=self._progress,
            )

    def _settings(self) -> Settings:
        if not self._start.is_dir():
            raise MigrationError(f"{self._checkout.inside} does not exist at {self._tree.commit}; name another folder")
        try:
            settings = self._request.settings(self._start)
        except SettingsError as error:
            # People know their own checkout, not our copy of it.
            shown = "" if self._checkout.top is None else f"{self._checkout.top}{os.sep}"
            raise SettingsError(str(error).replace(f"{self._tree.root}{os.sep}", shown)) from error
        if not settings.root.is_relative_to(self._tree.root):
            # From a file above the temporary folder: it has nothing to do with this repository.
            return replace(settings, root=self._tree.root)
        return settings

    def _paths(self) -> tuple[Path, ...]:
        named = Path(os.path.abspath(self._request.repository)).resolve()
        top = named if self._checkout.top is None else self._checkout.top
        found = []
        for path in self._request.paths:
            absolute = Path(os.path.normpath(named / path))
            if not absolute.is_relative_to(top):
                absolute = absolute.resolve()
            if not absolute.is_relative_to(top):
                raise MigrationError(f"{path}: is outside the repository {top}")
            mirrored = self._tree.root / absolute.relative_to(top)
            if not mirrored.exists():
                raise MigrationError(f"{path}: does not exist at {self._tree.commit}; commit it, or leave it out")
            found.append(mirrored)
        return tuple(found)

    def _require_models(self) -> None:
        for model in self._models:
            module, _, factory = model.partition(":")
            if not all(part.isidentifier() for name in (module, factory) for part in name.split(".")):
                raise MigrationError(f"model {model!r}: must look like package.module:factory")
        measuring.require_evaluation()


def _commit(step: Step) -> RuleCommit:
    subject = commit_message.subject(step.rule, step.applied, step.files)
    return RuleCommit(step.rule, subject, None, step.applied, tuple(step.files))


def _write(outcome: Migration, checkout: Checkout, tree: Worktree, steps: Sequence[Step]) -> Migration:
    """Write commits, branch and report."""
    if steps and not outcome.dry_run:
        series = [
            Changes(
                commit_message.message(step.rule, step.applied, step.files, outcome.models, __version__), step.files
            )
            for step in steps
        ]
        written = write_commits(tree, series)
        commits = tuple(replace(commit, oid=oid) for commit, oid in zip(outcome.commits, written, strict=True))
        outcome = replace(outcome, commits=commits)
    with uninterrupted():
        if outcome.commits and not outcome.dry_run:
            create_branch(checkout, outcome.branch, str(outcome.commits[-1].oid))
        if outcome.report is not None:
            _write_report(outcome, outcome.report)
    return outcome


def _report_folder(request: Request, checkout: Checkout, branch: str) -> Path | None:
    """Where the report goes; a dry run writes one only if it is asked for. Raises when it could not be written."""
    if request.report is None:
        return None if request.dry_run else checkout.common / "graphmend" / f"report-{branch.replace('/', '-')}"
    folder = Path(os.path.abspath(request.report))
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise MigrationError(f"{request.report}: no report can be written there; choose another folder with --report")
    return folder


def _write_report(outcome: Migration, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(views.markdown(outcome, folder), encoding="utf-8", errors="backslashreplace")
        (folder / "report.json").write_text(views.as_json(outcome), encoding="utf-8")
    except OSError as error:
        made = f"branch {outcome.branch} was made, but " if outcome.commits and not outcome.dry_run else ""
        raise MigrationError(
            f"{made}the report cannot be written to {folder}: {error.strerror}; choose another folder with --report"
        ) from error


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (RepositoryError, MeasuringError) as error:
        raise MigrationError(str(error)) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise MigrationError(f"{where}{error.strerror or error}; nothing was changed") from error
