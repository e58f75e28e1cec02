"""Findings as a JUnit report: a test case for each, failed where `graphmend fix` would mend it."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.pages import address
from graphmend_codemod.reporting.report import Report, Texts, shown_path


def render(report: Report) -> str:
    """One `testsuite`. What cannot be fixed is skipped, a problem is an error, and without either one case passes."""
    texts = report.texts()
    failed = sum(map(report.actionable, report.findings))
    cases = [_case(finding, report, texts) for finding in report.findings]
    for problem in report.problems:
        name = shown_path(problem.path, report.root)
        cases.append(_element(name, name, f"<error message={_attribute(problem.message)}/>"))
    if not cases:
        cases = [f'    <testcase classname="graphmend" name={_attribute(f"{report.files} files")}/>']
    counts = f'tests="{len(cases)}" failures="{failed}" errors="{len(report.problems)}"'
    counts += f' skipped="{len(report.findings) - failed}"'
    suite = [f'  <testsuite name="graphmend" {counts}>', *cases, "  </testsuite>"]
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", *suite, "</testsuites>"])


def _case(finding: Finding, report: Report, texts: Texts) -> str:
    start = texts.position(finding.place, finding.span.start_line, finding.span.start_column)
    path = shown_path(finding.path, report.root)
    place = f"{shown_path(finding.place, report.root)}:{start.line}:{start.column}"
    page = address(finding.code, finding.slug) or f"graphmend rule {finding.code}"
    if report.actionable(finding):
        body = f"{place}: {printable(finding.message)}\nhelp: {page}"
        inside = f"<failure message={_attribute(finding.message)}>{escape(body)}</failure>"
    else:
        inside = f"<skipped message={_attribute(f'{finding.message}; {finding.declined or finding.safety.value}')}/>"
    return _element(path, f"{finding.code} {place}", inside)


def _element(classname: str, name: str, inside: str) -> str:
    return f"    <testcase classname={_attribute(classname)} name={_attribute(name)}>{inside}</testcase>"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
