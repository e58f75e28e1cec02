"""A migration as lines for the terminal, as Markdown and as JSON. Each begins with the answer."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from graphmend_codemod import __version__
from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.findings import Finding, Safety, why_left
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.evaluation.port import MeasuredVersion, ModelResult
from graphmend_codemod.migrate import report_rounds
from graphmend_codemod.migrate.commit_message import before_and_after, breaks, measured_with
from graphmend_codemod.migrate.helping import what_would_help
from graphmend_codemod.migrate.outcome import Migration, RuleCommit
from graphmend_codemod.reporting.markdown import code, escaped
from graphmend_codemod.reporting.report import plural
from graphmend_codemod.reporting.rules import cost

SCHEMA_VERSION = 1

_REASONS_SHOWN = 3


def headline(outcome: Migration) -> str:
    """The answer in one line."""
    if not outcome.commits:
        if outcome.taken_back:
            taken = plural(len(outcome.taken_back), "fix") if len(outcome.taken_back) == 1 else "all fixes"
            return f"Nothing kept in {plural(outcome.files, 'file')}, {taken} reverted{_break_totals(outcome)}"
        return f"Nothing to fix in {plural(outcome.files, 'file')}{_break_totals(outcome)}"
    would = "would be " if outcome.dry_run else ""
    return (
        f"{plural(outcome.sites, 'break site')} {would}fixed in {plural(outcome.changed_files, 'file')}"
        f"{_break_totals(outcome)}"
    )


def lines(outcome: Migration, paint: Paint) -> Iterator[str]:
    """The summary for a terminal. Problems and remarks are not part of it: they go to standard error."""
    if outcome.commits:
        verb = "would get" if outcome.dry_run else "has"
        count = plural(len(outcome.commits), "commit")
        yield f"Branch {paint.bold(printable(outcome.branch))} {verb} {count} from {outcome.base}:"
        yield ""
        for commit in outcome.commits:
            yield f"  {commit.subject}"
        yield ""
    yield paint.bold(f"{headline(outcome)}.")
    for result in outcome.models:
        yield from _model_lines(result, bool(outcome.commits), paint)
    for line in outcome.measured.times:
        yield f"  {line}"
    yield from report_rounds.terminal_lines(outcome, paint)
    if outcome.taken_back:
        yield ""
        yield f"Reverted after evaluation: {plural(len(outcome.taken_back), 'site')}"
        for each in outcome.taken_back:
            where = f"{each.finding.path}:{each.finding.span.start_line}"
            yield f"  {paint.red(each.finding.code)} {printable(where)}: {printable(each.reason)}"
    yield from _left_lines(outcome, paint)
    if help_lines := [*what_would_help(outcome)]:
        yield ""
        yield "What would help:"
        yield from (f"  - {line}" for line in help_lines)
    yield ""
    if outcome.report is not None:
        yield f"Report: {printable(str(outcome.report / 'report.md'))}"
        if outcome.measured.evaluation is not None:
            yield f"Models: {printable(str(outcome.report / 'evaluation' / 'report.html'))}"
    if outcome.commits and not outcome.dry_run:
        git = _git_from_here(outcome)
        yield f"Review: {git} {_review(outcome)}"
        yield f"Undo:   {git} {_undo(outcome)}"


def markdown(outcome: Migration, folder: Path) -> str:
    """The report as Markdown; links lead from `folder` to the files of the checkout."""
    parts = [f"# graphmend: {headline(outcome)}", _origin(outcome)]
    if outcome.remarks:
        parts.append("\n".join(f"- {escaped(remark)}" for remark in outcome.remarks))
    if outcome.models:
        parts += ["## Models", "\n".join(_model_table(outcome)), *_model_details(outcome)]
        if outcome.measured.times:
            parts.append("\n".join(f"- {escaped(line)}" for line in outcome.measured.times))
        if measured_with(outcome.models):
            parts.append(f"Measured{measured_with(outcome.models)}.")
    parts += report_rounds.markdown(outcome)
    if outcome.commits:
        parts.append("## Fixed")
        parts.append("Line numbers refer to the base commit.")
    for commit in outcome.commits:
        rows = "\n".join(f"- {_place(finding, outcome, folder)}" for finding in commit.applied)
        heading = f"### {escaped(commit.subject.removeprefix('graphmend: '))}"
        parts += [heading, *_commit_note(commit), f"Cost when compiled: {escaped(cost(commit.rule))}.", rows]
    if outcome.taken_back:
        rows = "\n".join(
            f"- {each.finding.code} {_place(each.finding, outcome, folder)}. {escaped(each.reason)}"
            for each in outcome.taken_back
        )
        parts += ["## Reverted after evaluation", rows]
    if outcome.measured.evaluation is not None:
        parts.append("All measurements: [evaluation/report.md](evaluation/report.md) (also as report.html).")
    if outcome.remaining:
        parts += ["## Not fixed", *_left_sections(outcome, folder)]
    if help_lines := [*what_would_help(outcome)]:
        parts += ["## What would help", "\n".join(f"- {line}." for line in help_lines)]
    if outcome.problems:
        listed = "\n".join(f"- {code(problem.path)}: {escaped(problem.message)}" for problem in outcome.problems)
        parts += ["## Not checked", listed]
    if outcome.commits and not outcome.dry_run:
        parts += ["## What next", f"Review:\n\n    git {_review(outcome)}", f"Undo:\n\n    git {_undo(outcome)}"]
    return "\n\n".join(parts) + "\n"


def as_json(outcome: Migration) -> str:
    """The report as a JSON object, for programs."""
    document = {
        "schema": SCHEMA_VERSION,
        "graphmend": __version__,
        "repository": outcome.repository,
        "base": {"commit": outcome.base.oid, "name": outcome.base.name},
        "branch": outcome.branch if outcome.commits else None,
        "dry_run": outcome.dry_run,
        "files": outcome.files,
        "changed_files": outcome.changed_files,
        "sites_fixed": outcome.sites,
        "commits": [_commit_dict(commit) for commit in outcome.commits],
        "models": [
            {
                "model": result.model,
                "before": _arm_dict(result.before),
                "after": _arm_dict(result.after),
                "problems": list(result.problems),
                "versions": dict(result.versions),
                "cold_start": result.cold or None,
                "steady_state": result.steady or None,
            }
            for result in outcome.models
        ],
        "taken_back": [{**_finding_dict(each.finding), "reason": each.reason} for each in outcome.taken_back],
        "left": [{**_finding_dict(finding), "reason": why_left(finding)} for finding in outcome.remaining],
        "problems": [
            {"path": problem.path, "line": problem.line, "message": problem.message} for problem in outcome.problems
        ],
        "remarks": list(outcome.remarks),
        **report_rounds.as_values(outcome),
    }
    return json.dumps(document, indent=2) + "\n"


def _break_totals(outcome: Migration) -> str:
    """Totals over the models that were measured on both sides; the others are named in their own rows."""
    measured = [
        (result.before.breaks, result.after.breaks)
        for result in outcome.models
        if result.before.breaks is not None and result.after.breaks is not None
    ]
    if not measured:
        return ""
    before, after = (sum(counts) for counts in zip(*measured, strict=True))
    counted = f"{before} -> {after}" if outcome.commits else str(before)
    return f", graph breaks {counted} in {plural(len(measured), 'model')}"


def _model_lines(result: ModelResult, changed: bool, paint: Paint) -> Iterator[str]:
    counted = before_and_after(result) if changed else breaks(result.before)
    yield f"  {printable(result.model)}: {'' if counted == 'not measured' else 'graph breaks '}{counted}"
    if result.cold or result.steady:
        yield f"    cold start {result.cold or 'not measured'}; steady state {result.steady or 'not measured'}"
    for problem in result.problems:
        yield f"    {paint.yellow(printable(problem))}"


def _left_lines(outcome: Migration, paint: Paint) -> Iterator[str]:
    if not outcome.remaining:
        return
    yield ""
    yield f"Not fixed: {plural(len(outcome.remaining), 'site')}"
    for (rule, slug), reasons in outcome.left_by_rule.items():
        yield f"  {paint.red(rule)} {slug}: {reasons.total()}"
        shown = reasons.most_common(len(reasons) if len(reasons) <= _REASONS_SHOWN + 1 else _REASONS_SHOWN)
        for reason, count in shown:
            yield f"    {count} x {printable(reason)}"
        if len(reasons) > len(shown):
            yield f"    {reasons.total() - sum(count for _, count in shown)} x other reasons"


def _origin(outcome: Migration) -> str:
    if outcome.dry_run:
        return f"A dry run from {code(str(outcome.base))}: no branch was made."
    if not outcome.commits:
        return f"Looked at {code(str(outcome.base))}; no branch was made."
    each = "one per rule and recorded run" if outcome.rounds else "one per rule"
    return (
        f"Branch {code(outcome.branch)}, {plural(len(outcome.commits), 'commit')} "
        f"from {code(str(outcome.base))}, {each}."
    )


def _model_table(outcome: Migration) -> Iterator[str]:
    heading = "| model | breaks before | breaks after | graphs before | graphs after | one graph | cold start |"
    yield f"{heading} steady state |"
    yield "|---|---:|---:|---:|---:|---|---|---|"
    for result in outcome.models:
        graphs = [("" if arm.graphs is None else str(arm.graphs)) for arm in (result.before, result.after)]
        times = [each or "not measured" for each in (result.cold, result.steady)]
        cells = [
            code(result.model),
            breaks(result.before),
            breaks(result.after),
            *graphs,
            result.after.one_graph,
            *times,
        ]
        yield f"| {' | '.join(cells)} |"


def _model_details(outcome: Migration) -> Iterator[str]:
    for result in outcome.models:
        rows = [f"- **{escaped(problem)}**" for problem in result.problems]
        rows += [f"- still breaks at {code(site)}" for site in result.after.sites]
        if rows:
            yield "\n".join([f"{code(result.model)}:", "", *rows])


def _commit_note(commit: RuleCommit) -> Iterator[str]:
    if commit.oid is not None:
        yield f"Commit {code(commit.oid[:12])}, explained by {code(f'graphmend rule {commit.rule.code}')}."


def _left_sections(outcome: Migration, folder: Path) -> Iterator[str]:
    by_rule: dict[tuple[str, str], list[Finding]] = {}
    for finding in outcome.remaining:
        by_rule.setdefault((finding.code, finding.slug), []).append(finding)
    for (rule, slug), findings in sorted(by_rule.items()):
        yield f"### {rule} {slug} ({plural(len(findings), 'site')})"
        yield "\n".join(
            f"- {_place(finding, outcome, folder)}. Not applied: {escaped(why_left(finding))}" for finding in findings
        )


def _place(finding: Finding, outcome: Migration, folder: Path) -> str:
    where = code(f"{finding.path}:{finding.span.start_line}")
    if outcome.top is not None:
        target = os.path.relpath(outcome.top / finding.path, folder).replace(os.sep, "/")
        where = f"[{where}]({quote(target, errors='surrogateescape')}#L{finding.span.start_line})"
    function = f" in {code(finding.function)}" if finding.function else ""
    kind = {Safety.UNSAFE: " **(unsafe fix)**", Safety.OPAQUE: " **(opaque operator)**"}
    marked = kind.get(finding.safety, "") if finding.fixable else ""
    return f"{where}{function}: {escaped(finding.message)}{marked}"


def _commit_dict(commit: RuleCommit) -> dict[str, object]:
    return {
        "rule": commit.rule.code,
        "slug": commit.rule.slug,
        "title": commit.rule.title,
        "cost": commit.rule.contract.cost.value,
        "subject": commit.subject,
        "recorded_run": commit.round or None,
        "commit": commit.oid,
        "files": list(commit.files),
        "sites": [_finding_dict(finding) for finding in commit.applied],
    }


def _finding_dict(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.code,
        "slug": finding.slug,
        "path": finding.path,
        "line": finding.span.start_line,
        "function": finding.function,
        "message": finding.message,
        "safety": finding.safety.value,
    }


def _arm_dict(arm: MeasuredVersion) -> dict[str, object]:
    return {
        "graph_breaks": arm.breaks,
        "graphs": arm.graphs,
        "one_graph": arm.whole,
        "opaque_operators": arm.opaque,
        "sites": list(arm.sites),
        "error": arm.message or None,
    }


def _review(outcome: Migration) -> str:
    base = outcome.base.oid[:12] if outcome.base.name == "HEAD" else outcome.base.name
    return f"log --reverse -p {shlex.quote(f'{base}..{outcome.branch}')}"


def _undo(outcome: Migration) -> str:
    return f"branch -D {shlex.quote(outcome.branch)}"


def _git_from_here(outcome: Migration) -> str:
    """`git`, with the repository's folder when the user stands somewhere else."""
    if outcome.top is None or Path.cwd().is_relative_to(outcome.top):
        return "git"
    return f"git -C {shlex.quote(os.path.relpath(outcome.top))}"
