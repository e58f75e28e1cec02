"""How many findings each rule has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.reporting.report import Report, count_kinds, plural


def _by_rule(report: Report) -> list[tuple[str, str, list[Finding]]]:
    groups: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in report.findings:
        groups[finding.code, finding.slug].append(finding)
    return [(*rule, found) for rule, found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))]


def text(report: Report, paint: Paint) -> Iterator[str]:
    """One line a rule, the most frequent first."""
    rows = _by_rule(report)
    if not rows:
        yield f"No break sites in {plural(report.files, 'file')}."
    widest = max((len(slug) for _, slug, _ in rows), default=0)
    digits = max((len(str(len(found))) for _, _, found in rows), default=0)
    for code, slug, found in rows:
        kinds = count_kinds(found)
        parts = ", ".join(f"{count} {kind.value}" for kind, count in kinds.items() if count)
        mark = "[*]" if any(report.actionable(finding) for finding in found) else "[ ]"
        yield f"{len(found):>{digits}}  {paint.red(code)}  {paint.cyan(mark)}  {slug:<{widest}}  {parts}"


def as_json(report: Report) -> str:
    """The same counts as a JSON list."""
    rows = [
        {"code": code, "slug": slug, "count": len(found)}
        | {kind.value: count for kind, count in count_kinds(found).items()}
        for code, slug, found in _by_rule(report)
    ]
    return json.dumps(rows, indent=2)
