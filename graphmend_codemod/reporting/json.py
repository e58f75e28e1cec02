"""Findings for programs. Lines and columns count from 1, columns in characters; paths are relative to `root`."""

from __future__ import annotations

import json

from graphmend_codemod import __version__
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.reporting.pages import address
from graphmend_codemod.reporting.report import FixStatus, Report, Texts, count_kinds, kind_of

FORMAT_VERSION = 1


def render(report: Report) -> str:
    """One JSON object with every finding, every problem and the counts."""
    texts = report.texts()
    kinds = count_kinds(report.findings)
    document = {
        "version": FORMAT_VERSION,
        "graphmend": __version__,
        "root": str(report.root),
        "findings": [_finding(finding, report, texts) for finding in report.findings],
        "problems": [
            {"path": problem.path, "line": problem.line, "message": problem.message} for problem in report.problems
        ],
        "summary": {"files": report.files, "findings": len(report.findings), "unparsed_without_torch": report.aside}
        | {kind.value: kinds[kind] for kind in FixStatus},
    }
    return json.dumps(document, indent=2)


def _finding(finding: Finding, report: Report, texts: Texts) -> dict[str, object]:
    span = finding.span
    start = texts.position(finding.place, span.start_line, span.start_column)
    end = texts.position(finding.place, span.end_line, span.end_column)
    return {
        "code": finding.code,
        "slug": finding.slug,
        "path": finding.path,
        "cell": finding.cell or None,
        "location": {"line": start.line, "column": start.column},
        "end_location": {"line": end.line, "column": end.column},
        "function": finding.function or None,
        "message": finding.message,
        "kind": kind_of(finding).value,
        "fixable": report.actionable(finding),
        "not_applied": finding.declined,
        "needs_torch": None if finding.needs_torch is None else ".".join(map(str, finding.needs_torch)),
        "url": address(finding.code, finding.slug),
    }
