"""The classes that inherit from one, in files without torch or modules of their own as well.

Nobody parses such a file to find something in it. The names in its text tell whether it may hold an heir.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend_codemod.project.index.definitions import Module

_CLASS = re.compile(rb"^[ \t]*class[ \t]+([A-Za-z_]\w*)[ \t]*\(([^)]*)\)", re.MULTILINE)
_IMPORTED = re.compile(rb"^[ \t]*(?:from[ \t][^\n;#(]*\bimport[ \t]*\([^)]*\)|from[ \t].*|import[ \t].*)", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")


class Heirs:
    """Who inherits from what. `linear` gives a class with all that it inherits from, `at` loads the file of a path."""

    def __init__(
        self,
        modules: Iterable[Module],
        others: Callable[[], Iterable[tuple[str, bytes]]],
        at: Callable[[str], Module | None],
        linear: Callable[[str], Iterable[str]],
    ) -> None:
        self._others, self._at, self._linear = others, at, linear
        self._texts: list[tuple[str, set[bytes], set[bytes]]] | None = None
        self._known: dict[str, list[str]] = {}
        self._found: dict[str, tuple[str, ...]] = {}
        for module in modules:
            for own, ancestors in self._classes(module):
                for ancestor in ancestors:
                    self._known.setdefault(ancestor, []).append(own)

    def of(self, qualified: str) -> tuple[str, ...]:
        """The heirs of a class, direct or not, in order."""
        if qualified not in self._found:
            known = self._known.get(qualified, [])
            near = self._near({each.rpartition(".")[2].encode() for each in (qualified, *known)})
            modules = (module for path in near if (module := self._at(path)) is not None)
            more = (own for module in modules for own, ancestors in self._classes(module) if qualified in ancestors)
            self._found[qualified] = tuple(sorted({*known, *more}))
        return self._found[qualified]

    def _classes(self, module: Module) -> Iterator[tuple[str, list[str]]]:
        """The classes of a module that have bases, with all that each inherits from."""
        for item in module.summary.classes:
            if item.bases:
                own = f"{module.summary.name}.{item.qualname}"
                yield own, [each for each in self._linear(own) if each != own]

    def _classes_of_others(self) -> list[tuple[str, set[bytes], set[bytes]]]:
        """The other files with a class that has bases: their path, the names of such classes, the names in the bases
        and imports."""
        if self._texts is None:
            found = ((path, *_named(raw)) for path, raw in self._others() if b"class" in raw)
            self._texts = [each for each in found if each[1]]
        return self._texts

    def _near(self, names: set[bytes]) -> list[str]:
        """The paths of other files with a class that may inherit from one of these names, or from such a class."""
        left, paths, near = self._classes_of_others(), list[str](), True
        while near:
            found = [each for each in left if not names.isdisjoint(each[2])]
            near = bool(found)
            paths += [path for path, _, _ in found]
            names = names.union(*(classes for _, classes, _ in found))
            left = [each for each in left if each[0] not in paths]
        return sorted(paths)


def _named(raw: bytes) -> tuple[set[bytes], set[bytes]]:
    """The names of classes with bases, and the words that may be one of these bases or another name for it."""
    found = _CLASS.findall(raw)
    parts = [bases for _, bases in found]
    parts += _IMPORTED.findall(raw) if found else []
    return {name for name, _ in found}, {word for part in parts for word in _WORD.findall(part)}
