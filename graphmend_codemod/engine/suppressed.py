"""Comments that suppress nothing, or codes that do not exist: what `check` says about `# graphmend: ignore[...]`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.atomic_write import write_atomically
from graphmend_codemod.core.discovery import discover
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.ignores import Ignore, ignores, with_ignores, without_codes
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SUPPRESSION_MARK, SourceError, SourceFile, read_bytes
from graphmend_codemod.engine import api

_MARK = SUPPRESSION_MARK.encode()


class Useless(NamedTuple):
    """A comment that suppresses less than it says. `unused` are the codes that can go, `()` for the whole comment."""

    path: str
    ignore: Ignore
    unused: tuple[str, ...]
    words: str


def useless(
    paths: Sequence[Path], settings: Settings, codes: Collection[str], *, jobs: int = 1, cache: bool = True
) -> list[Useless]:
    """The comments below these paths that suppress nothing, by path and line. `codes` are those of all rules."""
    root = os.path.abspath(settings.root)
    marked = [path for path in discover(paths, settings).files if _is_marked(os.path.join(root, path))]
    if not marked:
        return []
    every = settings._replace(select=("GM",), ignore=(), per_file_ignores=(), see_suppressed=True)
    found = api.check([settings.root / path for path in marked], every, jobs=jobs, cache=cache)
    failed = {problem.path for problem in found.problems}
    by_path: dict[str, list[Finding]] = {}
    for finding in found.findings:
        by_path.setdefault(finding.path, []).append(finding)
    told: list[Useless] = []
    for path in marked:
        if path not in failed:
            told += _in_file(SourceFile.below(root, path), by_path.get(path, []), codes)
    return told


def _is_marked(path: str) -> bool:
    try:
        return _MARK in read_bytes(path)
    except SourceError:
        return False


def _in_file(source: SourceFile, findings: Sequence[Finding], codes: Collection[str]) -> Iterator[Useless]:
    for each in ignores(source):
        if each.codes is None:
            yield Useless(source.path, each, (), f"`{each.text}` is not understood; write `# graphmend: ignore[GM101]`")
            continue
        covered = [finding.code for finding in findings if each.first <= finding.span.start_line <= each.last]
        if not each.codes:
            if not covered:
                yield Useless(source.path, each, (), f"`{each.text}` suppresses nothing; remove it")
            continue
        unknown = tuple(code for code in each.codes if not any(known.startswith(code) for known in codes))
        unused = tuple(code for code in each.codes if not any(one.startswith(code) for one in covered))
        if unknown:
            yield Useless(source.path, each, unused, f"no rule has the code {_listed(unknown)}; see `graphmend rules`")
        elif unused:
            yield Useless(source.path, each, unused, f"{_listed(unused)} is not found here; remove it from the comment")


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(f"`{code}`" for code in codes)


def add(findings: Sequence[Finding], settings: Settings) -> tuple[int, list[Problem]]:
    """Write comments that suppress these findings; how many files changed, and what could not be written."""
    wanted: dict[str, dict[int, set[str]]] = {}
    problems = []
    for finding in findings:
        if finding.cell:
            message = "cells of notebooks get no comment; exclude the notebook, or write the comment yourself"
            problems.append(Problem(finding.path, message))
            continue
        wanted.setdefault(finding.path, {}).setdefault(finding.span.start_line, set()).add(finding.code)
    changed = 0
    for path, lines in sorted(wanted.items()):
        try:
            source = SourceFile.below(str(settings.root), path)
            _write(source, with_ignores(source, lines), settings)
            changed += 1
        except SourceError as error:
            problems.append(Problem(path, str(error), error.line))
    return changed, list(dict.fromkeys(problems))


def remove(useless: Sequence[Useless], settings: Settings) -> list[Problem]:
    """Take the codes that suppress nothing out of their comments; what could not be written."""
    by_path: Mapping[str, list[Useless]] = {path: [] for path in sorted({each.path for each in useless})}
    for each in useless:
        if each.ignore.codes is not None:
            by_path[each.path].append(each)
    problems = []
    for path, group in by_path.items():
        try:
            source = SourceFile.below(str(settings.root), path)
            _write(source, without_codes(source, [(each.ignore, each.unused) for each in group]), settings)
        except SourceError as error:
            problems.append(Problem(path, str(error), error.line))
    return problems


def _write(before: SourceFile, after: SourceFile, settings: Settings) -> None:
    if before.raw != after.raw:
        write_atomically(settings.root / before.path, before.raw, after.raw, root=settings.root)
