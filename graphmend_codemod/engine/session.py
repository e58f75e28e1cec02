"""The state of a project's texts during one run, and the findings in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.discovery import discover, gives_scripts
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile, read_bytes
from graphmend_codemod.engine.analyze import Analysed, Task, analyse, as_if_reached, in_order, with_candidates
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.loading import Loaded, digest_of, load, of_source, recalled
from graphmend_codemod.project.summary.records import ModuleSummary

if TYPE_CHECKING:
    from graphmend_codemod.core.cache import Cache
    from graphmend_codemod.engine.cached_results import ResultCache
    from graphmend_codemod.engine.known_project import KnownProject
    from graphmend_codemod.project.index.definitions import Module
    from graphmend_codemod.project.index.dependency_tracking import Answers, Question
    from graphmend_codemod.project.index.facts import ReachedFunction
    from graphmend_codemod.project.index.project_index import ProjectIndex

    Reached = dict[str, tuple[ReachedFunction, ...]]

MOST_FILES_BY_NAME = 60
_FEWEST_FOR_WORKERS = MOST_FILES_BY_NAME + 1


class Found(NamedTuple):
    """Findings in order of path and position, and what kept files from being checked."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()


class Checker:
    """Checks files of one project. Texts put over those on disk count in their place.

    A small number of files that were named is judged by itself first; the whole project is read only when a finding
    stands in a function of which these files do not show that `forward` reaches it. With `remember`, a second check
    analyses only the files for which something changed.
    """

    def __init__(self, settings: Settings, *, jobs: int = 1, cache: bool = False, remember: bool = False) -> None:
        self._settings = settings
        self._root = settings.root.absolute()
        self._folder = str(self._root)
        self._jobs = jobs
        self._cached = cache
        self._remember = remember
        self._overlay: dict[str, SourceFile] = {}
        self._kept: dict[str, SourceFile] = {}
        self._loaded: dict[str, Loaded] = {}
        self._files: tuple[str, ...] | None = None
        self._known: KnownProject | None = None
        self._questions: tuple[Question, ...] = ()

    @cached_property
    def _cache(self) -> Cache | None:
        if not self._cached:
            return None
        from graphmend_codemod.core.cache import Cache

        return Cache(self._root)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know and need not act on: a cache that was there and was not used."""
        cache = self.__dict__.get("_cache")
        return (cache.refused,) if cache is not None and cache.refused is not None else ()

    @cached_property
    def _memory(self) -> ResultCache | None:
        if not self._remember and self._cache is None:
            return None
        from graphmend_codemod.engine.cached_results import ResultCache

        # Fixes are never made from what a cache says that came with the repository.
        return ResultCache(self._settings, None if self._remember else self._cache)

    def overlay(self, source: SourceFile) -> None:
        """Let `source` stand in place of the file at its path."""
        self._overlay[source.path] = source
        self._kept.pop(source.path, None)
        self._loaded.pop(source.path, None)

    def source(self, path: str) -> SourceFile:
        """The text at `path` as this run sees it; SourceError if it cannot be read."""
        over = self._overlay.get(path) or self._kept.get(path)
        return over if over is not None else SourceFile.below(self._folder, path)

    def check(self, files: Sequence[str], *, named: bool) -> Found:
        """Findings in `files`."""
        few = named and len(files) <= MOST_FILES_BY_NAME
        if few:
            found = self._by_name(files) if self._known is None else None
            if found is not None:
                return found
            for path in files:
                self._loaded.pop(path, None)
            self._kept.clear()
        return self._in_project(files, few=few)

    def decides_alone(self, files: Sequence[str]) -> bool:
        """True when a few named files tell by themselves what is found in them, without a look at who calls them."""
        return self._by_name(files) is not None

    # -- loading -------------------------------------------------------------------------------------------------

    def _load(self, path: str, *, wanted: bool = False) -> Loaded:
        loaded = self._loaded.get(path)
        if loaded is None or (wanted and loaded.summary is None and loaded.problem is None):
            over = self._overlay.get(path)
            if over is not None:
                loaded = of_source(over, wanted=wanted)
            else:
                loaded = load(path, self._folder, wanted=wanted, cache=self._cache)
            self._loaded[path] = loaded
        return loaded

    def _load_many(self, paths: Sequence[str]) -> None:
        missing = [path for path in paths if path not in self._loaded and path not in self._overlay]
        if self._jobs > 1 and len(missing) >= _FEWEST_FOR_WORKERS:
            if self._cache is not None and self._cache.holds("summaries"):
                for path in missing:
                    known = recalled(path, self._folder, self._cache)
                    if known is not None:
                        self._loaded[path] = known
                missing = [path for path in missing if path not in self._loaded]
            if len(missing) < _FEWEST_FOR_WORKERS:
                return
            from graphmend_codemod.engine import parallel

            for loaded in parallel.load_all(missing, self._root, self._cache, self._jobs):
                self._loaded[loaded.path] = loaded

    def _keep_texts(self, paths: Iterable[str]) -> None:
        """Read a few files once and for all: what is in memory needs no digest to be known again."""
        for path in paths:
            if path not in self._overlay and path not in self._loaded:
                try:
                    self._kept[path] = SourceFile.below(self._folder, path)
                except SourceError as error:
                    self._loaded[path] = Loaded(path, "", problem=Problem(path, str(error), error.line))
            if path not in self._loaded:
                self._loaded[path] = of_source(self.source(path), kept=True)

    def _index(self, layout: PackageLayout, files: Iterable[str]) -> ProjectIndex:
        from graphmend_codemod.project.index.project_index import ProjectIndex

        def on_demand(path: str) -> ModuleSummary | None:
            return self._load(path, wanted=True).placed(layout)

        index = ProjectIndex(layout, on_demand, self._settings.module_bases)
        index.look_for_scripts(self._with_scripts)
        for path in files:
            summary = self._load(path).placed(layout)
            if summary is not None:
                index.add(summary)
        return index

    def _with_scripts(self) -> list[str]:
        """Files of the project whose text has the words of a call of TorchScript."""
        files = self._files if self._files is not None else discover((), self._settings).files
        return [path for path in files if b"jit" in (raw := self._raw(path)) and gives_scripts(raw)]

    def _raw(self, path: str) -> bytes:
        """The bytes of a file; none of one that cannot be read, or is too large to be."""
        try:
            return self.source(path).raw if path in self._overlay else read_bytes(self._root / path)
        except SourceError:
            return b""

    def _text(self, path: str) -> str:
        """The text of a file; nothing of one that cannot be read."""
        try:
            return self.source(path).text
        except SourceError:
            return ""

    def _reached(self, index: ProjectIndex, paths: Iterable[str]) -> Reached:
        from graphmend_codemod.project.reach import Search

        matter = (path for path in paths if self._load(path).matters)
        modules = [module for path in matter if (module := index.module_at(path)) is not None]
        search = Search(index, modules, self._settings.seen_functions)
        search.run()
        return search.result()

    # -- a few files ---------------------------------------------------------------------------------------------

    def _by_name(self, files: Sequence[str]) -> Found | None:
        """Findings in a few files without a look at the project; None when it takes that look to tell."""
        layout = PackageLayout(self._root)
        self._keep_texts(files)
        summaries = [summary for path in files if (summary := self._load(path).placed(layout)) is not None]
        functions: Reached = {summary.path: as_if_reached(summary, self._settings) for summary in summaries}
        if not any(functions.values()):
            return Found((), self._problems(files))
        index = self._index(layout, files)
        functions = {path: _traced(index, path, every) for path, every in functions.items()}
        reached: Reached | None = None
        if any(_is_given_self(each) for every in functions.values() for each in every):
            reached = self._reached(index, files)
            functions = {path: _known_better(every, reached.get(path, ())) for path, every in functions.items()}
        from graphmend_codemod.project.index.facts import NeedsProject

        try:
            found = self._find(functions, index, None)
        except NeedsProject:
            return None
        if not found.findings:
            return Found((), self._problems(files, found.problems))
        reached = self._reached(index, files) if reached is None else reached
        sure = {(path, each.qualname) for path, every in reached.items() for each in every}
        if any((each.path, each.function) not in sure for each in found.findings):
            return None
        return Found(found.findings, self._problems(files, found.problems))

    # -- the whole project ---------------------------------------------------------------------------------------

    def _in_project(self, files: Sequence[str], *, few: bool) -> Found:
        if self._files is None:
            self._files = tuple(sorted({*discover((), self._settings).files, *files}))
        every = self._files
        found = self._in_what_is_known(every, files) if few else None
        if found is not None:
            return found
        run = None
        if self._cache is not None and not self._remember:
            from graphmend_codemod.engine.cached_results import WholeRun

            run = WholeRun(self._cache, self._settings, files, {path: self._digest(path) for path in every})
            remembered = run.read(self._digest)
            if remembered is not None:
                return Found(remembered.findings, remembered.problems)
        self._load_many(every)
        index = self._index(PackageLayout(self._root, every), every)
        matter = [path for path in every if self._load(path).matters]
        others = sorted(set(every).difference(matter))
        project = index.has_every_file(matter, lambda: ((path, self._raw(path)) for path in others), self._text)
        known = self._known if few else None
        reached = known.everywhere(self._loaded) if known is not None else None
        project.has_reached(reached := self._reached(index, every) if reached is None else reached)
        if known is not None:
            known.looked(index, project, self._loaded)
        found = self._find(self._worth(reached, index, files), index, self._memory)
        if known is not None:
            known.keep(self._questions, index, self._loaded)
        found = Found(found.findings, self._problems(files, found.problems))
        if run is not None:
            run.write(found.findings, found.problems, {path: loaded.digest for path, loaded in self._loaded.items()})
        return found

    # -- a few files in a project that is known ------------------------------------------------------------------

    def _in_what_is_known(self, every: Sequence[str], files: Sequence[str]) -> Found | None:
        """Findings by what is known of the project; None when they depend on files that were not read for it."""
        from graphmend_codemod.project.index.facts import NeedsProject

        if self._known is None:
            from graphmend_codemod.engine.known_project import KnownProject, Texts

            texts = Texts(lambda path: self._load(path, wanted=True), self._digest, self._text)
            self._known = KnownProject(texts, self._settings, self._cache, every)
        index = self._index(self._known.layout, files)
        reached = self._known.answers(index, files, self._overlay)
        if reached is None:
            return None
        try:
            found = self._find(self._worth(reached, index, files), index, self._memory)
        except NeedsProject:
            return None
        self._known.keep(self._questions, index, self._loaded)
        return Found(found.findings, self._problems(files, found.problems))

    def _digest(self, path: str) -> str:
        if path in self._overlay:
            return digest_of(self._overlay[path].raw)
        try:
            return digest_of(read_bytes(os.path.join(self._folder, path)))
        except SourceError:
            return ""

    # -- analysing -----------------------------------------------------------------------------------------------

    def _worth(self, reached: Reached, index: ProjectIndex, files: Iterable[str]) -> Reached:
        """The functions that are reached in these files and that hold candidates."""
        modules = self._modules(index, set(files).intersection(reached))
        return {
            path: worth
            for path, module in modules
            if (worth := with_candidates(module.summary, reached[path], self._settings))
        }

    def _modules(self, index: ProjectIndex, paths: Iterable[str]) -> Iterator[tuple[str, Module]]:
        for path in sorted(paths):
            module = index.module_at(path)
            if module is not None:
                yield path, module

    def _tasks(self, functions: Reached) -> list[Task]:
        return [Task(path, self._load(path).digest, every) for path, every in sorted(functions.items()) if every]

    def _find(self, functions: Reached, index: ProjectIndex, memory: ResultCache | None) -> Found:
        tasks = self._tasks(functions)
        if memory is None:
            return _found(self._analyse_each(tasks, index, None))
        answers = memory.answers(index)
        known = {task.path: result for task in tasks if (result := memory.recall(task, answers)) is not None}
        todo = [task for task in tasks if task.path not in known]
        for task, result in zip(todo, self._analyse_each(todo, index, answers), strict=True):
            memory.keep(task, result)
            known[task.path] = result
        self._questions = tuple(question for task in tasks for question, _ in known[task.path].answers)
        return _found(known[task.path] for task in tasks)

    def _analyse_each(self, tasks: Sequence[Task], index: ProjectIndex, answers: Answers | None) -> Iterable[Analysed]:
        if self._jobs == 1 or len(tasks) < _FEWEST_FOR_WORKERS:
            return (self._analyse(task, index, answers) for task in tasks)
        from graphmend_codemod.engine.parallel import Scene, analyse_all

        scene = Scene(self._settings, self._files or (), self._overlay, answers is not None, index.every)
        results = analyse_all(tasks, self._jobs, scene, index, list(self._loaded.values()))
        return sorted(results, key=lambda each: each.path)

    def _analyse(self, task: Task, index: ProjectIndex, answers: Answers | None) -> Analysed:
        try:
            source = self.source(task.path)
        except SourceError as error:
            return Analysed(task.path, problem=Problem(task.path, str(error), error.line))
        return analyse(task, source, index, self._settings, answers)

    def _problems(self, files: Iterable[str], more: Iterable[Problem] = ()) -> tuple[Problem, ...]:
        return in_order([*(self._load(path).problem for path in files), *more])


def _found(results: Iterable[Analysed]) -> Found:
    ordered = list(results)
    return Found(tuple(each for one in ordered for each in one.findings), in_order(one.problem for one in ordered))


def _is_given_self(function: ReachedFunction) -> bool:
    return function.class_qualified is None and "." in function.qualname


def _traced(index: ProjectIndex, path: str, functions: tuple[ReachedFunction, ...]) -> tuple[ReachedFunction, ...]:
    """The functions without those that no graph can hold: constructors of modules, and what a decorator keeps out."""
    module = index.module_at(path)
    if module is None:
        return functions
    summaries = {(each.qualname, each.line): each for each in module.summary.functions}
    return tuple(each for each in functions if not index.is_kept_out(module, summaries[each.qualname, each.line]))


def _known_better(
    functions: tuple[ReachedFunction, ...], reached: tuple[ReachedFunction, ...]
) -> tuple[ReachedFunction, ...]:
    known = {(each.qualname, each.line): each for each in reached}
    return tuple(known.get((each.qualname, each.line), each) for each in functions)
