"""What is known of a project around a few named files, from an earlier check or an earlier run.

A search through the whole project takes as long as all else that a commit hook does. What it found holds while the
files say the same of what leads where: our own fixes leave that as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmend_codemod.project.index.modules import PackageLayout

if TYPE_CHECKING:
    from graphmend_codemod.core.cache import Cache
    from graphmend_codemod.core.settings import Settings
    from graphmend_codemod.project.index.earlier_answers import Question
    from graphmend_codemod.project.index.facts import ReachedFunction
    from graphmend_codemod.project.index.project_index import ProjectIndex
    from graphmend_codemod.project.index.whole_project import ProjectView, WholeProject
    from graphmend_codemod.project.loading import Loaded
    from graphmend_codemod.project.project_memory import Known, ProjectMemory
    from graphmend_codemod.project.summary.records import ModuleSummary

    Reached = dict[str, tuple[ReachedFunction, ...]]


class Texts(NamedTuple):
    """How to come by what a file holds: its summary (also of a file in which nothing matters), digest and text."""

    load: Callable[[str], Loaded]
    digest: Callable[[str], str]
    text: Callable[[str], str]


class _Look(NamedTuple):
    """A look at every file: the index of it with what it answers, and all names that the project gives."""

    modules: ProjectIndex
    project: WholeProject
    names: frozenset[str]


class KnownProject:
    """The knowledge of one run about the files `every` of a project; `cache` has that of earlier runs."""

    def __init__(self, texts: Texts, settings: Settings, cache: Cache | None, every: Sequence[str]) -> None:
        self._texts = texts
        self._settings = settings
        self._cache = cache
        self._every = every
        self.layout = PackageLayout(settings.root.absolute(), every)
        self._look: _Look | None = None
        self._stored: Known | None = None
        self._then: dict[str, ModuleSummary] = {}
        self._view: ProjectView | None = None
        self._reached: Mapping[str, Sequence[ReachedFunction]] = {}
        self._answers: dict[Question, Any] = {}

    def answers(self, index: ProjectIndex, files: Sequence[str], texts: Iterable[str]) -> Reached | None:
        """The reached functions of these files, if they are known; `index` answers for the project then.

        `texts` are the files with a text in the place of that on disk.
        """
        reached = self._from_look(self._look, index, files, texts) if self._look is not None else None
        if reached is None:
            self._look = None
            reached = self._from_memory(index, files, texts)
        return reached

    # -- from a look in this run -----------------------------------------------------------------------------------

    def everywhere(self, loaded: Mapping[str, Loaded]) -> Reached | None:
        """All reached functions, if they are known and every file was loaded."""
        known = self._stored
        found: Reached = {}
        for path in known.rows if known is not None else ():
            summary = loaded[path].summary if path in loaded else None
            reached = known.reached_in(path, summary) if known is not None and summary is not None else None
            if reached is None:
                return None
            found[path] = reached
        return found or None

    def looked(self, index: ProjectIndex, project: WholeProject, loaded: Mapping[str, Loaded]) -> None:
        """Note that every file was looked at just now."""
        from graphmend_codemod.project.same_lead import given_names

        names = given_names(each.summary for each in loaded.values() if each.summary is not None)
        self._look = _Look(index, project, names)
        self._view, self._reached, self._answers = project, project.reached, {}

    def _from_look(
        self, look: _Look, index: ProjectIndex, files: Sequence[str], texts: Iterable[str]
    ) -> Reached | None:
        from graphmend_codemod.project.index.earlier_answers import EarlierProject
        from graphmend_codemod.project.same_lead import leads_as_before

        changed = {}
        for path in {*files, *texts}:
            module, new = look.modules.module_at(path), self._texts.load(path).placed(self.layout)
            if module is None or new is None:
                return None
            if module.summary != new:
                if not leads_as_before(module.summary, new, look.modules, look.names):
                    return None
                changed[path] = module.summary, new
        view = EarlierProject(look.project, index, changed)
        index.is_answered_by(view, self._texts.text)
        self._view, self._reached = view, view.reached
        return {path: tuple(view.reached[path]) for path in files if path in view.reached}

    # -- from an earlier run ---------------------------------------------------------------------------------------

    @cached_property
    def _memory(self) -> ProjectMemory | None:
        if self._cache is None:
            return None
        from graphmend_codemod.project.project_memory import ProjectMemory

        return ProjectMemory(self._cache, self._settings, self._every)

    def _from_memory(self, index: ProjectIndex, files: Sequence[str], texts: Iterable[str]) -> Reached | None:
        from graphmend_codemod.project.index.earlier_answers import StoredAnswers

        now: dict[str, ModuleSummary] = {}
        for path in {*files, *texts}:
            summary = self._texts.load(path).placed(self.layout)
            if summary is not None:
                now[path] = summary
        known, memory = self._as_edited(index, now), self._memory
        if known is None and memory is not None:
            known = memory.read(self._texts.digest, lambda path: self._texts.load(path).summary)
        self._stored, self._then, self._answers = known, now, {}
        if known is None:
            return None
        found: Reached = {}
        for path in set(files) & now.keys():
            reached = known.reached_in(path, now[path])
            if reached is None:
                return None
            if reached:
                found[path] = reached
        self._view = StoredAnswers(known.answers, index)
        index.is_answered_by(self._view, self._texts.text)
        return found

    def _as_edited(self, index: ProjectIndex, now: Mapping[str, ModuleSummary]) -> Known | None:
        """What was known before our own edits, if they change nothing of it."""
        from graphmend_codemod.project.same_lead import leads_as_before

        known = self._stored
        if known is None or now.keys() != self._then.keys():
            return None
        edited = {}
        for path, new in now.items():
            old = self._then[path]
            if not leads_as_before(old, new, index, known.names):
                return None
            if new != old:
                edited[path] = self._texts.digest(path), new
        return known.after(edited) if edited else known

    # -- for the next ----------------------------------------------------------------------------------------------

    def keep(
        self,
        questions: Iterable[Question],
        index: ProjectIndex,
        loaded: Mapping[str, Loaded],
    ) -> None:
        """Remember what is known, with the answers to these questions."""
        memory = self._memory
        if memory is None or self._view is None:
            return
        from graphmend_codemod.project.index.earlier_answers import OF_TEXTS, stored

        known = self._stored.answers if self._stored is not None else {}
        before = {each: told for each, told in {**known, **self._answers}.items() if each[0] not in OF_TEXTS}
        answers = self._answers = {**before, **stored(questions, self._view, index)}
        if self._look is not None:
            memory.write(memory.of(self._texts.digest, loaded, self._reached, self._look.names, answers))
        elif self._stored is not None and (self._stored.edited or not answers.keys() <= known.keys()):
            self._stored = self._stored._replace(answers=answers, edited=False)
            memory.write(self._stored)
