"""Files to summaries: read, look at the bytes, parse, summarise. The tree lives no longer than this takes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from graphmend_codemod.discovery import can_matter, is_generated
from graphmend_codemod.findings import Problem
from graphmend_codemod.project.scan import summarise
from graphmend_codemod.project.summary import ModuleSummary
from graphmend_codemod.source import SourceError, SourceFile


@dataclass(frozen=True)
class Loaded:
    """One file as a stage found it. `summary` (without name and path) is None when nothing in it can matter."""

    path: str
    digest: str
    summary: ModuleSummary | None = None
    problem: Problem | None = None


def digest_of(raw: bytes) -> str:
    """The name of a file's content."""
    return blake2b(raw, digest_size=16).hexdigest()


@contextmanager
def without_cyclic_collector() -> Iterator[None]:
    """Keep the cyclic collector from walking syntax trees over and over: they have no cycles and die at once."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def load(path: str, root: Path, *, wanted: bool = False) -> Loaded:
    """Load the file at `path` below `root`. Files in which nothing can matter are summarised only if `wanted`."""
    try:
        source = SourceFile.read(root / path, root)
    except SourceError as error:
        return Loaded(path, "", problem=Problem(path, str(error), error.line))
    return of_source(source, wanted=wanted)


def of_source(source: SourceFile, *, wanted: bool = False) -> Loaded:
    """Load a file that was read already."""
    digest = digest_of(source.raw)
    if not wanted and (not can_matter(source.raw) or is_generated(source.raw)):
        return Loaded(source.path, digest)
    try:
        with without_cyclic_collector():
            return Loaded(source.path, digest, summarise(source.parse(), source.text))
    except SourceError as error:
        return Loaded(source.path, digest, problem=Problem(source.path, str(error), error.line))
    except RecursionError:
        message = "cannot be analysed: its expressions are nested too deeply"
        return Loaded(source.path, digest, problem=Problem(source.path, message))
