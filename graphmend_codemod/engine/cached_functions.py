"""Results of analysing files that are believed again as long as everything they depend on is the same."""

from __future__ import annotations

from graphmend_codemod.core.cache import Cache
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.analyze import Analysed, Task
from graphmend_codemod.engine.cached_results import analysed_from_json, analysed_to_json, findings_key
from graphmend_codemod.project.index.dependency_tracking import Answers
from graphmend_codemod.project.index.project_index import ProjectIndex


class Memory:
    """Results of this run, and with a cache those of earlier ones.

    A result is known again when the file's text, the functions asked about, the settings and the answers that the
    index gave are all the same.
    """

    def __init__(self, settings: Settings, cache: Cache | None) -> None:
        self._settings = settings
        self._cache = cache
        self._known: dict[str, tuple[str, Analysed]] = {}

    def recall(self, task: Task, answers: Answers) -> Analysed | None:
        """The result of a task, if it is known and `answers` are as they were."""
        key = self._key(task)
        kept, known = self._known.get(task.path, ("", None))
        if kept != key:
            known = self._cache.read("findings", task.path, key, analysed_from_json) if self._cache else None
        if known is None or any(answers.name(question) != answer for question, answer in known.answers):
            return None
        return known

    def keep(self, task: Task, analysed: Analysed) -> None:
        """Remember a result, unless it is that something went wrong."""
        if analysed.problem is None:
            key = self._key(task)
            self._known[task.path] = (key, analysed)
            if self._cache is not None:
                self._cache.write("findings", task.path, key, analysed_to_json(analysed))

    def answers(self, index: ProjectIndex) -> Answers:
        """The answers of an index, to compare results with."""
        return Answers(index)

    def _key(self, task: Task) -> str:
        return findings_key(self._settings, task.digest, task.functions)
