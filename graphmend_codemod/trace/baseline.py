"""Break sites that a project knows of, and which of a run are new.

A site is known by its file, function, kind and statement, not by its line, so that lines above may come and go. Of
statements that read alike in one function, it is known how many broke.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.core.source import SourceError, read_bytes
from graphmend_codemod.trace.document import MOST_BYTES, Site, Trace, TraceError

VERSION = 1


@dataclass(frozen=True)
class Compared:
    """What a run has and the baseline has not: ids of `new` sites, and how many of the baseline are `gone`."""

    new: frozenset[str]
    gone: int
    sites: tuple[Site, ...]

    def notes(self, name: str) -> Iterator[str]:
        """What a user should know, one line each; that nothing is new, too."""
        for site in self.sites:
            place = site.shown
            yield f"new graph break: {place.path}:{place.line} in {place.function}: {site.gb_id} {site.kind}"
        if not self.sites:
            yield f"no break site that {name} does not have"
        if self.gone:
            told = "1 break site of {} is gone" if self.gone == 1 else f"{self.gone} break sites of {{}} are gone"
            yield f"{told.format(name)}; update the baseline with --update-baseline"


def write(path: Path, trace: Trace) -> None:
    """Write the sites of a trace as the baseline: sorted, one a line, for small diffs."""
    rows = sorted(
        (
            {
                "id": site.id,
                "path": site.shown.path,
                "function": site.shown.function,
                "kind": f"{site.gb_id} {site.kind}".strip(),
            }
            for site in trace.sites
        ),
        key=lambda row: (row["path"], row["function"], row["id"]),
    )
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"graphmend-breaks": {VERSION}, "sites": [\n{lines}\n]}}\n', encoding="utf-8")


def read(path: Path) -> frozenset[str]:
    """The ids of a baseline. Raises `TraceError`, which names the file."""
    try:
        data = json.loads(read_bytes(path, MOST_BYTES, ""))
        if data["graphmend-breaks"] != VERSION:
            raise ValueError(f"version {data['graphmend-breaks']} is not known")
        return frozenset(str(row["id"]) for row in data["sites"])
    except SourceError as error:
        raise TraceError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: is not a baseline: {error}; rewrite it with --update-baseline") from error


def compare(known: frozenset[str], trace: Trace) -> Compared:
    """Which sites of a run are not in the baseline."""
    new = [site for site in trace.sites if site.id not in known]
    gone = len(known - {site.id for site in trace.sites})
    return Compared(frozenset(site.id for site in new), gone, tuple(new))
