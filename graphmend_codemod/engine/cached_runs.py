"""A whole run remembered: when nothing in the project changed, its findings are read back without looking further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphmend_codemod.core.cache import Cache, hashed
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.cached_results import (
    finding_from_json,
    finding_to_json,
    problem_from_json,
    problem_to_json,
    settings_key,
)


@dataclass(frozen=True)
class Remembered:
    """The result of a run. `others` are the digests of files that it read although they are not listed."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    others: tuple[tuple[str, str], ...]


class WholeRun:
    """The entry of one question (settings and files) about one state of the project (digests by path)."""

    def __init__(self, cache: Cache, settings: Settings, files: Sequence[str], digests: Mapping[str, str]) -> None:
        self._cache = cache
        self._digests = digests
        self._name = hashed(settings_key(settings), *files)
        self._key = hashed(self._name, *(f"{path}\0{digest}" for path, digest in sorted(digests.items())))

    def read(self, digest: Callable[[str], str]) -> Remembered | None:
        """What the run found, if nothing has changed since; `digest` tells about files that are not listed."""
        known = self._cache.read("runs", self._name, self._key, _decoded)
        if known is None or any(digest(path) != before for path, before in known.others):
            return None
        return known

    def write(self, findings: Sequence[Finding], problems: Sequence[Problem], digests: Mapping[str, str]) -> None:
        """Remember what was found, unless a file was not read (`digests`) as it was when the run began."""
        if any(self._digests.get(path, digest) != digest for path, digest in digests.items()):
            return
        others = [[path, digest] for path, digest in sorted(digests.items()) if path not in self._digests]
        data = [[*map(finding_to_json, findings)], [*map(problem_to_json, problems)], others]
        self._cache.write("runs", self._name, self._key, data)
        self._cache.trim_runs()
        for kind in ("summaries", "findings"):
            self._cache.forget_others(kind, digests)


def _decoded(data: Any) -> Remembered:
    findings, problems, others = data
    return Remembered(
        tuple(map(finding_from_json, findings)),
        tuple(map(problem_from_json, problems)),
        tuple((str(path), str(digest)) for path, digest in others),
    )
