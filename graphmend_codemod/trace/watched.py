"""What functions held from statement to statement, of a run without torch.compile."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphmend_codemod.trace.document import OWN, Site, SourceLine, Statement, Trace, Watched

_FRAMES = 8


def places(trace: Trace, root: Path) -> dict[str, dict[str, list[int]]]:
    """The lines of the project that broke graphs, and those that called what did, by the path of their file."""
    found: dict[str, dict[str, list[int]]] = {}
    for site in trace.sites:
        led = [each for every in above(site) for each in every]
        for kind, place in (("broken", site.own), *(("called", each) for each in led)):
            if place is not None:
                lines = found.setdefault(str(root / place.path), {"broken": [], "called": []})
                lines[kind].append(place.line)
    return found


def above(site: Site) -> list[list[SourceLine]]:
    """The lines of the project that led to a site, the innermost first: all that did, then those of its first break."""
    own = [each for each in site.stack if each.where == OWN][:-1][::-1][:_FRAMES]
    callers = [each for each in site.callers if each.where == OWN] if site.own == site.place else own[:1]
    return [callers, *([each] for each in own[1:])] if callers else []


def of_folder(folder: Path, root: Path) -> tuple[Watched, ...]:
    """What the watchers of several processes wrote: of each function what the process with the most calls noted."""
    found: dict[SourceLine, Watched] = {}
    for path in sorted(folder.glob("*.calls")):
        for each in of_records(_records(path), root):
            known = found.get(each.place)
            if known is None or len(known.calls) < len(each.calls):
                found[each.place] = each
    return tuple(found.values())


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """A record for each call that ended, each of which has the calls before it as well."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            with contextlib.suppress(ValueError):  # half a line of a process that was killed
                yield json.loads(line)


def of_records(records: Iterable[Mapping[str, Any]], root: Path) -> tuple[Watched, ...]:
    """What a watcher noted, with paths relative to the project."""
    return tuple(_watched(each, root.resolve()) for each in records)


def _watched(record: Mapping[str, Any], root: Path) -> Watched:
    path = Path(record["path"]).resolve().relative_to(root).as_posix()
    return Watched(
        SourceLine(path, int(record["line"]), str(record["function"])),
        tuple(map(int, record["broken"])),
        tuple(Statement(str(key), int(first), int(last)) for key, first, last in record["statements"]),
        tuple(map(str, record["facts"])),
        tuple(map(str, record["calls"])),
        tuple(map(int, record["called"])),
    )
