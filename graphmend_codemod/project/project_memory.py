"""What an earlier run learned of a whole project, so that a commit hook reads only the staged files.

That is which functions are reached from `forward`, and what rules asked about all files. Both depend on names, calls
and classes, and on nothing else in a file. They stay known while every file is as it was, or says the same of its
functions and classes as before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphmend_codemod.core.cache import Cache, hashed
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.project.index.earlier_answers import OF_TEXTS, Question
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.loading import Loaded
from graphmend_codemod.project.summary.records import ModuleSummary

Reached = Mapping[str, Sequence[ReachedFunction]]


_Row = tuple[int, "str | None", str, bool]


class Known(NamedTuple):
    """What is known of the current state of a project.

    `files` are (path, digest, outline), `rows` the reached functions by path as (position, class of `self`, via,
    offered), `names` all names that the project gives, and `answers` those to questions of rules. `edited` is true
    where one of the files has another text than the entry in the cache says.
    """

    files: tuple[tuple[str, str, str], ...]
    rows: Mapping[str, Sequence[_Row]]
    names: frozenset[str]
    answers: Mapping[Question, Any]
    edited: bool = False

    def reached_in(self, path: str, summary: ModuleSummary) -> tuple[ReachedFunction, ...] | None:
        """The reached functions of a file that says this now; None where the entry cannot be of this file."""
        rows = self.rows.get(path, ())
        if not all(0 <= place < len(summary.functions) for place, *_ in rows):
            return None
        return tuple(_reached(summary, *row) for row in rows)

    def after(self, edited: Mapping[str, tuple[str, ModuleSummary]]) -> Known:
        """The same for a project in which these files have another digest and say this, and lead to the same places."""
        files = tuple(
            (path, edited[path][0], outline_of(edited[path][1])) if path in edited else (path, digest, outline)
            for path, digest, outline in self.files
        )
        return self._replace(files=files, answers=_still_valid(self.answers, sorted(edited)), edited=True)


class ProjectMemory:
    """The entry of one project: its files, and the settings that say what a module is."""

    def __init__(self, cache: Cache, settings: Settings, files: Sequence[str]) -> None:
        self._cache = cache
        self._files = files
        self._outlines: dict[tuple[str, str], str] = {}
        self._name = hashed("reach", *settings.module_bases, *(repr(each) for each in sorted(settings.seen_functions)))

    def read(self, digest: Callable[[str], str], summary: Callable[[str], ModuleSummary | None]) -> Known | None:
        """What is known; None when it has to be searched for.

        `digest` and `summary` tell what a file holds now; a summary is asked for where the digest is another one.
        Answers that were read off the text of such a file are left out.
        """
        known = self._cache.read("reach", self._name, self._key(), _decoded)
        if known is None:
            return None
        self._outlines = {(path, digest): outline for path, digest, outline in known.files}
        changed = []
        for path, before, outline in known.files:
            if digest(path) != before:
                now = summary(path) if outline else None
                if now is None or outline_of(now) != outline:
                    return None
                changed.append(path)
        return known._replace(answers=_still_valid(known.answers, changed))

    def of(
        self,
        digest: Callable[[str], str],
        loaded: Mapping[str, Loaded],
        reached: Reached,
        names: frozenset[str],
        answers: Mapping[Question, Any],
    ) -> Known:
        """What is known after a look at these files, those included that were asked for by name only."""
        files = tuple(self._file(path, each.digest or digest(path), each) for path, each in sorted(loaded.items()))
        rows: dict[str, list[_Row]] = {}
        for path, functions in reached.items():
            summary = loaded[path].summary
            if summary is not None:
                positions = {(each.qualname, each.line): place for place, each in enumerate(summary.functions)}
                rows[path] = [
                    (positions[each.qualname, each.line], each.class_qualified, each.via, each.offered)
                    for each in functions
                ]
        return Known(files, rows, names, answers)

    def _file(self, path: str, digest: str, loaded: Loaded) -> tuple[str, str, str]:
        outline = self._outlines.get((path, digest))  # as the entry has it that was read, if there is one
        return path, digest, _outline(loaded) if outline is None else outline

    def write(self, known: Known) -> None:
        """Remember what is known."""
        told = [[*question, answer] for question, answer in sorted(known.answers.items(), key=_question)]
        data = [known.files, known.rows, " ".join(sorted(known.names)), told]
        self._cache.write("reach", self._name, self._key(), data)

    def _key(self) -> str:
        return hashed(*self._files)


def _still_valid(answers: Mapping[Question, Any], changed: Sequence[str]) -> dict[Question, Any]:
    """Without the answers that were read off the text of a file that has changed."""
    return {
        question: answer
        for question, answer in answers.items()
        if question[0] not in OF_TEXTS or set(changed).isdisjoint(answers.get(("users", question[1], ""), changed))
    }


def outline_of(summary: ModuleSummary) -> str:
    """A name for what a module says of its functions and classes, wherever in the file they stand."""
    functions = [each._replace(line=0, end_line=0, candidates=()) for each in summary.functions]
    classes = [each._replace(line=0) for each in summary.classes]
    said = [summary.bindings, summary.stars, summary.exports, functions, classes, sorted(set(summary.writes))]
    return hashed(json.dumps(said))


def _outline(loaded: Loaded) -> str:
    return outline_of(loaded.summary) if loaded.summary is not None else ""


def _reached(summary: ModuleSummary, position: int, owner: str | None, via: str, offered: bool) -> ReachedFunction:
    function = summary.functions[position]
    return ReachedFunction(function.qualname, function.line, owner, via, offered)


def _question(answered: tuple[Question, Any]) -> Question:
    return answered[0]


def _decoded(data: Any) -> Known:
    files, reached, names, answers = data
    return Known(
        tuple((str(path), str(digest), str(outline)) for path, digest, outline in files),
        {
            str(path): [
                (int(place), None if owner is None else str(owner), str(via), bool(offered))
                for place, owner, via, offered in rows
            ]
            for path, rows in reached.items()
        },
        frozenset(names.split()),
        {(str(kind), str(first), str(second)): answer for kind, first, second, answer in answers},
    )
