"""`graphmend evaluate`: the models of a repository at two commits, each in a work tree of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.core.findings import why_left
from graphmend_codemod.core.interruption import interruptible
from graphmend_codemod.core.report_folder import report_folder
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.evaluation import port
from graphmend_codemod.evaluation.model_modules import missing_module
from graphmend_codemod.evaluation.port import Measured, MeasuringError, Sites, Trees, Wanted
from graphmend_codemod.repository.checkout import Checkout, Commit, open_checkout, resolve_commit
from graphmend_codemod.repository.checkout_state import changed_meanwhile, checkout_state
from graphmend_codemod.repository.git import GitFailed, RepositoryError, without_git_environment
from graphmend_codemod.repository.worktree import remove_stale_worktrees, temporary_folder, worktree

if TYPE_CHECKING:
    from graphmend_evaluation.evaluation import Evaluation

_DEFAULT_BRANCHES = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master")
_OWN_SUBJECT = "graphmend: "


class EvaluationError(Exception):
    """Why nothing was evaluated. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class CompareOptions:
    """What a user asks for; `base` None means where the branch of `head` began.

    `repository` is the repository's folder, or that of a project in it. `settings` gives the settings at a path of the
    work tree. The report lies in the repository's git directory when `report` is None.
    """

    repository: Path
    settings: Callable[[Path], Settings]
    base: str | None = None
    head: str = "HEAD"
    wanted: Wanted = field(default_factory=Wanted)
    report: Path | None = None
    jobs: int = 1
    cache: bool = True


@dataclass(frozen=True)
class Evaluated:
    """The outcome, and the folder of its report."""

    evaluation: Evaluation
    report: Path

    @property
    def exit_code(self) -> int:
        """0 when every model does as before or better, 1 when a reviewer must look, 2 when none could be measured."""
        measured = [each for each in self.evaluation.models if each.row.before.ok or each.row.after.ok]
        if not measured:
            return 2
        return 1 if self.evaluation.problems or self.evaluation.reverted else 0


def evaluate(options: CompareOptions, progress: Callable[[str], None] = lambda line: None) -> Evaluated:
    """Evaluate. Raises `EvaluationError` when it cannot be done, `SettingsError` for settings that cannot be used."""
    with without_git_environment(), interruptible() as interruption:

        def heedful(line: str) -> None:
            interruption.heed()
            progress(line)

        try:
            return _evaluate(options, heedful)
        except (RepositoryError, MeasuringError) as error:
            raise EvaluationError(str(error)) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise EvaluationError(f"{where}{error.strerror or error}") from error


def _evaluate(options: CompareOptions, progress: Callable[[str], None]) -> Evaluated:
    port.require_evaluation(options.wanted)
    checkout = open_checkout(options.repository)
    head = resolve_commit(checkout, options.head)
    base = _base(checkout, head) if options.base is None else resolve_commit(checkout, options.base)
    remove_stale_worktrees(checkout)
    progress(f"checking out {base} and {head}")
    with temporary_folder() as folder:
        for name in ("base", "head", "trial"):
            (folder / name).mkdir()
        with (
            worktree(checkout, base, folder / "base") as before,
            worktree(checkout, head, folder / "head") as after,
            worktree(checkout, base, folder / "trial") as trial,
        ):
            settings = options.settings(before.root / checkout.inside)
            if not settings.root.is_relative_to(before.root):
                settings = settings._replace(root=before.root)
            inside = settings.root.relative_to(before.root)
            trees = Trees(
                base=settings.root,
                head=after.root / inside,
                trial=trial.root / inside,
                folder=folder / "measured",
                memory=checkout.common / "graphmend" / "rows",
                repository=checkout.name,
                base_name=base.name,
                base_oid=base.oid,
                head_name=head.name,
                head_oid=head.oid,
                helpers=settings.helpers or "",
            )
            for model in options.wanted.named or settings.models:
                for tree in (before, after):
                    missing = missing_module(model, tree.entries, checkout.top, str(tree.commit))
                    if missing is not None:
                        raise EvaluationError(missing)
            state = checkout_state(checkout)
            measured = _measured(options, settings, trees, _changed(checkout, base, head, inside), progress)
            measured = measured.noting(changed_meanwhile(state, checkout_state(checkout)))
    if measured.evaluation is None or not measured.evaluation.models:
        raise EvaluationError("there is no model to evaluate" + "".join(f"; {each}" for each in measured.remarks))
    report = options.report or report_folder(checkout.common, f"evaluation-{head.oid[:12]}")
    return Evaluated(measured.evaluation, _write_report(measured.evaluation, report))


def _measured(
    options: CompareOptions, settings: Settings, trees: Trees, changed: Sequence[str], progress: Callable[[str], None]
) -> Measured:
    wanted = options.wanted
    if not wanted.named:
        wanted = replace(wanted, named=settings.models, configured=True)
    if not wanted.anything:
        raise EvaluationError(
            "there is no model to evaluate: name one with --model package.module:factory or in the settings, "
            "or use --from-tests or --huggingface"
        )
    progress("looking for break sites")
    checked = api.check((), settings, jobs=options.jobs, cache=options.cache)
    asked = settings.unsafe_fixes, settings.opaque
    fixed = tuple(finding for finding in checked.findings if finding.is_applied(*asked))
    left = tuple((finding, why_left(finding)) for finding in checked.findings if not finding.is_applied(*asked))
    judge = port.measure(trees, wanted, progress)
    return judge.finish(judge.verdict(Sites(fixed, left), changed))


def _changed(checkout: Checkout, base: Commit, head: Commit, inside: Path) -> list[str]:
    """Python files of the project in which the commits differ, relative to the project's root."""
    prefix = "" if inside == Path() else f"{inside.as_posix()}/"
    listed = checkout.git.output("diff", "--name-only", "--no-renames", "-z", base.oid, head.oid, "--", "*.py")
    paths = [os.fsdecode(path) for path in listed.split(b"\0") if path]
    return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]


def _base(checkout: Checkout, head: Commit) -> Commit:
    """Where the branch of `head` began: before our own commits, or where it left the default branch."""
    git = checkout.git
    oid = head.oid
    while git.text("log", "-1", "--format=%s", oid).startswith(_OWN_SUBJECT):
        oid = git.text("rev-parse", f"{oid}^")
    if oid != head.oid:
        return Commit(oid, oid[:12])
    for name in _DEFAULT_BRANCHES:
        if not git.succeeds("rev-parse", "--verify", "--quiet", name):
            continue
        try:
            common = git.text("merge-base", name, head.oid)
        except GitFailed:  # two histories without a common commit
            continue
        if common != head.oid:
            return Commit(common, common[:12])
    raise EvaluationError(f"{head} is not on a separate branch; pass the commit to compare with as --base")


def _write_report(evaluation: Evaluation, folder: Path) -> Path:
    from graphmend_evaluation.reporting import write_reports

    folder = Path(os.path.abspath(folder))
    try:
        write_reports(evaluation, folder)
    except OSError as error:
        raise EvaluationError(
            f"the report cannot be written to {folder}: {error.strerror}; choose another folder with --report"
        ) from error
    return folder
