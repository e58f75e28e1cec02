"""The subclasses of each class of a project, and which of them define a method themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.project_index import ProjectIndex


class Subclasses:
    """Classes of `modules` by the qualified names of their ancestors, near and far, in the order of the modules."""

    def __init__(self, index: ProjectIndex, modules: Sequence[Module]) -> None:
        self._index = index
        self._heirs: dict[str, list[str]] = {}
        self._definers: dict[str, list[str]] = {}
        for module in modules:
            for item in module.summary.classes:
                qualified = f"{module.summary.name}.{item.qualname}"
                for ancestor in index.linear(qualified)[1:]:
                    self._heirs.setdefault(ancestor, []).append(qualified)
                for name in module.methods.get(item.qualname, ()):
                    self._definers.setdefault(name, []).append(qualified)

    def of(self, owner: str) -> Sequence[str]:
        """All subclasses of a class."""
        return self._heirs.get(owner, ())

    def with_method(self, owner: str, name: str) -> Iterable[str]:
        """Subclasses that may define `name` themselves, in order."""
        heirs, definers = self.of(owner), self.definers(name)
        if len(heirs) <= len(definers):
            return heirs
        return [definer for definer in definers if owner in self._index.linear(definer) and definer != owner]

    def definers(self, name: str) -> Sequence[str]:
        """All classes that define a method of this name themselves, in order."""
        return self._definers.get(name, ())
