"""Rows and traces of an evaluation, kept on disk as they are made, so that an interrupted run goes on where it was."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from graphmend_codemod.core.cache import own_version
from graphmend_codemod.trace import document
from graphmend_codemod.trace.document import Trace, TraceError
from graphmend_evaluation.results import SCHEMA_VERSION, ModelRow, from_json, to_json


class RowMemory:
    """Rows of one base, in a folder.

    A row is known again for the same base, model and installed packages, measured by the same code, when those of the
    changed files that the model imports are the same: other files may have changed since.
    """

    def __init__(self, folder: Path, base: str) -> None:
        self._folder = folder
        measured_by = own_version(os.path.dirname(os.path.abspath(__file__)))
        self._base = f"{base} {SCHEMA_VERSION} {measured_by} {_environment()}"

    def read(self, model: str, changed: Mapping[str, bytes]) -> ModelRow | None:
        """The row of `model` with these contents of the changed files, None if it is not known."""
        try:
            imported = json.loads(self._path(model, "imports").read_text(encoding="utf-8"))
            path = self._path(model, _changes(imported, changed))
            return from_json(ModelRow, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, model: str, changed: Mapping[str, bytes], row: ModelRow) -> None:
        """Keep a row. A full disk costs the memory, not the run."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._replace(self._path(model, _changes(row.before.files, changed)), to_json(row))
            self._replace(self._path(model, "imports"), list(row.before.files))

    def read_trace(self, model: str, changed: Mapping[str, bytes]) -> Trace | None:
        """The trace that was recorded of `model` with these contents of the changed files, None if there is none."""
        try:
            imported = json.loads(self._path(model, "imports").read_text(encoding="utf-8"))
            return document.read(self._trace_path(model, imported, changed))
        except (OSError, ValueError, TypeError, TraceError):
            return None

    def write_trace(self, model: str, changed: Mapping[str, bytes], trace: Trace) -> None:
        """Keep the trace of a model whose row is kept. A full disk costs the memory, not the run."""
        with contextlib.suppress(OSError, ValueError):
            imported = json.loads(self._path(model, "imports").read_text(encoding="utf-8"))
            self._replace(self._trace_path(model, imported, changed), json.loads(document.as_json(trace)))

    def _trace_path(self, model: str, imported: Iterable[str], changed: Mapping[str, bytes]) -> Path:
        return self._path(model, f"trace by {own_version()} of {_changes(imported, changed)}")

    def _replace(self, path: Path, data: object) -> None:
        handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file)
        os.replace(name, path)

    def _path(self, model: str, what: str) -> Path:
        name = hashlib.sha256(f"{self._base}\0{model}\0{what}".encode()).hexdigest()[:40]
        return self._folder / f"{name}.json"


def digest_of_files(content: Mapping[str, bytes]) -> str:
    """A name for the contents of files by path."""
    digest = hashlib.sha256()
    for path, data in sorted(content.items()):
        digest.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
    return digest.hexdigest()


def _changes(imported: Iterable[str], changed: Mapping[str, bytes]) -> str:
    """A digest of the changed files among those that a model imports."""
    return digest_of_files({path: changed[path] for path in set(imported) & changed.keys()})


def _environment() -> str:
    """A digest of the interpreter and of all that is installed beside it."""
    # A folder that stands twice on the path shows what lies in it twice.
    found = sorted({f"{each.metadata['Name']}=={each.version}" for each in importlib.metadata.distributions()})
    return hashlib.sha256("\n".join([sys.version, sys.executable, *found]).encode()).hexdigest()[:32]
