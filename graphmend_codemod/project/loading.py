"""Files to summaries: read, look at the bytes, parse, summarise. The tree lives no longer than this takes."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.digests import blake2b
from graphmend_codemod.core.discovery import can_matter, is_generated, uses_torch
from graphmend_codemod.core.findings import Problem
from graphmend_codemod.core.source import SourceError, SourceFile, read_bytes
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.summary.records import ModuleSummary, from_json
from graphmend_codemod.project.summary.scan import summarise

if TYPE_CHECKING:
    from graphmend_codemod.core.cache import Cache


_PARSES = "0"
"""What the cache has in place of the summary of a file that nobody wanted, and that has no mistake."""


class Loaded(NamedTuple):
    """One file as a stage found it. There is no summary when nothing in the file can matter, unless it was `wanted`.
    `encoded` is the summary as JSON, as workers send it. `digest` is empty for a text that is kept in memory.
    """

    path: str
    digest: str
    summary: ModuleSummary | None = None
    problem: Problem | None = None
    encoded: str | None = None
    wanted: bool = False

    @property
    def matters(self) -> bool:
        """True when there is a summary, and not only because it was wanted."""
        return self.summary is not None and not self.wanted

    def decoded(self) -> Loaded:
        """The same with the summary that is encoded."""
        if self.encoded is None:
            return self
        import json

        return self._replace(summary=from_json(json.loads(self.encoded)))

    def placed(self, layout: PackageLayout) -> ModuleSummary | None:
        """The summary with the module's name and path; None where there is none."""
        if self.summary is None:
            return None
        return self.summary.placed(layout.name(self.path), self.path, self.path.endswith("__init__.py"))


def digest_of(raw: bytes) -> str:
    """The name of a file's content."""
    return blake2b(raw, digest_size=16).hexdigest()


def encode(summary: ModuleSummary) -> str:
    """The JSON text of a summary."""
    import json

    return json.dumps(summary, separators=(",", ":"))


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


def load(path: str, root: str, *, wanted: bool = False, cache: Cache | None = None) -> Loaded:
    """Load the file at `path` below `root`. Files in which nothing can matter are summarised only if `wanted`."""
    try:
        raw = read_bytes(os.path.join(root, path))
    except SourceError as error:
        return Loaded(path, "", problem=Problem(path, str(error), error.line))
    try:
        source = SourceFile.decoded(raw, path)
    except SourceError as error:
        return _failed(path, "", raw, error)
    return of_source(source, wanted=wanted, cache=cache)


def recalled(path: str, root: str, cache: Cache) -> Loaded | None:
    """The file as an earlier run summarised it; None when it is to be loaded."""
    try:
        source = SourceFile.below(root, path)
    except SourceError:
        return None
    return _remembered(source, digest_of(source.raw), cache)


def _failed(path: str, digest: str, raw: bytes, error: SourceError) -> Loaded:
    matters = can_matter(raw) or uses_torch(raw) or (path.endswith("setup.py") and b"torch" in raw)
    return Loaded(path, digest, problem=Problem(path, str(error), error.line, aside=not matters))


def _passed_over(source: SourceFile, digest: str, cache: Cache | None = None) -> Loaded:
    """A file in which nothing can matter; a mistake may be why it looks like that."""
    if (uses_torch(source.raw) or source.path.endswith("setup.py")) and not is_generated(source.raw):
        known = cache.read_text("summaries", source.path, digest) if cache is not None else None
        try:
            if known is None:
                source.parse()
        except SourceError as error:
            return _failed(source.path, digest, source.raw, error)
        if cache is not None and known is None:
            cache.write_text("summaries", source.path, digest, _PARSES)
    return Loaded(source.path, digest)


def _matters(source: SourceFile) -> bool:
    return can_matter(source.raw)


def _remembered(source: SourceFile, digest: str, cache: Cache, *, wanted: bool = False) -> Loaded | None:
    if not wanted and not _matters(source):
        return _passed_over(source, digest, cache)
    summary = cache.read("summaries", source.path, digest, from_json)
    return None if summary is None else Loaded(source.path, digest, summary, wanted=wanted and not _matters(source))


def of_source(source: SourceFile, *, wanted: bool = False, cache: Cache | None = None, kept: bool = False) -> Loaded:
    """Load a file that was read already. A text that is `kept` in memory needs no digest."""
    path = source.path
    if cache is None and not (wanted or _matters(source)):
        return _passed_over(source, "")
    digest = "" if kept else digest_of(source.raw)
    remembered = _remembered(source, digest, cache, wanted=wanted) if cache is not None else None
    if remembered is not None:
        return remembered
    try:
        with without_cyclic_collector():
            summary = summarise(source.parse(), source.text)
    except SourceError as error:
        return _failed(path, digest, source.raw, error)
    except RecursionError:
        return Loaded(path, digest, problem=Problem(path, "cannot be analysed: its expressions are nested too deeply"))
    except MemoryError:
        return Loaded(path, digest, problem=Problem(path, "cannot be analysed: out of memory"))
    except Exception as error:  # said in full, with exit code 2; the other files get their findings
        return Loaded(path, digest, problem=Problem.internal(path, error))
    if cache is not None:
        cache.write_text("summaries", path, digest, encode(summary))
    return Loaded(path, digest, summary, wanted=wanted and not _matters(source))
