"""Findings as a SARIF 2.1.0 log, which code scanning services read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

from graphmend_codemod import __version__
from graphmend_codemod.core.findings import Finding, Problem, Safety, Span
from graphmend_codemod.reporting import pages
from graphmend_codemod.reporting import rules as rule_pages
from graphmend_codemod.reporting.baseline import fingerprints
from graphmend_codemod.reporting.report import Report, Texts, kind_of
from graphmend_codemod.rules.framework.rule import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE = "SRCROOT"

Object = dict[str, object]


def render(report: Report, rules: tuple[Rule, ...]) -> str:
    """The log, as JSON. `rules` is the catalogue that the tool describes itself with."""
    base = repository_root(report.root)
    run: Object = {
        "tool": {"driver": {"name": "graphmend", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_BASE: {"uri": _folder_uri(base)}},
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [
                    _notification(problem, report.root, base) for problem in report.problems
                ],
            }
        ],
        "results": _results(report, rules, base),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def repository_root(root: Path) -> Path:
    """The top of the git repository around `root`, to which such services take paths as relative; else `root`."""
    root = Path(os.path.abspath(root))
    return next((folder for folder in (root, *root.parents) if os.path.exists(folder / ".git")), root)


def _rule(rule: Rule) -> Object:
    summary, explanation = rule_pages.summary(rule), rule_pages.explanation(rule)
    page = pages.address(rule.code, rule.slug)
    return ({} if page is None else {"helpUri": page}) | {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.slug.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": explanation or summary},
        "help": {"text": explanation or summary, "markdown": rule_pages.markdown(rule)},
        "defaultConfiguration": {"level": "note" if rule.safety is Safety.ADVICE else "warning"},
        "properties": {"tags": ["performance", "torch.compile", rule_pages.family(rule)], "safety": rule.safety.value},
    }


def _results(report: Report, rules: tuple[Rule, ...], base: Path) -> list[Object]:
    texts = report.texts()
    indexes = {rule.code: index for index, rule in enumerate(rules)}
    results = []
    for finding, fingerprint in zip(report.findings, fingerprints(report), strict=True):
        result: Object = {
            "ruleId": finding.code,
            "level": "warning" if report.actionable(finding) else "note",
            "message": {"text": finding.message + (f"; not applied: {finding.declined}" if finding.declined else "")},
            "locations": [_location(finding, report.root, base, texts)],
            "partialFingerprints": {"graphmendSite/v1": fingerprint},
            "properties": {"slug": finding.slug, "kind": kind_of(finding).value},
        }
        if finding.code in indexes:
            result["ruleIndex"] = indexes[finding.code]
        results.append(result)
    return results


def _location(finding: Finding, root: Path, base: Path, texts: Texts) -> Object:
    location: Object = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.path, root, base),
            "region": _region(finding.place, finding.span, texts),
        }
    }
    if finding.function:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.function, "kind": "function"}]
    return location


def _region(path: str, span: Span, texts: Texts) -> Object:
    start = texts.position(path, span.start_line, span.start_column)
    end = texts.position(path, span.end_line, span.end_column)
    return {"startLine": start.line, "startColumn": start.utf16, "endLine": end.line, "endColumn": end.utf16}


def _notification(problem: Problem, root: Path, base: Path) -> Object:
    place: Object = {"artifactLocation": _artifact(problem.path, root, base)}
    if problem.line is not None:
        place["region"] = {"startLine": problem.line}
    return {"level": "error", "message": {"text": problem.message}, "locations": [{"physicalLocation": place}]}


def _artifact(path: str, root: Path, base: Path) -> Object:
    absolute = Path(os.path.abspath(root / path))
    if not absolute.is_relative_to(base):
        return {"uri": absolute.as_uri()}
    return {"uri": quote(os.fsencode(absolute.relative_to(base).as_posix())), "uriBaseId": _BASE}


def _folder_uri(folder: Path) -> str:
    return folder.as_uri().rstrip("/") + "/"
