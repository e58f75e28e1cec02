"""Cache of the functions reachable from `forward`, so that a commit hook reads only the staged files.

What is reached depends on names, calls and classes, and on nothing else in a file. It stays known while every file is
as it was, or says the same of its functions and classes as before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphmend_codemod.core.cache import Cache, hashed
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.loading import Loaded
from graphmend_codemod.project.summary.records import ModuleSummary

Reached = Mapping[str, Sequence[ReachedFunction]]


_Row = tuple[int, "str | None", str, bool]


class _Known(NamedTuple):
    """Files as (path, digest, outline), and reached functions by path as (position, class of `self`, via, offered)."""

    files: list[tuple[str, str, str]]
    reached: dict[str, list[_Row]]


class ReachMemory:
    """The entry of one project: its files, and the settings that say what a module is."""

    def __init__(self, cache: Cache, settings: Settings, files: Sequence[str]) -> None:
        self._cache = cache
        self._files = files
        self._name = hashed("reach", *settings.module_bases, *(repr(each) for each in sorted(settings.seen_functions)))

    def read(
        self, digest: Callable[[str], str], summary: Callable[[str], ModuleSummary | None], wanted: Sequence[str]
    ) -> dict[str, tuple[ReachedFunction, ...]] | None:
        """The reached functions of the `wanted` files; None when they have to be searched for.

        `digest` and `summary` tell what a file holds now; a summary is asked for where the digest is another one.
        """
        known = self._cache.read("reach", self._name, self._key(), _decoded)
        if known is None:
            return None
        for path, before, outline in known.files:
            if digest(path) != before:
                now = summary(path) if outline else None
                if now is None or outline_of(now) != outline:
                    return None
        found: dict[str, tuple[ReachedFunction, ...]] = {}
        for path in set(wanted) & known.reached.keys():
            now, rows = summary(path), known.reached[path]
            if now is None or not all(0 <= place < len(now.functions) for place, *_ in rows):
                return None
            found[path] = tuple(_reached(now, *row) for row in rows)
        return found

    def write(self, digest: Callable[[str], str], loaded: Mapping[str, Loaded], reached: Reached) -> None:
        """Remember what was reached in these files, those included that were asked for by name only."""
        files = [(path, each.digest or digest(path), _outline(each)) for path, each in sorted(loaded.items())]
        rows: dict[str, list[_Row]] = {}
        for path, functions in reached.items():
            summary = loaded[path].summary
            if summary is not None:
                positions = {(each.qualname, each.line): place for place, each in enumerate(summary.functions)}
                rows[path] = [
                    (positions[each.qualname, each.line], each.class_qualified, each.via, each.offered)
                    for each in functions
                ]
        self._cache.write("reach", self._name, self._key(), [files, rows])

    def _key(self) -> str:
        return hashed(*self._files)


def outline_of(summary: ModuleSummary) -> str:
    """A name for what a module says of its functions and classes, wherever in the file they stand."""
    functions = [each._replace(line=0, end_line=0, candidates=()) for each in summary.functions]
    classes = [each._replace(line=0) for each in summary.classes]
    return hashed(json.dumps([summary.bindings, summary.stars, summary.exports, functions, classes]))


def _outline(loaded: Loaded) -> str:
    return outline_of(loaded.summary) if loaded.summary is not None else ""


def _reached(summary: ModuleSummary, position: int, owner: str | None, via: str, offered: bool) -> ReachedFunction:
    function = summary.functions[position]
    return ReachedFunction(function.qualname, function.line, owner, via, offered)


def _decoded(data: Any) -> _Known:
    files, reached = data
    return _Known(
        [(str(path), str(digest), str(outline)) for path, digest, outline in files],
        {
            str(path): [
                (int(place), None if owner is None else str(owner), str(via), bool(offered))
                for place, owner, via, offered in rows
            ]
            for path, rows in reached.items()
        },
    )
