"""What a run may remember: summaries by content, findings by everything they depend on, whole runs.

Entries are JSON, so that a cache that came with a hostile repository can be wrong but cannot run anything; an entry
that is broken or was made by another version counts as absent. Writing goes through a rename, so runs may share the
folder. A cache that cannot be written is no cache, silently: it is never needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from graphmend_codemod.digests import blake2b

FOLDER = ".graphmend_cache"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache made by graphmend; it can be deleted.\n"
_MOST_RUNS = 16
_Decoded = TypeVar("_Decoded")


def hashed(*parts: str) -> str:
    """A short name for texts."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def own_version(package: str = os.path.dirname(os.path.abspath(__file__))) -> str:
    """A name for this version of a package of graphmend's and of Python: it changes when any of its files does."""
    parts = [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        inside = folder[len(package) :]
        for name in sorted(files):
            if name.endswith((".py", ".so", ".pyd")):
                status = os.stat(f"{folder}/{name}")
                parts.append(f"{inside}/{name}:{status.st_size}:{status.st_mtime_ns}")
    return hashed(*parts)


class Cache:
    """Entries of one project, in `.graphmend_cache` under its root. Three kinds: `summaries`, `findings`, `runs`."""

    def __init__(self, root: Path, version: str | None = None) -> None:
        self.root = root
        self.version = own_version() if version is None else version
        self._folder = os.path.join(os.path.abspath(root), FOLDER)
        self._usable = not os.path.islink(self._folder)
        self._writable: set[str] = set()

    def read(self, kind: str, name: str, key: str, decode: Callable[[Any], _Decoded]) -> _Decoded | None:
        """The entry of this name if it was written under this key, decoded; else None."""
        text = self.read_text(kind, name, key)
        if text is None:
            return None
        try:
            return decode(json.loads(text))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return None

    def read_text(self, kind: str, name: str, key: str) -> str | None:
        """The JSON text of an entry."""
        if not self._usable:
            return None
        try:
            with open(self._path(kind, name), "rb") as file:
                header, _, payload = file.read().partition(b"\n")
        except OSError:
            return None
        if header != self._header(key, payload):
            return None
        return payload.decode("utf-8", "surrogatepass")

    def holds(self, kind: str) -> bool:
        """True when there may be entries of this kind."""
        return self._usable and os.path.isdir(os.path.join(self._folder, kind))

    def write(self, kind: str, name: str, key: str, data: Any) -> None:
        """Write an entry in place of the one of this name."""
        self.write_text(kind, name, key, json.dumps(data, separators=(",", ":"), ensure_ascii=True))

    def write_text(self, kind: str, name: str, key: str, text: str) -> None:
        """Write an entry that is JSON text already."""
        if not self._usable:
            return
        payload = text.encode("utf-8", "surrogatepass")
        path = self._path(kind, name)
        try:
            self._prepare(os.path.dirname(path))
            self._replace(path, self._header(key, payload) + b"\n" + payload)
        except OSError:
            self._usable = False

    def trim_runs(self) -> None:
        """Forget all but the latest whole runs."""
        folder = os.path.join(self._folder, "runs")
        with contextlib.suppress(OSError):
            entries = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
            for entry in entries[_MOST_RUNS:]:
                os.unlink(entry.path)

    def forget_others(self, kind: str, names: Iterable[str]) -> None:
        """Forget the entries of files that are no more."""
        kept = {os.path.basename(self._path(kind, name)) for name in names}
        with contextlib.suppress(OSError):
            for entry in os.scandir(os.path.join(self._folder, kind)):
                if entry.name.endswith(".json") and entry.name not in kept:
                    os.unlink(entry.path)

    def _path(self, kind: str, name: str) -> str:
        return os.path.join(self._folder, kind, hashed(name) + ".json")

    def _header(self, key: str, payload: bytes) -> bytes:
        check = blake2b(payload, digest_size=8).hexdigest()
        return f"graphmend {self.version} {hashed(key)} {check}".encode()

    def _prepare(self, folder: str) -> None:
        if folder in self._writable:
            return
        if not os.path.isdir(self._folder):
            os.makedirs(self._folder, exist_ok=True)
            for name, text in ((".gitignore", "# Made by graphmend.\n*\n"), ("CACHEDIR.TAG", _TAG)):
                self._replace(os.path.join(self._folder, name), text.encode())
        if os.path.islink(folder):
            raise OSError(f"{folder} is a link")
        os.makedirs(folder, exist_ok=True)
        self._writable.add(folder)

    def _replace(self, path: str, content: bytes) -> None:
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
