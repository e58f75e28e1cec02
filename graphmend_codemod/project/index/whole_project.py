"""Questions of rules that take a look at every file of the project, answered by that look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.facts import Home, ReachedFunction
from graphmend_codemod.project.summary.quiet import LOUD
from graphmend_codemod.project.summary.records import Write

if TYPE_CHECKING:
    from graphmend_codemod.project.index.heirs import Heirs
    from graphmend_codemod.project.index.project_index import ProjectIndex

Others = Callable[[], Iterable[tuple[str, bytes]]]


class ProjectView(Protocol):
    """Who answers; see `IndexView` for the questions. NeedsProject where an answer takes files that were not read."""

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""

    def writing_callers(self, qualified: str) -> tuple[str, ...]:
        """The paths of `IndexView.writing_callers`."""

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""


class WholeProject:
    """The modules at the paths `every` are all that matter; `others` tells of all other files, at every call anew.

    What takes a search is found when it is asked for, and kept.
    """

    def __init__(self, index: ProjectIndex, every: Iterable[str], others: Others) -> None:
        self.every = tuple(sorted(every))
        self.others = others
        self._index = index
        self._loud: frozenset[str] | None = None
        self._reached: Mapping[str, Sequence[ReachedFunction]] | None = None
        self._caught: Mapping[tuple[str, str, int], str] | None = None
        self._scripted: frozenset[tuple[str, str, int]] | None = None
        self._heirs: Heirs | None = None
        self._users: dict[str, tuple[str, ...]] = {}
        self._renamed: dict[str, set[str]] = {}
        self._by_last_name: dict[str, list[Module]] | None = None
        self._writers: dict[str, list[tuple[str, Write]]] | None = None
        self._may_write: dict[str, list[str]] = {}
        self._writing_callers: dict[str, tuple[str, ...]] = {}

    def _all(self) -> list[Module]:
        return [module for path in self.every if (module := self._index.module_at(path)) is not None]

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""
        if self._heirs is None:
            from graphmend_codemod.project.index.heirs import Heirs  # few files ask

            self._heirs = Heirs(self._all(), self.others, self._index.module_at, self._index.linear)
        return self._heirs.of(qualified)

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""
        if qualified not in self._users:
            home = self._index.entity(qualified)
            known_by = self.names_of(qualified.rpartition(".")[2])
            mentions = self._mentions()
            near = {each.summary.path: each for name in known_by for each in mentions.get(name, ())}
            near |= {each.summary.path: each for each in self._all() if each.summary.stars}
            self._users[qualified] = tuple(
                path
                for path, module in sorted(near.items())
                if not module.summary.package
                and (home is None or path != home[0].summary.path)
                and any(name == qualified for name in self._named(module, known_by))
            )
        return self._users[qualified]

    def _mentions(self) -> dict[str, list[Module]]:
        """The modules that import something under a name, or spell it behind a dot, by that name."""
        if self._by_last_name is None:
            self._by_last_name = {}
            for module in self._all():
                summary = module.summary
                targets = [each.target for each in summary.bindings if each.kind == "import"]
                targets += [target for each in summary.functions for _, target in each.imports]
                names = {target.rpartition(":")[2] for target in targets}
                spelled = [ref for each in summary.functions for ref in each.refs if "." in ref]
                spelled += [base for each in summary.classes for base in each.bases if "." in base]
                names.update([each.removesuffix("()").rpartition(".")[2] for each in spelled])
                for name in names:
                    self._by_last_name.setdefault(name, []).append(module)
        return self._by_last_name

    def writing_callers(self, qualified: str) -> tuple[str, ...]:
        """See `ProjectView.writing_callers`."""
        if qualified not in self._writing_callers:
            names = self.names_of(qualified.rpartition(".")[2])
            found = writing(self._index, self.users(qualified), names, self.reached)
            self._writing_callers[qualified] = found
        return self._writing_callers[qualified]

    def names_of(self, name: str) -> frozenset[str]:
        """A name, with those by which modules of the project import what they find under it."""
        if not self._renamed:
            for module in self._all():
                for binding in module.summary.bindings:
                    if binding.kind == "import" and not binding.target.endswith(binding.name):
                        self._renamed.setdefault(binding.target.rpartition(":")[2], set()).add(binding.name)
        todo, found = [name], set[str]()
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                todo += self._renamed.get(each, ())
        return frozenset(found)

    def _named(self, module: Module, names: frozenset[str]) -> Iterator[str | None]:
        """What a module imports under one of these names, or names so behind a module that it imports.

        What a star import binds, only the text of the module tells.
        """
        for name in names if module.summary.stars else ():
            if self._index.spells(module.summary.path, name):
                yield self._index.resolve(module.summary.name, name)
        targets = [each.target for each in module.summary.bindings if each.kind == "import" and not each.for_types]
        targets += [target for each in module.summary.functions for _, target in each.imports]
        for target in targets:
            if target.rpartition(":")[2] in names and ":" in target:
                yield self._index.imported(module, target)
        spelled = [ref.removesuffix("()") for each in module.summary.functions for ref in each.refs]
        spelled += [base for each in module.summary.classes for base in each.bases]
        for name in spelled:
            root, dot, last = name.rpartition(".")
            if dot and last in names and root not in {"self", "?", "super()"}:
                yield self._index.resolve(module.summary.name, name)

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""
        if self._scripted is None:
            from graphmend_codemod.project.scripted import scripted_functions

            self._scripted = scripted_functions(self._index, self._all())
        return (path, qualname, line) in self._scripted

    def has_reached(self, reached: Mapping[str, Sequence[ReachedFunction]]) -> None:
        """Say what was reached, where that was searched for already."""
        self._reached = reached

    @property
    def reached(self) -> Mapping[str, Sequence[ReachedFunction]]:
        """All reached functions by path."""
        if self._reached is None:
            from graphmend_codemod.project.reach import reached_functions

            self._reached = reached_functions(self._index, self._all())
        return self._reached

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""
        if self._caught is None:
            from graphmend_codemod.project.caught import caught_functions

            self._caught = caught_functions(self._index, self._all(), self.reached)
        return self._caught.get((path, qualname, line))

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""
        if self._loud is None:
            functions = (each for module in self._all() for each in module.summary.functions)
            self._loud = frozenset(each.name for each in functions if LOUD in each.returned)
        return name in self._loud

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""
        ends = (f".{attribute}", f".{attribute}()")
        return tuple(
            module.summary.path
            for module in self._all()
            if any(ref.endswith(ends) for function in module.summary.functions for ref in function.refs)
        )

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""
        if self._writers is None:
            known: dict[str, list[tuple[str, Write]]] = {}
            for module in self._all():
                for write in module.summary.writes:
                    known.setdefault(write.name, []).append((module.summary.path, self._write(module, write)))
            self._writers = known
            from graphmend_codemod.project.index.outside import may_write

            for path, raw in self.others():
                for name in may_write(raw):
                    self._may_write.setdefault(name, []).append(path)
        for path in self._may_write.pop(attribute, ()):
            other = self._index.module_at(path)
            found = [self._write(other, each) for each in other.summary.writes] if other is not None else []
            self._writers.setdefault(attribute, []).extend((path, each) for each in found if each.name == attribute)
        return tuple(self._writers.get(attribute, ()))

    def _write(self, module: Module, write: Write) -> Write:
        """With the class resolved that the receiver is known to be of."""
        return write._replace(of=self._index.resolve(module.summary.name, write.of) or "") if write.of else write


def writing(
    index: ProjectIndex,
    users: Iterable[str],
    names: Collection[str],
    reached: Mapping[str, Sequence[ReachedFunction]],
) -> tuple[str, ...]:
    """The files among `users` in which a reached function, known by one of these names, looks as if it wrote."""
    from graphmend_codemod.project.index.writing_functions import writes_and_names  # few functions ask

    found = [module for path in users if (module := index.module_at(path)) is not None]
    return tuple(
        each.summary.path
        for each in found
        if writes_and_names(each, names, reached.get(each.summary.path, ()), index.text_of)
    )


def homes(index: ProjectIndex, paths: Iterable[str]) -> tuple[Home, ...]:
    """The modules at these paths with their texts."""
    found = [module for path in paths if (module := index.module_at(path)) is not None]
    return tuple(Home(each.summary.name, index.text_of(each)) for each in found)
