"""Notebooks through the same engine: their cells as one module, its findings back at lines of cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.atomic_write import write_atomically
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.notebook import Notebook
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile, read_bytes
from graphmend_codemod.engine.fixpoint import FileFix, Fixing, Proof, Veto
from graphmend_codemod.engine.session import Checker


class Notebooks(NamedTuple):
    """What came of notebooks. `texts` has the source of each cell that something was found in, by its place."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    fixes: tuple[FileFix, ...] = ()
    texts: Mapping[str, bytes] = {}


class _Read(NamedTuple):
    raw: bytes
    notebook: Notebook


def check(paths: Sequence[str], settings: Settings, given: Mapping[str, bytes] | None = None) -> Notebooks:
    """Check notebooks, whose paths are relative to the root; `given` are texts in place of those on disk."""
    read, problems = _read(paths, settings, given or {})
    found = _checker(read, settings).check(tuple(read), named=True)
    return _told(found.findings, [*problems, *found.problems], read)


def fix(
    paths: Sequence[str],
    settings: Settings,
    *,
    write: bool,
    vetoes: Sequence[Veto] = (),
    given: Mapping[str, bytes] | None = None,
    proof: Proof | None = None,
) -> Notebooks:
    """Fix the cells of notebooks to a fixpoint; outputs, metadata and all other bytes stay. Writes only if `write`."""
    read, problems = _read(paths, settings, given or {})
    fixing = Fixing(_checker(read, settings, remember=True), settings, vetoes, proof)
    fixing.run(tuple(read), named=True)
    fixes = []
    for change in fixing.changes():
        raw, notebook = read[change.path]
        try:
            after = notebook.with_text(change.after.decode())
            if write:
                write_atomically(settings.root / change.path, raw, after, root=settings.root)
            applied = tuple(_in_cell(each, notebook) for each in change.applied)
            fixes.append(FileFix(change.path, raw, after, applied))
            read[change.path] = _Read(after, Notebook(after))
        except SourceError as error:
            problems.append(Problem(change.path, str(error)))
    told = _told(fixing.remaining, [*problems, *fixing.problems], read)
    return told._replace(fixes=tuple(fixes))


def _read(
    paths: Sequence[str], settings: Settings, given: Mapping[str, bytes]
) -> tuple[dict[str, _Read], list[Problem]]:
    """The notebooks that may hold something, by path."""
    found: dict[str, _Read] = {}
    problems = []
    for path in paths:
        try:
            raw = given[path] if path in given else read_bytes(os.path.join(settings.root, path))
            if b"torch" in raw:
                found[path] = _Read(raw, Notebook(raw))
        except SourceError as error:
            problems.append(Problem(path, str(error), error.line))
    return found, problems


def _checker(read: Mapping[str, _Read], settings: Settings, *, remember: bool = False) -> Checker:
    checker = Checker(settings, remember=remember)
    for path, (_, notebook) in read.items():
        raw = notebook.text.encode()
        checker.overlay(SourceFile(path, raw, notebook.text, "utf-8"))
    return checker


def _told(findings: Iterable[Finding], problems: Iterable[Problem], read: Mapping[str, _Read]) -> Notebooks:
    placed = tuple(_in_cell(each, read[each.path].notebook) for each in findings)
    texts = {}
    for each in placed:
        cell = next(one for one in read[each.path].notebook.cells if one.number == each.cell)
        texts[each.place] = cell.source.encode("utf-8", "surrogatepass")
    return Notebooks(placed, tuple(problems), (), texts)


def _in_cell(finding: Finding, notebook: Notebook) -> Finding:
    """The finding with its span counted in its cell."""
    number, first = notebook.place(finding.span.start_line)
    last = first + finding.span.end_line - finding.span.start_line
    return finding._replace(span=finding.span._replace(start_line=first, end_line=last), cell=number)


def relative(path: Path, settings: Settings) -> str:
    """The path of a notebook that is given as text, from the root, with forward slashes."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(settings.root)).replace(os.sep, "/")
