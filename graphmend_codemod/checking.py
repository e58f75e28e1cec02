"""The state of a project's texts during one run, and the findings in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmend_codemod.analysing import as_if_reached, findings_in, with_candidates
from graphmend_codemod.discovery import discover
from graphmend_codemod.findings import Finding, Problem
from graphmend_codemod.project.facts import ReachedFunction
from graphmend_codemod.project.index import ProjectIndex
from graphmend_codemod.project.loading import Loaded, digest_of, load, of_source, without_cyclic_collector
from graphmend_codemod.project.modules import Layout
from graphmend_codemod.project.summary import ModuleSummary
from graphmend_codemod.settings import Settings
from graphmend_codemod.source import SourceError, SourceFile

MOST_FILES_BY_NAME = 60


@dataclass(frozen=True)
class Found:
    """Findings in order of path and position, and what kept files from being checked."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()


class Checker:
    """Checks files of one project. Texts put over those on disk count in their place.

    A small number of files that were named is judged by itself first; the whole project is read only when a finding
    stands in a function of which these files do not show that `forward` reaches it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._root = settings.root.absolute()
        self._overlay: dict[str, SourceFile] = {}
        self._loaded: dict[str, Loaded] = {}

    def overlay(self, source: SourceFile) -> None:
        """Let `source` stand in place of the file at its path."""
        self._overlay[source.path] = source
        self._loaded.pop(source.path, None)

    def source(self, path: str) -> SourceFile:
        """The text at `path` as this run sees it; SourceError if it cannot be read."""
        over = self._overlay.get(path)
        return over if over is not None else SourceFile.read(self._root / path, self._root)

    def check(self, files: Sequence[str], *, named: bool) -> Found:
        """Findings in `files`."""
        with without_cyclic_collector():
            if named and len(files) <= MOST_FILES_BY_NAME:
                found = self._by_name(files)
                if found is not None:
                    return found
            return self._in_project(files)

    # -- stages --------------------------------------------------------------------------------------------------

    def _load(self, path: str, *, wanted: bool = False) -> Loaded:
        loaded = self._loaded.get(path)
        if loaded is None or (wanted and loaded.summary is None and loaded.problem is None):
            over = self._overlay.get(path)
            loaded = of_source(over, wanted=wanted) if over is not None else load(path, self._root, wanted=wanted)
            self._loaded[path] = loaded
        return loaded

    def _index(self, layout: Layout, files: Iterable[str]) -> ProjectIndex:
        def on_demand(path: str) -> ModuleSummary | None:
            return _placed(self._load(path, wanted=True), layout)

        index = ProjectIndex(layout, on_demand, self._settings.module_bases)
        for path in files:
            summary = _placed(self._load(path), layout)
            if summary is not None:
                index.add(summary)
        return index

    def _by_name(self, files: Sequence[str]) -> Found | None:
        """Findings in a few files without a look at the project; None when it takes that look to tell."""
        layout = Layout(self._root)
        summaries = [summary for path in files if (summary := _placed(self._load(path), layout)) is not None]
        functions = {summary.path: as_if_reached(summary) for summary in summaries}
        if not any(functions.values()):
            return Found((), self._problems(files))
        index = self._index(layout, files)
        found = self._find(functions, index)
        if not found.findings:
            return Found((), self._problems(files, found.problems))
        from graphmend_codemod.project.reach import reached_functions

        modules = [module for summary in summaries if (module := index.module_at(summary.path)) is not None]
        reached = reached_functions(index, modules)
        sure = {(path, each.qualname) for path, every in reached.items() for each in every}
        if any((each.path, each.function) not in sure for each in found.findings):
            return None
        return Found(found.findings, self._problems(files, found.problems))

    def _in_project(self, files: Sequence[str]) -> Found:
        from graphmend_codemod.project.reach import reached_functions

        every = sorted({*discover((), self._settings).files, *files})
        layout = Layout(self._root, every)
        index = self._index(layout, every)
        modules = [
            module for path in every if self._load(path).summary and (module := index.module_at(path)) is not None
        ]
        reached = reached_functions(index, modules)
        wanted = set(files)
        functions: dict[str, Sequence[ReachedFunction]] = {}
        for path in sorted(wanted.intersection(reached)):
            module = index.module_at(path)
            if module is not None:
                functions[path] = with_candidates(module.summary, reached[path])
        found = self._find(functions, index)
        return Found(found.findings, self._problems(files, found.problems))

    def _find(self, functions: Mapping[str, Sequence[ReachedFunction]], index: ProjectIndex) -> Found:
        findings: list[Finding] = []
        problems: list[Problem] = []
        for path, reached in sorted(functions.items()):
            module = index.module_at(path)
            if not reached or module is None:
                continue
            try:
                source = self.source(path)
            except SourceError as error:
                problems.append(Problem(path, str(error), error.line))
                continue
            if digest_of(source.raw) != self._load(path).digest:
                problems.append(Problem(path, "was changed by someone else while graphmend was running; run it again"))
                continue
            found, problem = findings_in(source, module.summary, reached, index, self._settings)
            findings += found
            problems += [problem] if problem is not None else []
        return Found(tuple(findings), tuple(problems))

    def _problems(self, files: Iterable[str], more: Iterable[Problem] = ()) -> tuple[Problem, ...]:
        loading = [problem for path in files if (problem := self._load(path).problem) is not None]
        return tuple(sorted({*loading, *more}, key=lambda each: (each.path, each.line or 0, each.message)))


def _placed(loaded: Loaded, layout: Layout) -> ModuleSummary | None:
    if loaded.summary is None:
        return None
    path = loaded.path
    return loaded.summary.placed(layout.name(path), path, path.endswith("__init__.py"))
