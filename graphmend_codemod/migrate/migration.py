"""The one-shot migration: fix rule by rule in a temporary work tree, measure, commit to a new branch.

The user's checkout, index, stash and HEAD are never touched. Until the branch is made, in one atomic step at the end,
nothing has happened: an error or an interruption leaves the repository as it was.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphmend_codemod import __version__
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.interruption import interruptible, uninterrupted
from graphmend_codemod.core.report_folder import report_folder
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.evaluation import port
from graphmend_codemod.evaluation.model_modules import missing_module
from graphmend_codemod.evaluation.port import Measure, Measured, MeasuringError, Wanted
from graphmend_codemod.migrate import commit_message
from graphmend_codemod.migrate import report as views
from graphmend_codemod.migrate.outcome import Migration, RuleCommit, TakenBack
from graphmend_codemod.migrate.per_rule import Engine, Fixed, Step, fix_rule_by_rule
from graphmend_codemod.migrate.proving import Proving
from graphmend_codemod.migrate.recorded_rounds import Told
from graphmend_codemod.migrate.revert import TakingBack, taken_key
from graphmend_codemod.migrate.shared_helpers import with_helpers
from graphmend_codemod.migrate.shared_session import reading_once
from graphmend_codemod.migrate.traced import with_trace
from graphmend_codemod.repository.checkout import Checkout, open_checkout, remarks, require_identity, resolve_commit
from graphmend_codemod.repository.commits import Changes, create_branch, require_new_branch, write_commits
from graphmend_codemod.repository.git import RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import (
    Worktree,
    is_source,
    remove_stale_worktrees,
    temporary_folder,
    worktree,
)

Progress = Callable[[str], None]


class MigrationError(Exception):
    """Why nothing was migrated. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class MigrationOptions:
    """What a user asks for.

    `repository` is the repository's folder, or one inside it that the migration is limited to; `paths` are relative to
    it. `settings` gives the settings at a path of the work tree. `wanted` says which models to evaluate; those it names
    replace the configured ones. With `evaluate` None, models are evaluated where torch is installed, or if some were
    asked for. `keep` leaves fixes that do not earn their place, `keep_slower` those that make a timed model slower.
    `record` is how often models that still break may be recorded and fixed once more.
    `branch` is named after the day, and `report` lies in the repository's git directory, when they are None.
    """

    repository: Path
    settings: Callable[[Path], Settings]
    base: str = "HEAD"
    branch: str | None = None
    paths: tuple[Path, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
    evaluate: bool | None = None
    keep: bool = False
    keep_slower: bool = False
    report: Path | None = None
    dry_run: bool = False
    jobs: int = 1
    cache: bool = True
    record: int = 0


def migrate(
    options: MigrationOptions,
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

        checkout = open_checkout(options.repository)
        base = resolve_commit(checkout, options.base)
        branch = _new_branch(options, checkout)
        report = _report_folder(options, checkout, branch)
        remove_stale_worktrees(checkout)
        noted = remarks(checkout, base)
        heedful(f"checking out {base}")
        with temporary_folder() as folder, worktree(checkout, base, folder, only=_only(options, checkout)) as tree:
            run = _Run(options, checkout, tree, folder, heedful)
            fixed = run.fix(engine or reading_once())
            fixed, measured, told = run.prove(fixed, branch, measure or port.measure)
            fixed = replace(fixed, steps=with_helpers(tree, run.settings, fixed.steps))
            outcome = Migration(
                repository=checkout.name,
                top=checkout.top,
                base=base,
                branch=branch,
                commits=tuple(map(_commit, fixed.steps)),
                remaining=fixed.remaining,
                problems=fixed.problems,
                files=fixed.files,
                measured=measured,
                taken_back=run.taken_back(fixed),
                remarks=(*noted, *run.remarks, *measured.remarks),
                unsafe_fixes=run.settings.unsafe_fixes,
                dry_run=options.dry_run,
                report=report,
                rounds=told.rounds,
                left_breaks=told.left,
            )
            heedful("committing")
            return _write(outcome, checkout, tree, fixed.steps)


def _new_branch(options: MigrationOptions, checkout: Checkout) -> str:
    """The name of the branch. Raises RepositoryError where there is such a branch, or nobody to commit as."""
    branch = options.branch or default_branch()
    if not options.dry_run:
        require_new_branch(checkout, branch)
        require_identity(checkout)
    return branch


def _only(options: MigrationOptions, checkout: Checkout) -> Callable[[str], bool]:
    """Sources, and the files that are named: large ones stay where they are, unless models are to be run."""
    named = frozenset(_named(options, checkout))
    return lambda path: is_source(path) or path in named


def default_branch() -> str:
    """What the branch is called when nobody named it."""
    return f"graphmend/{datetime.date.today().isoformat()}"


class _Run:
    """One migration in its work tree."""

    def __init__(
        self, options: MigrationOptions, checkout: Checkout, tree: Worktree, folder: Path, progress: Progress
    ) -> None:
        self._options = options
        self._checkout = checkout
        self._tree = tree
        self._folder = folder
        self._progress = progress
        self._start = tree.root / checkout.inside
        self.settings, traced = with_trace(self._settings(), tree, options.jobs, options.cache)
        left_alone = f"submodules are not migrated: {', '.join(tree.submodules)}"
        self.remarks = (*((left_alone,) if tree.submodules else ()), *traced)
        self._wanted = self._models()
        self._taking_back: TakingBack | None = None

    def taken_back(self, fixed: Fixed) -> tuple[TakenBack, ...]:
        """Fixes that the evaluation sent back, in order of path and line, but for those that a recorded run brought
        back in another form."""
        there = {taken_key(finding) for step in fixed.steps for finding in step.applied}
        taken = {} if self._taking_back is None else self._taking_back.taken
        gone = (each for key, each in taken.items() if key not in there)
        return tuple(sorted(gone, key=lambda each: (each.finding.path, each.finding.span)))

    def fix(self, engine: Engine) -> Fixed:
        """Fix the work tree."""
        if self._wanted.anything:
            self._require_evaluation()  # before minutes of work, not after
        if self._wanted.anything:
            self._tree = self._tree.complete()
        paths = self._paths() or (self._start,)
        options = self._options
        self._taking_back = TakingBack(self._tree, self.settings, engine, options.jobs, options.cache, self._progress)
        return fix_rule_by_rule(
            self._tree, paths, self.settings, engine, jobs=options.jobs, cache=options.cache, progress=self._progress
        )

    def _require_evaluation(self) -> None:
        options = self._options
        if port.can_evaluate() or options.evaluate or options.record or options.wanted.anything:
            port.require_evaluation(self._wanted)
            self._require_models()
            return
        self._wanted = Wanted()
        self.remarks += ("models of the settings are not evaluated: torch is not installed beside graphmend",)

    def _require_models(self) -> None:
        for model in self._wanted.named:
            missing = missing_module(model, self._tree.entries, self._checkout.top, str(self._tree.commit))
            if missing is not None:
                raise MigrationError(missing)

    def prove(self, fixed: Fixed, branch: str, measure: Measure) -> tuple[Fixed, Measured, Told]:
        """Evaluate the models before and after, and take back the fixes that do not earn their place."""
        if self._taking_back is None:
            return fixed, Measured(), Told()
        proving = Proving(
            self._checkout,
            self._tree,
            self._folder,
            self.settings,
            self._wanted,
            self._taking_back,
            self._paths() or (self._start,),
            self._options.keep,
            self._progress,
        )
        return proving.prove(fixed, branch, measure)

    def _models(self) -> Wanted:
        """What to evaluate: nothing if told so, or if nobody asked for more than what the settings name."""
        options = self._options
        wanted = options.wanted
        if options.evaluate is False:
            if options.record:
                raise MigrationError("--record runs the models, and --no-evaluate forbids that; leave one of them out")
            return Wanted()
        keep = options.keep or options.keep_slower
        wanted = replace(wanted, revert_slower=wanted.speed and not keep, rounds=options.record)
        if not wanted.named:
            wanted = replace(wanted, named=self.settings.models, configured=True)
        for model in wanted.named:
            module, _, factory = model.partition(":")
            known = model.startswith(port.MODEL_SCHEMES)
            if not known and not all(part.isidentifier() for name in (module, factory) for part in name.split(".")):
                raise MigrationError(f"model {model!r}: must look like package.module:factory")
        if options.record and not wanted.anything:
            raise MigrationError(
                "--record has no model to run; name one with --model MODULE:FACTORY, in `models` of [tool.graphmend], "
                "or with --from-tests"
            )
        return wanted

    def _settings(self) -> Settings:
        if not self._is_folder(self._start):
            raise MigrationError(f"{self._checkout.inside} does not exist at {self._tree.commit}; name another folder")
        try:
            settings = self._options.settings(self._start)
        except SettingsError as error:
            # People know their own checkout, not our copy of it.
            shown = "" if self._checkout.top is None else f"{self._checkout.top}{os.sep}"
            raise SettingsError(str(error).replace(f"{self._tree.root}{os.sep}", shown)) from error
        if not settings.root.is_relative_to(self._tree.root):
            # From a file above the temporary folder: it has nothing to do with this repository.
            return settings._replace(root=self._tree.root)
        return settings

    def _paths(self) -> tuple[Path, ...]:
        found = []
        for asked, path in zip(self._options.paths, _named(self._options, self._checkout), strict=True):
            mirrored = self._tree.root / path
            if not self._is_folder(mirrored) and not mirrored.exists():
                raise MigrationError(f"{asked}: does not exist at {self._tree.commit}; commit it, or omit it")
            found.append(mirrored)
        return tuple(found)

    def _is_folder(self, mirrored: Path) -> bool:
        """Whether there is such a folder, which is then there although nothing in it may have been checked out."""
        inside = mirrored.relative_to(self._tree.root).as_posix()
        if not mirrored.exists() and self._tree.has_folder("" if inside == "." else inside):
            mirrored.mkdir(parents=True)
        return mirrored.is_dir()


def _named(options: MigrationOptions, checkout: Checkout) -> Iterator[str]:
    """The paths that are asked for, from the top of the repository."""
    named = Path(os.path.abspath(options.repository)).resolve()
    top = named if checkout.top is None else checkout.top
    for path in options.paths:
        absolute = Path(os.path.normpath(named / path))
        if not absolute.is_relative_to(top):
            absolute = absolute.resolve()
        if not absolute.is_relative_to(top):
            raise MigrationError(f"{path}: is outside the repository {top}")
        yield absolute.relative_to(top).as_posix()


def _commit(step: Step) -> RuleCommit:
    subject = commit_message.subject(step.rule, step.applied, step.files, step.round)
    return RuleCommit(step.rule, subject, None, step.applied, tuple(step.files), step.round)


def _write(outcome: Migration, checkout: Checkout, tree: Worktree, steps: Sequence[Step]) -> Migration:
    """Write commits, branch and report."""
    if steps and not outcome.dry_run:
        series = [
            Changes(commit_message.message(commit, outcome, __version__), step.files)
            for commit, step in zip(outcome.commits, steps, strict=True)
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


def _report_folder(options: MigrationOptions, checkout: Checkout, branch: str) -> Path | None:
    """Where the report goes; a dry run writes one only if it is asked for. Raises when it could not be written."""
    if options.report is None:
        return None if options.dry_run else report_folder(checkout.common, f"report-{branch.replace('/', '-')}")
    folder = Path(os.path.abspath(options.report))
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise MigrationError(f"{options.report}: cannot write the report there; choose another folder with --report")
    return folder


def _write_report(outcome: Migration, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(views.markdown(outcome, folder), encoding="utf-8", errors="backslashreplace")
        (folder / "report.json").write_text(views.as_json(outcome), encoding="utf-8")
        if outcome.measured.evaluation is not None:
            from graphmend_evaluation.reporting import write_reports

            write_reports(outcome.measured.evaluation, folder / "evaluation")
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
