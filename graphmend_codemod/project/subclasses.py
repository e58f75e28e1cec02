"""The subclasses of each class of a project, and which of them define a method themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.project_index import ProjectIndex

_FEW = 6


class Subclasses:
    """Classes of `modules` by the qualified names of their ancestors, near and far, in the order of the modules."""

    def __init__(self, index: ProjectIndex, modules: Sequence[Module]) -> None:
        self._index = index
        self._heirs: dict[str, list[str]] = {}
        self._definers: dict[str, list[str]] = {}
        self._families: dict[str, frozenset[str]] = {}
        self._related: dict[str, set[str]] = {}
        for module in modules:
            self._relate(module)
            for item in module.summary.classes:
                qualified = f"{module.summary.name}.{item.qualname}"
                for ancestor in index.linear(qualified)[1:]:
                    self._heirs.setdefault(ancestor, []).append(qualified)
                for name in module.methods.get(item.qualname, ()):
                    self._definers.setdefault(name, []).append(qualified)

    def _relate(self, module: Module) -> None:
        own = _top(module.summary.name)
        targets = [each.target for each in module.summary.bindings if each.kind == "import"]
        for other in {_top(target.partition(":")[0]) for target in (*targets, *module.summary.stars)}:
            self._related.setdefault(own, {own}).add(other)
            self._related.setdefault(other, {other}).add(own)

    def of(self, owner: str) -> Sequence[str]:
        """All subclasses of a class."""
        return self._heirs.get(owner, ())

    def family(self, owner: str) -> frozenset[str]:
        """A class with its ancestors and its subclasses."""
        if owner not in self._families:
            self._families[owner] = frozenset((*self._index.linear(owner), *self.of(owner)))
        return self._families[owner]

    def with_method(self, owner: str, name: str) -> Iterable[str]:
        """Subclasses that may define `name` themselves, in order."""
        heirs, definers = self.of(owner), self.definers(name)
        if len(heirs) <= len(definers):
            return heirs
        return [definer for definer in definers if owner in self._index.linear(definer) and definer != owner]

    def definers(self, name: str) -> Sequence[str]:
        """All classes that define a method of this name themselves, in order."""
        return self._definers.get(name, ())

    def one_family(self, name: str, package: str, *, called: bool) -> Sequence[str]:
        """The class to look a method up in by its name alone, where that and its subclasses are all that define it.

        Classes of packages that the caller's top-level `package` does not import, nor they it, matter where no others
        define it. What is read and not called is a property; those that classes with a common ancestor define are all
        named.
        """
        near = self._related.get(package, {package})
        definers = [each for each in self.definers(name) if _top(each) in near] or self.definers(name)
        if not definers:
            return ()
        lines = [self._index.linear(each) for each in definers]
        if called:
            first = definers[min(range(len(lines)), key=lambda place: len(lines[place]))]
            return (first,) if all(first in line for line in lines) else ()
        methods = (self._index.own_method(each, name) for each in definers)
        shared = (each for each in lines[0] if self._index.class_summary(each) is not None)
        related = len(lines) <= _FEW and any(all(each in line for line in lines) for each in shared)
        return definers if related and all(each is not None and each[1].is_property for each in methods) else ()


def _top(name: str) -> str:
    return name.partition(".")[0]
