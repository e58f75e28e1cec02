"""The sites of a recorded run among the findings: what `fix --trace` writes, and nothing else.

Lines may have moved since the run: a site is looked for by the text of its line, the nearest one first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.engine import api
from graphmend_codemod.engine.fixpoint import first_line
from graphmend_codemod.trace import document
from graphmend_codemod.trace.document import Trace
from graphmend_codemod.trace.hints import with_hints
from graphmend_codemod.trace.join import around, covers, denied, line_now
from graphmend_codemod.trace.watched import above

Key = tuple[str, str, str, str]


def only_traced(path: Path, settings: Settings, *, jobs: int = 1, cache: bool = True) -> Settings:
    """The settings with the sites of the trace in a file as `only_sites`. Raises `TraceError` if it cannot be read."""
    return of_trace(document.read(path), settings, jobs=jobs, cache=cache)


def of_trace(trace: Trace, settings: Settings, *, jobs: int = 1, cache: bool = True) -> Settings:
    """The settings with the sites of a trace as `only_sites`, and with what the run knew as hints."""
    settings = with_hints(trace, settings)
    return settings._replace(only_sites=tuple(dict.fromkeys(keys(trace, settings, jobs=jobs, cache=cache))))


def keys(trace: Trace, settings: Settings, *, jobs: int = 1, cache: bool = True) -> Iterator[Key]:
    """Path, code, function and first line of each finding on the line of a site, those of the dearest sites first."""
    root = settings.root
    places = [
        each.path
        for site in trace.sites
        if site.own is not None
        for each in (site.own, *(one for every in above(site) for one in every))
    ]
    paths = [path for path in dict.fromkeys(places) if (root / path).is_file()]
    if not paths:
        return
    found: dict[str, list[Finding]] = {}
    for finding in api.check([root / path for path in paths], settings, jobs=jobs, cache=cache).findings:
        found.setdefault(finding.path, []).append(finding)
    for site in trace.sites:
        if site.own is None or site.own.path not in found:
            continue
        try:
            source = SourceFile.below(str(root), site.own.path)
        except SourceError:
            continue
        line = line_now(site, source.text.splitlines())
        own = [each for each in found[site.own.path] if line is not None and covers(each, line)]
        applied = [each for each in own if each.is_applied(settings.unsafe_fixes, settings.opaque)]
        led = around(site, found, safe=bool(applied)) if not any(each.is_applied(False) for each in applied) else []
        yield from (_key(each, root) for each in led)
        for finding in own:  # a safe fix of what led there, before an operator here that cost
            if not (led and finding in applied) and not denied(site, finding, settings):
                yield _key(finding, root)


def _key(finding: Finding, root: Path) -> Key:
    source = SourceFile.below(str(root), finding.path)
    return finding.path, finding.code, finding.function, first_line(source.text, finding.span.start_line)
