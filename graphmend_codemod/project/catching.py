"""Files without torch in which an exception may be caught: by their bytes first, so that few of them are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.outside import may_handle
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.context_managers import LEAVES, SWALLOWS, THROUGH

_OF_PYTHON = frozenset({"suppress", "ExitStack", "contextmanager", *LEAVES})
"""What a file spells that uses a context manager of Python's own which swallows exceptions, or that makes one."""


def catching_modules(index: ProjectIndex, searched: Sequence[Module], traced: Iterable[str]) -> list[Module]:
    """Modules beside those that were searched whose functions may catch an exception, and some more, by path.

    Those at the paths where Dynamo goes are among them: a handler for anything counts there.
    """
    others = list(index.others())  # until this returns: reading all of them for each round of names takes longer
    paths = {*traced, *(path for path, raw in others if may_handle(raw))}
    found = _loaded(index, searched, paths)
    names, asked = set(_OF_PYTHON), set[str]()
    while new := names - asked:
        words = [name.encode() for name in new]
        paths.update(path for path, raw in others if path not in paths and any(word in raw for word in words))
        found = _loaded(index, searched, paths)
        asked |= names
        for module in (*searched, *found):
            names.update(_swallowers(module, names))
    return found


def _loaded(index: ProjectIndex, searched: Sequence[Module], paths: Iterable[str]) -> list[Module]:
    known = {module.summary.path for module in searched}
    wanted = (path for path in sorted(paths) if path not in known)
    return [module for path in wanted if (module := index.module_at(path)) is not None]


def _swallowers(module: Module, names: set[str]) -> Iterator[str]:
    """Names in a module for context managers that may swallow an exception, and for what has one of these names."""
    for function in module.summary.functions:
        if any(mark == SWALLOWS or mark.startswith(THROUGH) for mark in function.returned):
            yield _last(function.owner if function.name in LEAVES else function.name)
    for item in module.summary.classes:
        if any(_last(base) in names for base in item.bases):
            yield _last(item.qualname)
        for attribute in item.attributes:
            if _last(attribute.value.spelled) in names:
                yield f"self.{attribute.name}"
    for binding in module.summary.bindings:
        meant = binding.target if binding.value is None else binding.value.spelled
        if _last(meant.rpartition(":")[2]) in names:
            yield binding.name


def _last(name: str) -> str:
    return name.rpartition(".")[2]
