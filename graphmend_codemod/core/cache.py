"""The cache on disk: file summaries by content, findings by all their dependencies, complete runs.

It lies in the user's cache folder and not in the project, so that no repository can bring one along, nothing shows up
in a checkout, and read-only checkouts have one, too. Entries are JSON: they can be wrong but cannot run anything, and
one that is broken or was made by another version counts as absent. Writing goes through a rename, so runs may share
the folder. A cache that cannot be used is no cache: it is never needed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from graphmend_codemod.core.cache_folder import CacheFolder, Unsafe
from graphmend_codemod.core.digests import blake2b

VARIABLE = "GRAPHMEND_CACHE_DIR"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache made by graphmend; it can be deleted.\n"
_MOST_RUNS = 16
_UNUSED = 60 * 86400.0  # seconds after which a project's entries go
_Decoded = TypeVar("_Decoded")


def hashed(*parts: str) -> str:
    """A short name for texts."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def own_version(package: str = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) -> str:
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


def cache_folder() -> str | None:
    """The folder of all caches: `GRAPHMEND_CACHE_DIR`, or `graphmend` in the user's cache folder; None without one."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    user = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(user):  # as https://specifications.freedesktop.org/basedir-spec has it
        home = os.path.expanduser("~")
        if not os.path.isabs(home) or not _is_ours(home):
            return None
        user = os.path.join(home, *(("Library", "Caches") if sys.platform == "darwin" else (".cache",)))
    return os.path.join(user, "graphmend")


def _is_ours(home: str) -> bool:
    """False under `sudo` with the home of somebody else, who could not write there afterwards."""
    try:
        return os.stat(home).st_uid == os.geteuid()
    except OSError:
        return False


class Cache:
    """Entries of one project. Four kinds: `summaries`, `findings`, `runs`, `reach`.

    `refused` says why a cache that is there is not used, if that is for its user to know.
    """

    def __init__(self, root: Path, version: str | None = None) -> None:
        self.root = root
        self.version = own_version() if version is None else version
        self.refused: str | None = None
        self._project: CacheFolder | None = None
        self._kinds: dict[str, CacheFolder | None] = {}
        self._writable = False
        self._usable = self._find()

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.root, self.version)

    def read(self, kind: str, name: str, key: str, decode: Callable[[Any], _Decoded]) -> _Decoded | None:
        """The entry of this name if it was written under this key, decoded; else None."""
        text = self.read_text(kind, name, key)
        if text is None:
            return None
        try:
            return decode(json.loads(text))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, MemoryError):
            return None

    def read_text(self, kind: str, name: str, key: str) -> str | None:
        """The JSON text of an entry; None where there is none."""
        folder = self._kind(kind)
        content = None if folder is None else folder.read(_entry(name))
        if content is None:
            return None
        header, _, payload = content.partition(b"\n")
        if header != self._header(key, payload):
            return None
        return payload.decode("utf-8", "surrogatepass")

    def holds(self, kind: str) -> bool:
        """True when there may be entries of this kind."""
        return self._kind(kind) is not None

    def write(self, kind: str, name: str, key: str, data: Any) -> None:
        """Write an entry in place of the one of this name."""
        self.write_text(kind, name, key, json.dumps(data, separators=(",", ":"), ensure_ascii=True))

    def write_text(self, kind: str, name: str, key: str, text: str) -> None:
        """Write an entry that is JSON text already."""
        if not self._usable:
            return
        payload = text.encode("utf-8", "surrogatepass")
        try:
            folder = self._kind_to_write(kind)
            folder.write(_entry(name), self._header(key, payload) + b"\n" + payload)
        except OSError as error:
            self._refuse(error)

    def trim_runs(self) -> None:
        """Forget all but the latest whole runs."""
        folder = self._kind("runs")
        if folder is not None:
            for each in sorted(folder.entries(), key=lambda entry: entry.modified, reverse=True)[_MOST_RUNS:]:
                folder.remove(each.name)
            folder.sweep(time.time())

    def forget_others(self, kind: str, names: Iterable[str]) -> None:
        """Forget the entries of files that are no more."""
        folder = self._kind(kind)
        if folder is not None:
            kept = set(map(_entry, names))
            for each in folder.entries():
                if each.name not in kept:
                    folder.remove(each.name)
            folder.sweep(time.time())

    def _header(self, key: str, payload: bytes) -> bytes:
        check = blake2b(payload, digest_size=8).hexdigest()
        return f"graphmend {self.version} {hashed(key)} {check}".encode()

    # -- folders ---------------------------------------------------------------------------------------------------

    def _find(self) -> bool:
        """Whether there is a place for a cache; opens the project's folder if it is there."""
        base = cache_folder()
        if base is None:
            return False
        root = os.path.realpath(self.root)
        self._base = base
        self._name = f"{os.path.basename(root) or 'root'}-{hashed(root)}"
        try:
            _require_no_link(base, os.path.abspath(self.root))
            if os.path.lexists(base):
                _require_untracked(base)
                self._project = CacheFolder(self._name, inside=CacheFolder(base)).require_ours()
        except FileNotFoundError:
            return True
        except OSError as error:
            self._refuse(error)
            return False
        return True

    def _refuse(self, error: OSError) -> None:
        self._usable = False
        self._kinds.clear()
        if isinstance(error, Unsafe):
            self.refused = f"the cache in {self._base} is not used: it {error}"

    def _kind(self, kind: str) -> CacheFolder | None:
        if not self._usable or self._project is None:
            return None
        if kind not in self._kinds:
            try:
                self._kinds[kind] = CacheFolder(kind, inside=self._project).require_ours()
            except FileNotFoundError:
                self._kinds[kind] = None
            except OSError as error:
                self._refuse(error)
                return None
        return self._kinds[kind]

    def _kind_to_write(self, kind: str) -> CacheFolder:
        if not self._writable:
            self._prepare()
        folder = self._kinds.get(kind)
        if folder is None:
            folder = CacheFolder(kind, inside=self._project, make=True).require_ours()
            self._kinds[kind] = folder
        return folder

    def _prepare(self) -> None:
        os.makedirs(os.path.dirname(self._base), exist_ok=True)
        base = CacheFolder(self._base, make=True)
        if base.made:
            base.write("CACHEDIR.TAG", _TAG.encode())
            base.write(".gitignore", b"# Made by graphmend.\n*\n")
        self._project = CacheFolder(self._name, inside=base, make=True).require_ours()
        if self._project.made:
            for each in base.folders():
                if _is_project(each.name) and time.time() - each.modified > _UNUSED:
                    base.remove_folder(each.name)
        self._project.touch()
        self._writable = True


def _entry(name: str) -> str:
    return f"{hashed(name)}.json"


def _is_project(name: str) -> bool:
    _, dash, digest = name.rpartition("-")
    return bool(dash) and len(digest) == 32 and set(digest) <= set("0123456789abcdef")


def _require_no_link(base: str, top: str) -> None:
    """Inside of a project or a repository, a link may have come with it."""
    inside = os.path.join(top, "")
    if base.startswith(inside) and os.path.realpath(base) != os.path.join(os.path.realpath(top), base[len(inside) :]):
        raise Unsafe(f"is reached through a link in {top}; choose another folder with {VARIABLE}")


def _require_untracked(base: str) -> None:
    """What git tracks was written by whoever wrote the repository."""
    top = base
    while not os.path.lexists(os.path.join(top, ".git")):
        above = os.path.dirname(top)
        if above == top:
            return
        top = above
    _require_no_link(base, top)
    from graphmend_codemod.core.discovery import git_lists

    if git_lists(top, "--cached", "--", f":(literal){os.path.relpath(base, top)}"):
        raise Unsafe(
            f"is tracked by git; remove it with `git rm -r --cached`, or choose another folder with {VARIABLE}"
        )
