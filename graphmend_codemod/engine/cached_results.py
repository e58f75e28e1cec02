"""Findings as plain data and back, and the names under which they are remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmend_codemod.core.cache import hashed
from graphmend_codemod.core.findings import Edit, Finding, Form, Helper, Original, Problem, Replacement, Safety, Span
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.analyze import Analysed
from graphmend_codemod.project.index.facts import ReachedFunction

# What no finding depends on.
_OF_FIXES = frozenset({"root", "trace", "only_sites"})


def settings_key(settings: Settings) -> str:
    """The settings that findings depend on, in one text."""
    return repr([(name, value) for name, value in settings._asdict().items() if name not in _OF_FIXES])


def findings_key(settings: Settings, digest: str, functions: Sequence[ReachedFunction]) -> str:
    """What a file's findings depend on besides the answers of the index."""
    return hashed(
        settings_key(settings), digest, repr([(each.qualname, each.line, each.class_qualified) for each in functions])
    )


def finding_to_json(finding: Finding) -> list[Any]:
    """A row of plain data."""
    return [
        finding.code, finding.slug, finding.path, _span_to_json(finding.span), finding.message, finding.safety.value,
        finding.function, None if finding.edit is None else _edit_to_json(finding.edit), finding.declined,
    ]  # fmt: skip


def finding_from_json(row: Sequence[Any]) -> Finding:
    """The finding of a row. ValueError or TypeError when it has another shape."""
    code, slug, path, span, message, safety, function, edit, declined = row
    _require_text(code, slug, path, message, function, *([] if declined is None else [declined]))
    return Finding(
        code,
        slug,
        path,
        _span(span),
        message,
        Safety(safety),
        function,
        None if edit is None else _edit(edit),
        declined,
    )


def analysed_to_json(analysed: Analysed) -> list[Any]:
    """A row of plain data; a problem is not kept."""
    answers = [[*question, answer] for question, answer in analysed.answers]
    return [analysed.path, [*map(finding_to_json, analysed.findings)], answers]


def analysed_from_json(row: Sequence[Any]) -> Analysed:
    """The result of a row. ValueError or TypeError when it has another shape."""
    path, findings, answers = row
    _require_text(path)
    pairs = []
    for kind, first, second, answer in answers:
        _require_text(kind, first, second, answer)
        pairs.append(((kind, first, second), answer))
    return Analysed(path, tuple(map(finding_from_json, findings)), answers=tuple(pairs))


def problem_to_json(problem: Problem) -> list[Any]:
    """A row of plain data."""
    return [problem.path, problem.message, problem.line, problem.aside]


def problem_from_json(row: Sequence[Any]) -> Problem:
    """The problem of a row. ValueError or TypeError when it has another shape."""
    path, message, line, aside = row
    _require_text(path, message)
    return Problem(path, message, line if line is None else int(line), bool(aside))


def _require_text(*values: object) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("text expected")


def _span_to_json(span: Span) -> list[int]:
    return [span.start_line, span.start_column, span.end_line, span.end_column]


def _span(row: Sequence[Any]) -> Span:
    first, second, third, fourth = row
    return Span(int(first), int(second), int(third), int(fourth))


def _edit_to_json(edit: Edit) -> list[Any]:
    replacements = [
        [
            _span_to_json(one.span),
            [part if isinstance(part, str) else [_span_to_json(part.span), part.deeper] for part in one.parts],
        ]
        for one in edit.replacements
    ]
    return [
        replacements,
        edit.imports,
        [[helper.name, helper.source, helper.after, helper.shared] for helper in edit.helpers],
        edit.form.value,
    ]


def _edit(row: Sequence[Any]) -> Edit:
    replacements, imports, helpers, form = row
    _require_text(*imports)
    return Edit(
        tuple(Replacement(_span(span), tuple(_part(part) for part in parts)) for span, parts in replacements),
        tuple(imports),
        tuple(_helper(*helper) for helper in helpers),
        Form(form),
    )


def _part(part: Any) -> str | Original:
    if isinstance(part, str):
        return part
    span, deeper = part
    return Original(_span(span), int(deeper))


def _helper(name: str, source: str, after: Sequence[str], shared: bool) -> Helper:
    _require_text(name, source, *after)
    return Helper(name, source, tuple(after), bool(shared))
