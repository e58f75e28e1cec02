"""Cached results: of one file's functions, valid while all that they depend on is the same, and of complete runs.

Findings are kept as plain data, under names that tell what they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmend_codemod.core.cache import Cache, hashed
from graphmend_codemod.core.findings import (
    Edit,
    EditForm,
    Finding,
    Helper,
    Original,
    Problem,
    Replacement,
    Safety,
    Span,
)
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.analyze import Analysed, Task
from graphmend_codemod.project.index.facts import ReachedFunction

if TYPE_CHECKING:
    from graphmend_codemod.project.index.dependency_tracking import Answers
    from graphmend_codemod.project.index.project_index import ProjectIndex

# What no finding depends on.
_OF_FIXES = frozenset({"root", "trace", "only_sites"})


def settings_key(settings: Settings) -> str:
    """The settings that findings depend on, in one text."""
    return repr(
        [(name, value) for name, value in settings._asdict().items() if name not in _OF_FIXES and value != frozenset()]
    )


def findings_key(settings: Settings, digest: str, functions: Sequence[ReachedFunction]) -> str:
    """What a file's findings depend on besides the answers of the index."""
    return hashed(
        settings_key(settings),
        digest,
        repr([(each.qualname, each.line, each.class_qualified, each.offered) for each in functions]),
    )


class ResultCache:
    """Results of this run, and with a cache those of earlier ones.

    A result is known again when the file's text, the functions asked about, the settings and the answers that the
    index gave are all the same.
    """

    def __init__(self, settings: Settings, cache: Cache | None) -> None:
        self._settings = settings
        self._cache = cache
        self._known: dict[str, tuple[str, Analysed]] = {}

    def recall(self, task: Task, answers: Answers) -> Analysed | None:
        """The result of a task, if it is known and `answers` are as they were."""
        key = self._key(task)
        kept, known = self._known.get(task.path, ("", None))
        if kept != key:
            known = self._cache.read("findings", task.path, key, analysed_from_json) if self._cache else None
        if known is None or any(answers.name(question) != answer for question, answer in known.answers):
            return None
        return known

    def keep(self, task: Task, analysed: Analysed) -> None:
        """Remember a result, unless it is that something went wrong."""
        if analysed.problem is None:
            key = self._key(task)
            self._known[task.path] = (key, analysed)
            if self._cache is not None:
                self._cache.write("findings", task.path, key, analysed_to_json(analysed))

    def answers(self, index: ProjectIndex) -> Answers:
        """The answers of an index, to compare results with."""
        from graphmend_codemod.project.index.dependency_tracking import Answers  # not for a whole run that is known

        return Answers(index)

    def _key(self, task: Task) -> str:
        return findings_key(self._settings, task.digest, task.functions)


class Remembered(NamedTuple):
    """The result of a run. `others` are the digests of files that it read although they are not listed."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    others: tuple[tuple[str, str], ...]


class WholeRun:
    """The entry of one question (settings and files) about one state of the project (digests by path)."""

    def __init__(self, cache: Cache, settings: Settings, files: Sequence[str], digests: Mapping[str, str]) -> None:
        self._cache = cache
        self._digests = digests
        self._name = hashed(settings_key(settings), *files)
        self._key = hashed(self._name, *(f"{path}\0{digest}" for path, digest in sorted(digests.items())))

    def read(self, digest: Callable[[str], str]) -> Remembered | None:
        """What the run found, if nothing has changed since; `digest` tells about files that are not listed."""
        known = self._cache.read("runs", self._name, self._key, _run_from_json)
        if known is None or any(digest(path) != before for path, before in known.others):
            return None
        return known

    def write(self, findings: Sequence[Finding], problems: Sequence[Problem], digests: Mapping[str, str]) -> None:
        """Remember what was found, unless a file was not read (`digests`) as it was when the run began."""
        if any(self._digests.get(path, digest) != digest for path, digest in digests.items()):
            return
        others = [[path, digest] for path, digest in sorted(digests.items()) if path not in self._digests]
        data = [[*map(finding_to_json, findings)], [*map(problem_to_json, problems)], others]
        self._cache.write("runs", self._name, self._key, data)
        self._cache.trim_runs()
        for kind in ("summaries", "findings"):
            self._cache.forget_others(kind, digests)


def _run_from_json(data: Any) -> Remembered:
    findings, problems, others = data
    return Remembered(
        tuple(map(finding_from_json, findings)),
        tuple(map(problem_from_json, problems)),
        tuple((str(path), str(digest)) for path, digest in others),
    )


def finding_to_json(finding: Finding) -> list[Any]:
    """A row of plain data."""
    return [
        finding.code, finding.slug, finding.path, _span_to_json(finding.span), finding.message, finding.safety.value,
        finding.function, None if finding.edit is None else _edit_to_json(finding.edit), finding.declined,
        finding.cell, finding.needs_torch,
    ]  # fmt: skip


def finding_from_json(row: Sequence[Any]) -> Finding:
    """The finding of a row. ValueError or TypeError when it has another shape."""
    code, slug, path, span, message, safety, function, edit, declined, cell, needs_torch = row
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
        int(cell),
        None if needs_torch is None else (int(needs_torch[0]), int(needs_torch[1])),
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
        [[helper.name, helper.source, helper.after, helper.shared, helper.since] for helper in edit.helpers],
        edit.form.value,
        edit.scriptable,
        edit.since,
        edit.whole,
        edit.copies,
        edit.repeats,
        edit.recorded,
        edit.raises,
        edit.reaches,
    ]


def _edit(row: Sequence[Any]) -> Edit:
    replacements, imports, helpers, form, scriptable, since, whole, copies, repeats, recorded, raises, reaches = row
    _require_text(since, *imports, *recorded)
    return Edit(
        tuple(Replacement(_span(span), tuple(_part(part) for part in parts)) for span, parts in replacements),
        tuple(imports),
        tuple(_helper(*helper) for helper in helpers),
        EditForm(form),
        bool(scriptable),
        since,
        bool(whole),
        bool(copies),
        bool(repeats),
        tuple(recorded),
        bool(raises),
        bool(reaches),
    )


def _part(part: Any) -> str | Original:
    if isinstance(part, str):
        return part
    span, deeper = part
    return Original(_span(span), int(deeper))


def _helper(name: str, source: str, after: Sequence[str], shared: bool, since: str) -> Helper:
    _require_text(name, source, since, *after)
    return Helper(name, source, tuple(after), bool(shared), since)
