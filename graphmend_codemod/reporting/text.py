"""Findings for people: one line each, or with the source around them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.pages import address
from graphmend_codemod.reporting.report import (
    FixStatus,
    Report,
    Texts,
    count_kinds,
    for_newer_torch,
    kind_of,
    plural,
    shown_path,
)

_LINES_SHOWN = 5


def full(report: Report, paint: Paint, *, summarized: bool = True) -> Iterator[str]:
    """Lines of text: each finding with an excerpt, what came of it and the rule's page, then the summary."""
    texts = report.texts()
    for finding in report.findings:
        yield _headline(finding, report, texts, paint)
        yield from _excerpt(finding, texts, paint)
        yield from _notes(finding, report, paint)
        yield ""
    if summarized:
        yield summary(report)


def concise(report: Report, paint: Paint, *, summarized: bool = True) -> Iterator[str]:
    """Lines of text: one for each finding, then the summary."""
    texts = report.texts()
    for finding in report.findings:
        reason = f" (not applied: {printable(finding.declined)})" if finding.declined else ""
        yield _headline(finding, report, texts, paint) + paint.yellow(reason)
    if summarized:
        yield summary(report)


def summary(report: Report) -> str:
    """One line that says how many break sites there are and what can be done about them."""
    checked = plural(report.files, "file")
    failed = f" {len(report.problems)} could not be checked." if report.problems else ""
    if report.aside:
        failed += f" {plural(report.aside, 'file')} without torch cannot be parsed."
    if not report.findings:
        return f"No break sites in {checked}.{failed}"
    kinds = count_kinds(report.findings)
    parts = []
    if report.unsafe_fixes:
        fixable = kinds[FixStatus.SAFE] + kinds[FixStatus.UNSAFE]
        if fixable:
            parts.append(f"{fixable} fixable with `graphmend fix --unsafe-fixes` ({kinds[FixStatus.UNSAFE]} unsafe)")
    else:
        asked = sum(kind_of(each) is not FixStatus.OPAQUE and report.actionable(each) for each in report.findings)
        if asked:
            parts.append(f"{asked} fixable with `graphmend fix`")
        if left := kinds[FixStatus.SAFE] + kinds[FixStatus.UNSAFE] - asked:
            parts.append(f"{left} with --unsafe-fixes")
    if kinds[FixStatus.OPAQUE]:
        parts.append(f"{kinds[FixStatus.OPAQUE]} with{'' if report.opaque else ' --opaque as'} opaque operators")
    parts += [f"{kinds[kind]} {kind.value}" for kind in (FixStatus.DECLINED, FixStatus.ADVICE) if kinds[kind]]
    hit = len({finding.path for finding in report.findings})
    older = for_newer_torch(report.findings)
    newer = f" {older.fixes} more may be fixable with --target-torch {older.version}." if older else ""
    return (
        f"Found {plural(len(report.findings), 'break site')} in {hit} of {checked}: {', '.join(parts)}.{newer}{failed}"
    )


def mark(finding: Finding, unsafe_fixes: bool, opaque: bool = False) -> str:
    """`[*]` if `graphmend fix` mends it, `[unsafe]` if only --unsafe-fixes does, `[* unsafe]` if that was given.

    `[opaque]` and `[* opaque]` are the same for --opaque.
    """
    kind = kind_of(finding)
    if kind is FixStatus.SAFE:
        return "[*]"
    if kind in {FixStatus.UNSAFE, FixStatus.OPAQUE}:
        return f"[* {kind.value}]" if finding.is_applied(unsafe_fixes, opaque) else f"[{kind.value}]"
    return ""


def _headline(finding: Finding, report: Report, texts: Texts, paint: Paint) -> str:
    start = texts.position(finding.place, finding.span.start_line, finding.span.start_column)
    separator = paint.cyan(":")
    where = separator.join(
        (paint.bold(printable(shown_path(finding.place, report.root))), str(start.line), str(start.column))
    )
    marked = mark(finding, report.unsafe_fixes, report.opaque)
    words = (paint.red(finding.code), paint.cyan(marked), printable(finding.message))
    return f"{where}{separator} {' '.join(word for word in words if word)}"


def _excerpt(finding: Finding, texts: Texts, paint: Paint) -> Iterator[str]:
    span = finding.span
    last = min(span.end_line, span.start_line + _LINES_SHOWN - 1)
    shown = [(number, texts.line(finding.place, number)) for number in range(max(1, span.start_line - 1), last + 1)]
    if shown[-1][1] is None:
        return
    width = len(str(last))
    bar = paint.blue("|")
    gutter = f"{'':{width}} {bar}"
    yield gutter
    for number, line in shown:
        yield f"{paint.blue(f'{number:>{width}}')} {bar} {printable(line or '')}".rstrip()
        if number == span.start_line:
            yield f"{gutter} {_underline(finding, line or '', paint)}"
    if last < span.end_line:
        yield f"{gutter} ..."
    yield gutter


def _underline(finding: Finding, line: str, paint: Paint) -> str:
    span = finding.span
    data = line.encode("utf-8", "surrogatepass")
    stop = span.end_column if span.end_line == span.start_line else len(data)
    before = data[: span.start_column].decode("utf-8", "ignore")
    inside = data[span.start_column : stop].decode("utf-8", "ignore").rstrip()
    return " " * _width(before) + paint.red("^" * max(1, _width(inside)) + f" {finding.code}")


def _width(text: str) -> int:
    shown = printable(text)
    if shown.isascii():
        return len(shown)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in shown
    )


def _notes(finding: Finding, report: Report, paint: Paint) -> Iterator[str]:
    if finding.declined:
        yield f"  = {paint.yellow('not applied')}: {printable(finding.declined)}"
    elif kind_of(finding) is FixStatus.UNSAFE and not report.actionable(finding):
        yield f"  = {paint.yellow('not applied')}: unsafe fix; show it with `graphmend fix --unsafe-fixes --diff`"
    elif kind_of(finding) is FixStatus.OPAQUE and not report.actionable(finding):
        yield f"  = {paint.yellow('not applied')}: opaque operator; show it with `graphmend fix --opaque --diff`"
    if finding.function:
        yield f"  = {paint.bold('in')}: {printable(finding.function)}"
    yield f"  = {paint.bold('help')}: {address(finding.code, finding.slug) or f'graphmend rule {finding.code}'}"
