"""Loading and analysing in worker processes; results come in the same order whatever the number of workers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.core.cache import Cache
from graphmend_codemod.core.findings import Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.core.workers import Workers, inherited
from graphmend_codemod.engine.analyze import Analysed, Task, analyse, by_weight
from graphmend_codemod.project.index.dependency_tracking import Answers
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.loading import Loaded, encode, load, of_source, without_cyclic_collector
from graphmend_codemod.project.summary.records import ModuleSummary

_PARTS_A_WORKER = 16  # the last ones end at about the same time


@dataclass(frozen=True)
class Shelf:
    """Encoded summaries in one file, for workers to take what they need. Slices are (offset, length) by path."""

    path: str
    slices: Mapping[str, tuple[int, int]]
    digests: Mapping[str, str]

    def take(self, path: str) -> Loaded | None:
        """The summary of a module, None if it is not there."""
        place = self.slices.get(path)
        if place is None:
            return None
        with open(self.path, "rb") as file:
            file.seek(place[0])
            text = file.read(place[1]).decode("utf-8", "surrogatepass")
            return Loaded(path, self.digests[path], encoded=text).decoded()


@contextmanager
def shelved(loaded: Sequence[Loaded]) -> Iterator[Shelf]:
    """Put summaries on a shelf that is gone afterwards."""
    handle, path = tempfile.mkstemp(prefix="graphmend-", suffix=".json")
    try:
        slices: dict[str, tuple[int, int]] = {}
        with open(handle, "wb") as file:
            for each in loaded:
                text = each.encoded
                if text is None and each.summary is not None:
                    text = encode(each.summary)
                if text is not None:
                    raw = text.encode("utf-8", "surrogatepass")
                    slices[each.path] = (file.tell(), len(raw))
                    file.write(raw)
        yield Shelf(path, slices, {each.path: each.digest for each in loaded})
    finally:
        os.unlink(path)


def load_all(paths: Sequence[str], root: Path, cache: Cache | None, jobs: int) -> Iterator[Loaded]:
    """Load files, in no particular order."""
    with Workers(jobs) as workers:
        own, *parts = _by_size(paths, root, jobs * _PARTS_A_WORKER)
        results = workers.run(_load_part, ((part, root, cache) for part in parts))
        # Workers take a while to start: this process has done its part before the first of theirs is there.
        yield from (load(path, str(root), cache=cache) for path in own)
        for part in results:
            yield from (each.decoded() for each in part)


def _by_size(paths: Sequence[str], root: Path, parts: int) -> list[list[str]]:
    sizes = {path: _size(root / path) for path in paths}
    dealt: list[list[str]] = [[] for _ in range(parts)]
    totals = [0] * parts
    for path in sorted(paths, key=lambda each: (-sizes[each], each)):
        lightest = totals.index(min(totals))
        dealt[lightest].append(path)
        totals[lightest] += sizes[path] + 1
    return [part for part in dealt if part]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _load_part(paths: Sequence[str], root: Path, cache: Cache | None) -> list[Loaded]:
    results = []
    with without_cyclic_collector():
        for path in paths:
            loaded = load(path, str(root), cache=cache)
            encoded = None if loaded.summary is None else encode(loaded.summary)
            results.append(loaded._replace(summary=None, encoded=encoded))
    return results


@dataclass(frozen=True)
class Scene:
    """All that a worker needs to know of the project. `texts` stand in place of the files on disk.

    `every` are all files that matter, if they were read.
    """

    settings: Settings
    files: tuple[str, ...]
    texts: Mapping[str, SourceFile]
    remember: bool
    every: tuple[str, ...] | None

    def _others(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(set(self.files).difference(self.every or ())):
            source = read(path, self.settings.root.absolute(), self.texts)
            if not isinstance(source, Problem):
                yield path, source.raw

    def _text(self, path: str) -> str:
        source = read(path, self.settings.root.absolute(), self.texts)
        return "" if isinstance(source, Problem) else source.text

    def index(self, shelf: Shelf) -> ProjectIndex:
        """An index that takes summaries from the shelf."""
        root = self.settings.root.absolute()
        layout = PackageLayout(root, self.files)

        def on_demand(path: str) -> ModuleSummary | None:
            loaded = shelf.take(path)
            if loaded is None:
                over = self.texts.get(path)
                loaded = load(path, str(root), wanted=True) if over is None else of_source(over, wanted=True)
            return loaded.placed(layout)

        index = ProjectIndex(layout, on_demand, self.settings.module_bases)
        if self.every is not None:
            index.has_every_file(self.every, self._others, self._text)
        return index


def analyse_all(
    tasks: Sequence[Task], jobs: int, scene: Scene, index: ProjectIndex, loaded: Sequence[Loaded]
) -> Iterator[Analysed]:
    """Analyse files, in no particular order.

    Forked workers have `index` as it is. Others take what was loaded from a shelf and build up an index of their own.
    """
    with Workers(jobs, (scene, index)) as workers:
        if workers.forks:
            for part in workers.run(_analyse_here, ((part,) for part in by_weight(tasks, jobs * _PARTS_A_WORKER))):
                yield from part
            return
        with shelved(loaded) as shelf:
            for part in workers.run(_analyse_part, ((part, scene, shelf) for part in by_weight(tasks, jobs))):
                yield from part


def _analyse_here(tasks: Sequence[Task]) -> list[Analysed]:
    scene, index = inherited()
    return _analyse_all(tasks, scene, index)


def _analyse_part(tasks: Sequence[Task], scene: Scene, shelf: Shelf) -> list[Analysed]:
    with without_cyclic_collector():
        return _analyse_all(tasks, scene, scene.index(shelf))


def _analyse_all(tasks: Sequence[Task], scene: Scene, index: ProjectIndex) -> list[Analysed]:
    results = []
    with without_cyclic_collector():
        answers = Answers(index) if scene.remember else None
        for task in tasks:
            source = read(task.path, scene.settings.root.absolute(), scene.texts)
            if isinstance(source, Problem):
                results.append(Analysed(task.path, problem=source))
            else:
                results.append(analyse(task, source, index, scene.settings, answers))
    return results


def read(path: str, root: Path, texts: Mapping[str, SourceFile]) -> SourceFile | Problem:
    """The text at `path`: the one in its place, or the one on disk."""
    over = texts.get(path)
    if over is not None:
        return over
    try:
        return SourceFile.below(str(root), path)
    except SourceError as error:
        return Problem(path, str(error), error.line)
