"""Load a branch created by an earlier `graphmend migrate`, together with its report."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_codemod.core.findings import Finding, Problem, Safety, Span
from graphmend_codemod.core.report_folder import report_folder
from graphmend_codemod.evaluation.port import Measured, MeasuredVersion, ModelResult
from graphmend_codemod.migrate import report_rounds
from graphmend_codemod.migrate.migration import MigrationError
from graphmend_codemod.migrate.outcome import Migration, RuleCommit, TakenBack
from graphmend_codemod.migrate.report import SCHEMA_VERSION
from graphmend_codemod.repository.checkout import Checkout, Commit
from graphmend_codemod.repository.git import Git, GitFailed, without_git_environment
from graphmend_codemod.rules.framework.registry import all_rules

if TYPE_CHECKING:
    from graphmend_evaluation.evaluation import Evaluation


@dataclass(frozen=True)
class Earlier:
    """What was migrated, and the repository that holds the branch."""

    git: Git
    made: Migration


def earlier_migration(checkout: Checkout, branch: str, report: Path | None = None) -> Earlier:
    """The migration that made `branch`; `report` is the folder that it wrote its report to, if not the usual one.

    Raises `MigrationError` when there is no such branch or report, or the branch has been changed since.
    """
    git = checkout.git
    try:
        with without_git_environment():
            tip = git.text("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    except GitFailed as error:
        raise MigrationError(f"{checkout.name} has no branch {branch}; make it with `graphmend migrate`") from error
    folder = report or report_folder(checkout.common, f"report-{branch.replace('/', '-')}")
    made = _read(folder, branch, checkout)
    if not made.commits or made.commits[-1].oid != tip:
        raise MigrationError(f"branch {branch} has changed since `graphmend migrate`; push it yourself, or omit --from")
    return Earlier(git, made)


def _read(folder: Path, branch: str, checkout: Checkout) -> Migration:
    file = folder / "report.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA_VERSION or document["branch"] != branch:
            raise ValueError(f"it is about {document['branch']}")
        return _migration(document, folder, checkout)
    except FileNotFoundError as error:
        raise MigrationError(
            f"{file}: does not exist; say with --report where `graphmend migrate` wrote its report"
        ) from error
    except OSError as error:
        raise MigrationError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise MigrationError(
            f"{file}: is not a report of this version for branch {branch} ({error}); migrate again"
        ) from error


def _migration(document: dict[str, Any], folder: Path, checkout: Checkout) -> Migration:
    rules = {rule.code: rule for rule in all_rules()}
    evaluation = _evaluation(folder / "evaluation" / "report.json")
    rounds, left = report_rounds.from_values(document)
    models = tuple(
        ModelResult(
            one["model"],
            _arm(one["before"]),
            _arm(one["after"]),
            tuple(one["problems"]),
            tuple((str(name), str(version)) for name, version in one["versions"].items()),
            one["cold_start"] or "",
            one["steady_state"] or "",
        )
        for one in document["models"]
    )
    return Migration(
        repository=document["repository"],
        top=checkout.top,
        base=Commit(document["base"]["commit"], document["base"]["name"]),
        branch=document["branch"],
        commits=tuple(
            RuleCommit(
                rules[one["rule"]],
                one["subject"],
                one["commit"],
                tuple(_finding(site) for site in one["sites"]),
                tuple(one["files"]),
                one.get("recorded_run") or 0,
            )
            for one in document["commits"]
        ),
        remaining=tuple(_finding(one) for one in document["left"]),
        problems=tuple(Problem(one["path"], one["message"], one["line"]) for one in document["problems"]),
        files=document["files"],
        measured=Measured(models, evaluation=evaluation),
        taken_back=tuple(TakenBack(_finding(one), one["reason"]) for one in document["taken_back"]),
        remarks=tuple(document["remarks"]),
        unsafe_fixes=any(site["safety"] == Safety.UNSAFE.value for one in document["commits"] for site in one["sites"]),
        dry_run=False,
        report=folder,
        rounds=rounds,
        left_breaks=left,
    )


def _finding(data: dict[str, Any]) -> Finding:
    line = int(data["line"])
    return Finding(
        code=data["rule"],
        slug=data["slug"],
        path=data["path"],
        span=Span(line, 0, line, 0),
        message=data["message"],
        safety=Safety(data["safety"]),
        function=data["function"],
        declined=data.get("reason"),
    )


def _arm(data: dict[str, Any]) -> MeasuredVersion:
    sites, opaque = tuple(data["sites"]), data.get("opaque_operators", 0)
    return MeasuredVersion(data["graph_breaks"], data["graphs"], data["one_graph"], sites, data["error"] or "", opaque)


def _evaluation(file: Path) -> Evaluation | None:
    """All that was measured, where it was and can be shown."""
    if not file.is_file() or importlib.util.find_spec("jinja2") is None:
        return None
    from graphmend_evaluation.evaluation import Evaluation
    from graphmend_evaluation.results import from_json

    return from_json(Evaluation, json.loads(file.read_text(encoding="utf-8")))
