"""Answers about a whole project that an earlier look at it gave, for a few files that say the same of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphmend_codemod.project.index.facts import NeedsProject, ReachedFunction
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.index.whole_project import ProjectView, WholeProject, writing
from graphmend_codemod.project.summary.records import ModuleSummary, Write

Question = tuple[str, str, str]
OF_TEXTS = frozenset({"writing"})
"""The kinds of questions that are answered by the text of files, and not only by what leads where."""

_Places = Mapping[tuple[str, int], int]


class EarlierProject:
    """The answers of a look at texts that have changed since in a few files, and lead to the same places.

    `changed` has, by path, these files as they were and as they are: with the same functions, in the same order.
    """

    def __init__(
        self, before: WholeProject, index: ProjectIndex, changed: Mapping[str, tuple[ModuleSummary, ModuleSummary]]
    ) -> None:
        self._before = before
        self._index = index
        self._lines: dict[str, _Places] = {}
        self.reached: dict[str, Sequence[ReachedFunction]] = dict(before.reached)
        for path, (old, new) in changed.items():
            both = list(zip(old.functions, new.functions, strict=True))
            self._lines[path] = {(now.qualname, now.line): was.line for was, now in both}
            lines = {(was.qualname, was.line): now.line for was, now in both}
            known = (each._replace(line=lines[each.qualname, each.line]) for each in before.reached.get(path, ()))
            self.reached[path] = tuple(known)

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""
        return self._before.heirs(qualified)

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""
        return self._before.users(qualified)

    def writing_callers(self, qualified: str) -> tuple[str, ...]:
        """See `ProjectView.writing_callers`."""
        names = self._before.names_of(qualified.rpartition(".")[2])
        return writing(self._index, self.users(qualified), names, self.reached)

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""
        return self._before.is_scripted(path, qualname, self._line(path, qualname, line))

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""
        return self._before.caught(path, qualname, self._line(path, qualname, line))

    def _line(self, path: str, qualname: str, line: int) -> int:
        return self._lines.get(path, {}).get((qualname, line), line)

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""
        return self._before.is_loud(name)

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""
        return self._before.readers(attribute)

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""
        return self._before.writers(attribute)


class StoredAnswers:
    """Answers by question, as `stored` gave them. NeedsProject for what nobody has asked.

    `summary` tells what a file says now: functions are named by their place in it, as their lines may have changed.
    """

    def __init__(self, answers: Mapping[Question, Any], index: ProjectIndex) -> None:
        self._answers = answers
        self._index = index

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""
        return tuple(map(str, self._get("heirs", qualified)))

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""
        return tuple(map(str, self._get("users", qualified)))

    def writing_callers(self, qualified: str) -> tuple[str, ...]:
        """See `ProjectView.writing_callers`."""
        return tuple(map(str, self._get("writing", qualified)))

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""
        return bool(self._get("scripted", path, _place(self._index, path, qualname, line)))

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""
        found = self._get("caught", path, _place(self._index, path, qualname, line))
        return None if found is None else str(found)

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""
        return bool(self._get("loud", name))

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""
        return tuple(map(str, self._get("readers", attribute)))

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""
        return tuple((str(path), Write(*map(str, write))) for path, write in self._get("writers", attribute))

    def _get(self, kind: str, first: str, second: str = "") -> Any:
        try:
            return self._answers[kind, first, second]
        except KeyError:
            raise NeedsProject from None


def stored(questions: Iterable[Question], view: ProjectView, index: ProjectIndex) -> dict[Question, Any]:
    """The answers to questions about the project, as plain data that `StoredAnswers` takes."""
    found: dict[Question, Any] = {}
    for kind, first, second in questions:
        if kind in ("scripted", "caught"):
            qualname, _, line = second.rpartition(":")
            ask = view.is_scripted if kind == "scripted" else view.caught
            found[kind, first, _place(index, first, qualname, int(line))] = ask(first, qualname, int(line))
        elif kind == "heirs":
            found[kind, first, ""] = view.heirs(first)
        elif kind in ("users", "naming"):
            found["users", first, ""] = view.users(first)
        elif kind == "writing":
            found[kind, first, ""] = view.writing_callers(first)
            found["users", first, ""] = view.users(first)
        elif kind == "loud":
            found[kind, first, ""] = view.is_loud(first)
        elif kind == "readers":
            found[kind, first, ""] = view.readers(first)
        elif kind == "writers":
            found[kind, first, ""] = view.writers(first)
    return found


def _place(index: ProjectIndex, path: str, qualname: str, line: int) -> str:
    """The place of a function among those of its file; NeedsProject where it has none."""
    module = index.module_at(path)
    for place, each in enumerate(module.summary.functions if module is not None else ()):
        if (each.qualname, each.line) == (qualname, line):
            return str(place)
    raise NeedsProject
