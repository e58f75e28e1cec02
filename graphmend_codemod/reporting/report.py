"""What every view shows: the findings of one run, sorted into kinds, with the source text behind them."""

from __future__ import annotations

import enum
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.findings import Finding, Problem, Safety
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile


class FixStatus(enum.Enum):
    """What a user can do about a finding."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    OPAQUE = "opaque"
    DECLINED = "declined"
    ADVICE = "advice"


def kind_of(finding: Finding) -> FixStatus:
    """The kind of one finding."""
    if finding.safety is Safety.ADVICE:
        return FixStatus.ADVICE
    if finding.edit is None:
        return FixStatus.DECLINED
    return FixStatus(finding.safety.value)


def count_kinds(findings: Iterable[Finding]) -> Mapping[FixStatus, int]:
    """How many findings there are of each kind; every kind is a key."""
    counts = Counter(kind_of(finding) for finding in findings)
    return {kind: counts[kind] for kind in FixStatus}


class NewerTorch(NamedTuple):
    """How many fixes only need a newer torch than the requirements admit, and which version is enough for all."""

    fixes: int
    version: str


def for_newer_torch(findings: Iterable[Finding]) -> NewerTorch | None:
    """The fixes that wait for a newer torch; None if there are none."""
    needed = [each.needs_torch for each in findings if each.needs_torch is not None]
    return NewerTorch(len(needed), ".".join(map(str, max(needed)))) if needed else None


@dataclass(frozen=True)
class Position:
    """A place as people and tools count it, lines and columns from 1. `utf16` is the column in UTF-16 code units."""

    line: int
    column: int
    utf16: int


class Texts:
    """Source files behind findings. The last one stays in memory, since findings come file by file."""

    def __init__(self, root: Path, given: Mapping[str, bytes] | None = None) -> None:
        self._root = root
        self._given = given or {}
        self._last: tuple[str, SourceFile | None] | None = None

    def source(self, path: str) -> SourceFile | None:
        """The file, or None if it cannot be read any more; its lines are then left out of the report."""
        if self._last is None or self._last[0] != path:
            self._last = (path, self._read(path))
        return self._last[1]

    def _read(self, path: str) -> SourceFile | None:
        try:
            if path in self._given:
                return SourceFile.from_bytes(self._given[path], self._root / path, self._root)
            return SourceFile.below(str(self._root), path)
        except SourceError:
            return None

    def line(self, path: str, number: int) -> str | None:
        """One line without its newline; None if there is no such line."""
        source = self.source(path)
        return source.line(number) if source is not None and 0 < number <= len(source.lines) else None

    def position(self, path: str, line: int, utf8_column: int) -> Position:
        """A position of `ast` as people count it. Where the line cannot be read, bytes stand for characters."""
        text = self.line(path, line)
        if text is None or text.isascii():
            return Position(line, utf8_column + 1, utf8_column + 1)
        before = text.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore")
        return Position(line, len(before) + 1, len(before.encode("utf-16-le", "surrogatepass")) // 2 + 1)


@dataclass(frozen=True)
class Report:
    """The findings of one check. `unsafe_fixes` and `opaque` say whether such fixes were asked for.

    `aside` counts files without torch that cannot be parsed. `stdin` is the text that was checked in place of the
    files on disk, by path.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    root: Path
    unsafe_fixes: bool = False
    stdin: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    aside: int = 0
    opaque: bool = False

    @classmethod
    def of(
        cls,
        findings: Iterable[Finding],
        problems: Iterable[Problem],
        files: int,
        settings: Settings,
        stdin: Mapping[str, bytes] | None = None,
    ) -> Report:
        """The report of a run with these settings."""
        told = tuple(problems)
        real = tuple(problem for problem in told if not problem.aside)
        unsafe, aside = settings.unsafe_fixes, len(told) - len(real)
        return cls(tuple(findings), real, files, settings.root, unsafe, stdin or {}, aside, settings.opaque)

    def texts(self) -> Texts:
        """A reader for the source text behind the findings."""
        return Texts(self.root, self.stdin)

    def actionable(self, finding: Finding) -> bool:
        """Whether `graphmend fix` with the same options would mend this finding."""
        return finding.is_applied(self.unsafe_fixes, self.opaque)


def shown_path(path: str, root: Path) -> str:
    """A path relative to `root` as the user, who stands in the current folder, would write it."""
    absolute = os.path.join(root, path)
    try:
        return os.path.relpath(absolute)
    except ValueError:  # another drive on Windows
        return absolute


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
