"""Open documents to findings, and findings to what the protocol calls diagnostics, edits and hovers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lsprotocol import types

from graphmend_codemod.core.discovery import discover
from graphmend_codemod.core.findings import Finding, Safety
from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.engine import api
from graphmend_codemod.reporting import rules as pages
from graphmend_codemod.reporting.pages import address
from graphmend_codemod.reporting.report import Report
from graphmend_codemod.rules.framework.registry import all_rules

SOURCE = "graphmend"


class Checked(NamedTuple):
    """One version of a document with the findings in it, and their places as the protocol counts them."""

    path: Path
    text: str
    findings: tuple[Finding, ...] = ()
    ranges: tuple[types.Range, ...] = ()


def check(path: Path, text: str) -> Checked:
    """Check a document as its editor has it. SettingsError if the settings of its project cannot be used.

    What the command line leaves out, such as vendored code, has no findings.
    """
    settings = load_settings(path)
    if not discover([path], settings).files:
        return Checked(path, text)
    raw = text.encode("utf-8", "surrogatepass")
    result = api.check_text(raw, path, settings)
    given = {finding.path: raw for finding in result.findings}
    texts = Report.of(result.findings, result.problems, 1, settings, given).texts()
    ranges = []
    for finding in result.findings:
        span = finding.span
        start = texts.position(finding.place, span.start_line, span.start_column)
        end = texts.position(finding.place, span.end_line, span.end_column)
        ranges.append(
            types.Range(types.Position(start.line - 1, start.utf16 - 1), types.Position(end.line - 1, end.utf16 - 1))
        )
    return Checked(path, text, result.findings, tuple(ranges))


def diagnostics(checked: Checked) -> list[types.Diagnostic]:
    """A warning for what a quick fix mends, a hint for the rest; each with its code and the rule's page."""
    return [_diagnostic(finding, place) for finding, place in zip(checked.findings, checked.ranges, strict=True)]


def _diagnostic(finding: Finding, place: types.Range) -> types.Diagnostic:
    page = address(finding.code, finding.slug)
    fixable = finding.is_applied(unsafe_fixes=False)
    reason = f"\nnot applied: {finding.declined}" if finding.declined else ""
    return types.Diagnostic(
        range=place,
        message=f"{finding.message}{reason}",
        severity=types.DiagnosticSeverity.Warning if fixable else types.DiagnosticSeverity.Information,
        code=finding.code,
        code_description=None if page is None else types.CodeDescription(page),
        source=SOURCE,
    )


def actions(checked: Checked, uri: str, wanted: types.Range) -> Iterator[types.CodeAction]:
    """Quick fixes for the findings in a range, and one that fixes all that is safe in the document."""
    for finding, place in zip(checked.findings, checked.ranges, strict=True):
        if finding.edit is None or not _overlap(place, wanted):
            continue
        after = _edited(checked, finding)
        if after is not None:
            safe = finding.is_applied(unsafe_fixes=False)
            unsafe = "" if safe else " (opaque operator)" if finding.safety is Safety.OPAQUE else " (unsafe)"
            yield types.CodeAction(
                title=f"graphmend: fix {finding.code} {finding.slug}{unsafe}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[_diagnostic(finding, place)],
                edit=_workspace_edit(uri, checked.text, after),
                is_preferred=not unsafe,
            )
    if any(finding.is_applied(unsafe_fixes=False) for finding in checked.findings):
        fixed = api.fix_text(checked.text.encode("utf-8", "surrogatepass"), checked.path, load_settings(checked.path))
        if fixed.fixes:
            yield types.CodeAction(
                title="graphmend: fix all break sites in this file",
                kind="source.fixAll.graphmend",
                edit=_workspace_edit(uri, checked.text, fixed.fixes[0].after.decode("utf-8", "surrogatepass")),
            )


def _edited(checked: Checked, finding: Finding) -> str | None:
    """The text with one finding fixed; None where the edit cannot be made."""
    from graphmend_codemod.rewriting import apply

    raw = checked.text.encode("utf-8", "surrogatepass")
    try:
        made = apply(SourceFile.decoded(raw, finding.path), [finding.edit] if finding.edit is not None else [])
    except SourceError:
        return None
    return made.text if made.applied else None


def _overlap(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _workspace_edit(uri: str, before: str, after: str) -> types.WorkspaceEdit:
    return types.WorkspaceEdit(changes={uri: edits(before, after)})


def edits(before: str, after: str) -> list[types.TextEdit]:
    """The lines that differ, as edits of whole lines."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found = []
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            place = types.Range(types.Position(first, 0), types.Position(last, 0))
            found.append(types.TextEdit(place, "".join(new[start:end])))
    return found


def hover(checked: Checked, position: types.Position) -> types.Hover | None:
    """The page of the rule whose finding is at a position; None where there is none."""
    for finding, place in zip(checked.findings, checked.ranges, strict=True):
        if place.start <= position <= place.end:
            rule = next((each for each in all_rules() if each.code == finding.code), None)
            if rule is not None:
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, pages.markdown(rule)), place)
    return None
