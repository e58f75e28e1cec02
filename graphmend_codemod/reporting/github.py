"""Findings as workflow commands of GitHub Actions, which shows them at their lines in a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import Report, Texts, shown_path


def render(report: Report) -> Iterator[str]:
    """A `warning` for what can be fixed, a `notice` for the rest, an `error` for each problem."""
    texts = report.texts()
    for finding in report.findings:
        yield _finding(finding, report, texts)
    for problem in report.problems:
        yield _problem(problem, report)


def _finding(finding: Finding, report: Report, texts: Texts) -> str:
    span = finding.span
    start = texts.position(finding.place, span.start_line, span.start_column)
    properties = {
        "file": shown_path(finding.path, report.root),
        "line": str(start.line),
        "endLine": str(span.end_line),
        "col": str(start.column),
        "title": f"graphmend {finding.code} {finding.slug}",
    }
    if span.end_line == span.start_line:  # GitHub takes an end column on the same line only
        properties["endColumn"] = str(texts.position(finding.place, span.end_line, span.end_column).column)
    message = finding.message + (f"\nnot applied: {finding.declined}" if finding.declined else "")
    return command("warning" if report.actionable(finding) else "notice", properties, message)


def _problem(problem: Problem, report: Report) -> str:
    properties = {"file": shown_path(problem.path, report.root), "title": "graphmend"}
    if problem.line is not None:
        properties["line"] = str(problem.line)
    return command("error", properties, problem.message)


def command(name: str, properties: dict[str, str], message: str) -> str:
    """One workflow command, with everything in it escaped."""
    joined = ",".join(f"{key}={_escaped_property(value)}" for key, value in properties.items())
    return f"::{name} {joined}::{_escaped(message)}"


def _escaped(text: str) -> str:
    # A command of the runner's older kind counts wherever it stands in a line.
    shown = "\n".join(map(printable, text.split("\n"))).replace("##[", "## [")
    return shown.replace("%", "%25").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
