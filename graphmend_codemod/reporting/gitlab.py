"""Findings as a Code Quality report of GitLab, which shows them in merge requests."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.reporting.baseline import identity
from graphmend_codemod.reporting.pages import address
from graphmend_codemod.reporting.report import Report
from graphmend_codemod.reporting.sarif import repository_root


def render(report: Report) -> str:
    """A JSON array with an entry for each finding and each problem; paths are relative to the repository."""
    base, texts = repository_root(report.root), report.texts()
    seen: Counter[str] = Counter()
    entries = []
    for finding in report.findings:
        same = identity(finding, texts)
        seen[same] += 1
        start = texts.position(finding.place, finding.span.start_line, finding.span.start_column)
        severity = "minor" if report.actionable(finding) else "info"
        location: dict[str, object] = {
            "path": _path(finding.path, report.root, base),
            "positions": {"begin": {"line": start.line, "column": start.column}},
        }
        entries.append(entry(finding.code, _described(finding), severity, location, f"{same}\0{seen[same]}"))
    for problem in report.problems:
        place = line_of(problem.path, problem.line or 1, report.root, base)
        entries.append(entry("error", problem.message, "major", place, f"{problem.path}\0{problem.message}"))
    return json.dumps(entries, indent=2)


def entry(name: str, told: str, severity: str, location: dict[str, object], same: str) -> dict[str, object]:
    """One issue. Those that are the `same` in two reports are one to GitLab."""
    return {
        "type": "issue",
        "check_name": name,
        "description": told,
        "categories": ["Performance"],
        "severity": severity,
        "location": location,
        "fingerprint": hashlib.sha256(same.encode("utf-8", "surrogatepass")).hexdigest()[:32],
    }


def line_of(path: str, line: int, root: Path, base: Path) -> dict[str, object]:
    """A line of a file of the project at `root`, in the repository at `base`."""
    return {"path": _path(path, root, base), "lines": {"begin": line}}


def _described(finding: Finding) -> str:
    page = address(finding.code, finding.slug)
    told = f"{finding.code}: {finding.message}"
    told += f"; not applied: {finding.declined}" if finding.declined else ""
    return told if page is None else f"{told} ({page})"


def _path(path: str, root: Path, base: Path) -> str:
    absolute = root.absolute() / path
    return absolute.relative_to(base).as_posix() if absolute.is_relative_to(base) else path
