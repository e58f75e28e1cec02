"""An engine for one work tree that is fixed rule by rule: its project is read and analysed once.

A site belongs to one rule whatever is selected, so what each rule finds is known when all have been asked, and after a
rule's fixes only the files that these concern are looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphmend_codemod.core.discovery import discover
from graphmend_codemod.core.settings import Settings, selects
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.engine import api
from graphmend_codemod.engine.api import CheckResult, FixResult
from graphmend_codemod.engine.fixpoint import Veto
from graphmend_codemod.engine.session import Checker, Found
from graphmend_codemod.migrate.per_rule import Engine
from graphmend_codemod.project.loading import digest_of
from graphmend_codemod.rewriting.concrete import verify_concrete


def reading_once() -> Engine:
    """An engine for a single work tree."""
    project = _Project()
    return Engine(project.check, project.fix, renew=project.forget)


class _Project:
    """`api.check` and `api.fix` with one checker behind both."""

    def __init__(self) -> None:
        self._checker: _Checker | None = None

    def forget(self) -> None:
        """Read the project anew when it is asked about next."""
        self._checker = None

    def check(self, paths: Sequence[Path], settings: Settings, *, jobs: int, cache: bool) -> CheckResult:
        """See `api.check`."""
        if self._checker is None or not self._checker.knows(paths, settings):
            self._checker = _Checker(discover(paths, settings).files, settings, jobs=jobs, cache=cache)
        self._checker.begin(settings)
        return api.check(paths, settings, checker=self._checker)

    def fix(
        self,
        paths: Sequence[Path],
        settings: Settings,
        *,
        write: bool,
        jobs: int,
        cache: bool,
        vetoes: Sequence[Veto],
    ) -> FixResult:
        """See `api.fix`."""
        if self._checker is None or not self._checker.knows(paths, settings):
            return api.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes, proof=verify_concrete)
        self._checker.begin(settings)
        return api.fix(paths, settings, write=write, vetoes=vetoes, checker=self._checker, proof=verify_concrete)


class _Checker(Checker):
    """Knows what all rules find in `files`, and answers for some of the files and rules."""

    def __init__(self, files: Sequence[str], settings: Settings, *, jobs: int, cache: bool) -> None:
        super().__init__(settings, jobs=jobs, cache=cache, remember=True)
        self._asked = settings
        self._all_files = files
        self._found: Found | None = None
        self._written: dict[str, SourceFile] = {}

    def knows(self, paths: Sequence[Path], settings: Settings) -> bool:
        """Whether a question about these files and rules can be answered."""
        known = set(self._all_files)
        same = settings._replace(select=()) == self._settings._replace(select=())
        selected = all(code.startswith(self._settings.select) for code in settings.select)
        return same and selected and known.issuperset(discover(paths, settings).files)

    def begin(self, settings: Settings) -> None:
        """Answer for these rules from now on, about the texts that are on disk."""
        self._asked = settings
        for path, source in list(self._written.items()):
            try:
                now = SourceFile.below(str(self._root), path)
            except SourceError:
                continue  # what is written next will not find the file, and say so
            if now.raw != source.raw:
                self.overlay(now)

    def overlay(self, source: SourceFile) -> None:
        """See `Checker.overlay`."""
        super().overlay(source)
        self._written[source.path] = source
        self._found = None

    def source(self, path: str) -> SourceFile:
        """See `Checker.source`; a text that is not the one that was analysed is an error."""
        source = super().source(path)
        loaded = self._loaded.get(path)
        if path not in self._written and loaded is not None and loaded.digest not in ("", digest_of(source.raw)):
            raise SourceError("was changed by another process while graphmend ran; run it again")
        return source

    def check(self, files: Sequence[str], *, named: bool) -> Found:
        """See `Checker.check`."""
        if self._found is None:
            self._found = super().check(self._all_files, named=False)
        wanted = set(files)
        return Found(
            tuple(
                each
                for each in self._found.findings
                if each.path in wanted and selects(self._asked, each.code, each.path)
            ),
            tuple(each for each in self._found.problems if each.path in wanted),
        )
