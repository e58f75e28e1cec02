"""One row of result for each repository, kept in SQLite as the run goes."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FAILED, NOT_RUN = "failed", "not run"
TOO_LONG, TOO_MUCH_MEMORY, TOO_MUCH_DISK = "time limit", "memory limit", "disk limit"
FAILURES = frozenset({FAILED, NOT_RUN, TOO_LONG, TOO_MUCH_MEMORY, TOO_MUCH_DISK})
CLEAN, LEFT, FINDINGS, MIGRATED = "clean", "nothing to fix", "findings", "migrated"
ALREADY = "already migrated"
CHANGED = frozenset({FINDINGS, MIGRATED, "opened", "updated", "closed"})

_TABLE = """
CREATE TABLE IF NOT EXISTS repositories (
    action TEXT NOT NULL, location TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, row TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (action, location)
)
"""
_HISTORY = """
CREATE TABLE IF NOT EXISTS history (
    action TEXT NOT NULL, location TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, row TEXT NOT NULL,
    finished TEXT NOT NULL
)
"""
_RUNS = """
CREATE TABLE IF NOT EXISTS runs (
    action TEXT PRIMARY KEY, total INTEGER NOT NULL, before INTEGER NOT NULL,
    started REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0)
)
"""
_COLUMNS = "action, location, name, status, row, finished"


@dataclass(frozen=True)
class Row:
    """What came of one repository. `sites` were found, `fixable` of them have a fix, `fixed` were fixed.

    Breaks are None if nothing was measured. `left` counts why sites stay, as (`CODE: reason`, count), the most frequent
    ones. `seconds` is wall time, `memory` and `disk` are peaks in bytes.
    """

    name: str
    location: str
    action: str
    status: str
    sites: int = 0
    fixed: int = 0
    fixable: int = 0
    breaks_before: int | None = None
    breaks_after: int | None = None
    pull_request: str = ""
    error: str = ""
    left: tuple[tuple[str, int], ...] = ()
    remarks: tuple[str, ...] = field(default=())
    seconds: float = 0.0
    memory: int = 0
    disk: int = 0

    @property
    def failed(self) -> bool:
        """Whether nothing is known about the repository."""
        return self.status in FAILURES

    def as_json(self) -> str:
        """For the store, and between processes."""
        return json.dumps(dataclasses.asdict(self))


def row_from_json(text: str) -> Row:
    """The row again. ValueError, KeyError or TypeError for anything else."""
    data = json.loads(text)
    left = tuple((str(reason), int(count)) for reason, count in data.pop("left"))
    return Row(**{**data, "left": left, "remarks": tuple(data["remarks"])})


class Expected(NamedTuple):
    """A run: how many repositories, how many of them were done before it, and for how long it has been going on."""

    action: str
    total: int
    before: int
    seconds: float


class Store:
    """The rows of one or more runs, in one file; those of earlier runs are kept beside. Raises `sqlite3.Error`."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, timeout=30.0)
        self._connection.execute(_TABLE)
        self._connection.execute(_HISTORY)
        self._connection.execute(_RUNS)
        self._connection.commit()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def begin(self, action: str) -> None:
        """Begin anew: the rows that are there become history."""
        with self._connection:
            self._connection.execute(
                f"INSERT INTO history ({_COLUMNS}) SELECT {_COLUMNS} FROM repositories WHERE action = ?", (action,)
            )
            self._connection.execute("DELETE FROM repositories WHERE action = ?", (action,))

    def keep(self, row: Row) -> None:
        """Keep a row, at once and for good."""
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO repositories (action, location, name, status, row) VALUES (?, ?, ?, ?, ?)",
                (row.action, row.location, row.name, row.status, row.as_json()),
            )

    def done(self, action: str) -> frozenset[str]:
        """Locations that need not be looked at again: all that did not fail."""
        rows = self._connection.execute("SELECT location, status FROM repositories WHERE action = ?", (action,))
        return frozenset(location for location, status in rows if status not in FAILURES)

    def history(self) -> Iterator[tuple[str, Row]]:
        """When each row of an earlier run was finished, and the row; the oldest first."""
        for finished, text in self._connection.execute("SELECT finished, row FROM history ORDER BY rowid"):
            yield str(finished), row_from_json(text)

    def everything(self) -> Iterator[tuple[str, Row]]:
        """When each row was finished, and the row: those of earlier runs, then those that are there."""
        yield from self.history()
        for finished, text in self._connection.execute(
            "SELECT finished, row FROM repositories ORDER BY finished, name"
        ):
            yield str(finished), row_from_json(text)

    def expect(self, action: str, total: int, before: int) -> None:
        """Note that a run over `total` repositories begins, of which `before` are done already."""
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO runs (action, total, before) VALUES (?, ?, ?)", (action, total, before)
            )

    def last_run(self) -> Expected | None:
        """The run that began last; None for a file of before there was such a note."""
        found = self._connection.execute(
            "SELECT action, total, before, (julianday('now') - 2440587.5) * 86400.0 - started FROM runs "
            "ORDER BY started DESC LIMIT 1"
        ).fetchone()
        return None if found is None else Expected(*found)

    def rows(self) -> Iterator[Row]:
        """All rows, one at a time."""
        for (text,) in self._connection.execute("SELECT row FROM repositories ORDER BY action, name"):
            yield row_from_json(text)
