"""`graphmend fleet` as a process of its own, and its rows."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.fleet.results import Row, Store


@dataclass(frozen=True)
class Fleet:
    """A folder for lists and results."""

    folder: Path

    @property
    def results(self) -> Path:
        """The file of rows."""
        return self.folder / "fleet.sqlite"

    def listed(self, *locations: object) -> Path:
        """A list of repositories."""
        file = self.folder / "repositories.txt"
        file.write_text("# ours\n" + "".join(f"{location}\n" for location in locations))
        return file

    def command(self, *arguments: object) -> list[str]:
        """The command line."""
        head = [sys.executable, "-m", "graphmend_codemod", "fleet"]
        return [*head, *map(str, arguments), "--results", str(self.results)]

    def run(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end. Nothing may be left in the temporary folder."""
        done = subprocess.run(
            self.command(*arguments),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert not list(Path(os.environ["TMPDIR"]).glob("graphmend-*"))
        return done

    def rows(self) -> dict[str, Row]:
        """Rows by name."""
        store = Store(self.results)
        try:
            return {row.name: row for row in store.rows()}
        finally:
            store.close()


def outlive_children() -> None:
    """Wait until what a killed process was at has ended, too, and let what it left look old."""
    temporary, until = os.environ["TMPDIR"], time.monotonic() + 60
    while True:
        listing = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if not any("graphmend_codemod.fleet.child" in line and temporary in line for line in listing.splitlines()):
            break
        assert time.monotonic() < until, listing
        time.sleep(0.1)
    for folder in Path(temporary).glob("graphmend-*"):
        os.utime(folder, (0, 0))
