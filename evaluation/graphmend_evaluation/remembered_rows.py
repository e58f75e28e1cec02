"""Rows of an evaluation kept on disk as they are measured, so that an interrupted run can go on where it was."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path

from graphmend_evaluation.results import SCHEMA_VERSION, ModelRow, from_json, to_json


class RowMemory:
    """Rows of one base, in a folder. A row is known again for the same base, changes, model and installed packages."""

    def __init__(self, folder: Path, base: str) -> None:
        self._folder = folder
        self._base = f"{base} {SCHEMA_VERSION} {_environment()}"

    def read(self, model: str, changes: str) -> ModelRow | None:
        """The row of `model` with changes of this digest, None if it is not known."""
        try:
            return from_json(ModelRow, json.loads(self._path(model, changes).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, model: str, changes: str, row: ModelRow) -> None:
        """Keep a row. A full disk costs the memory, not the run."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(to_json(row), file)
            os.replace(name, self._path(model, changes))

    def _path(self, model: str, changes: str) -> Path:
        name = hashlib.sha256(f"{self._base}\0{model}\0{changes}".encode()).hexdigest()[:40]
        return self._folder / f"{name}.json"


def _environment() -> str:
    """A digest of the interpreter and of all that is installed beside it."""
    found = sorted(f"{each.metadata['Name']}=={each.version}" for each in importlib.metadata.distributions())
    return hashlib.sha256("\n".join([sys.version, sys.executable, *found]).encode()).hexdigest()[:32]
