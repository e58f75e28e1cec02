"""Findings that a project knows of: `check --baseline` shows and counts only those that are new.

A finding is known by rule, file, function and statement, and by its number among equal ones: not by its line, so that
lines above may come and go.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.errors import GraphmendError
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.source import SourceError, read_bytes
from graphmend_codemod.reporting.report import Report, Texts

VERSION = 1
_KEY = "graphmend-findings"
_MOST_BYTES = 64 * 2**20


class BaselineError(GraphmendError):
    """A baseline that cannot be read. The text is one line: file, cause, way out."""


class Compared(NamedTuple):
    """The findings that a baseline does not have, and how many of the baseline's are gone."""

    new: tuple[Finding, ...]
    gone: int


def identity(finding: Finding, texts: Texts) -> str:
    """What stays the same when lines above the site come and go."""
    line = texts.line(finding.place, finding.span.start_line) or ""
    return "\0".join((finding.code, finding.path, finding.function, line.strip()))


def fingerprints(report: Report) -> Iterator[str]:
    """One for each finding of a report, in its order; no two are equal."""
    texts = report.texts()
    seen: Counter[str] = Counter()
    for finding in report.findings:
        name = identity(finding, texts)
        seen[name] += 1
        yield hashlib.sha256(f"{name}\0{seen[name]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write(path: Path, report: Report) -> None:
    """Write the findings of a report as the baseline, one a line for small diffs."""
    rows = [
        {"id": name, "code": finding.code, "path": finding.path, "function": finding.function}
        for name, finding in zip(fingerprints(report), report.findings, strict=True)
    ]
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: (row["path"], row["code"], row["id"])))
    path.write_text(f'{{"{_KEY}": {VERSION}, "findings": [\n{lines}\n]}}\n', encoding="utf-8")


def compare(path: Path, report: Report) -> Compared:
    """What is new in a report. Raises `BaselineError`, which names the file, when it cannot be read."""
    try:
        data = json.loads(read_bytes(path, _MOST_BYTES, "rewrite it with --update-baseline"))
        if data[_KEY] != VERSION:
            raise ValueError(f"version {data[_KEY]} is not known")
        known = {str(row["id"]) for row in data["findings"]}
    except SourceError as error:
        raise BaselineError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BaselineError(f"{path}: is not a baseline of findings: {error}; pass --update-baseline") from error
    names = list(fingerprints(report))
    new = tuple(finding for name, finding in zip(names, report.findings, strict=True) if name not in known)
    return Compared(new, len(known.difference(names)))
