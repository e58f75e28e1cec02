"""A cache of git objects that many repositories share, so that a fetch brings only what no earlier one has brought.

It has a store for each host and repository name, so that forks share one. A store holds commits, folders and the files
of `sources.py`; it is lent as an `alternates` folder. All of it can be fetched again: it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.forge.location import Location
from graphmend_codemod.repository.git import Git

_MOST_PACKS = 50
_TIPS = "refs/tips"
_NEW, _OLD = "new-", "old-"
_LEFT_BEHIND = 3600.0  # seconds; to make or to delete a store takes some


@dataclass(frozen=True)
class Store:
    """A bare repository that is lent; `tip` names what it remembers of the borrower."""

    folder: Path
    tip: str

    def lend_to(self, workspace: Git) -> None:
        """Let a new repository read from here. What the store knows has no history, as in a shallow clone."""
        info = workspace.folder / "objects" / "info"
        info.mkdir(exist_ok=True)
        (info / "alternates").write_bytes(os.fsencode(self.folder / "objects") + b"\n")
        tips = sorted(set(Git(self.folder).text("for-each-ref", "--format=%(objectname)", _TIPS).split()))
        if tips:
            (workspace.folder / "shallow").write_text("".join(f"{tip}\n" for tip in tips), encoding="ascii")

    def keep(self, workspace: Git, commit: str) -> None:
        """Take over what `workspace` has fetched; `commit` is what was fetched last."""
        packs = self.folder / "objects" / "pack"
        for index in sorted((workspace.folder / "objects" / "pack").glob("*.idx")):
            # A pack counts from the moment that its index is there.
            for suffix in (".pack", ".promisor", ".idx"):
                if index.with_suffix(suffix).exists():
                    _place(index.with_suffix(suffix), packs / index.with_suffix(suffix).name)
        Git(self.folder).text("update-ref", self.tip, commit)


@contextlib.contextmanager
def borrowed(cache: Path, location: Location) -> Iterator[Store]:
    """The store for a repository; while it is lent nobody deletes it. Raises `OSError`."""
    name = location.path.rpartition("/")[2].lower()
    key = hashlib.sha256(f"{location.host}/{name}".encode()).hexdigest()[:24]
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{key}.git"
    _sweep(cache)
    with (cache / f"{key}.lock").open("wb") as lock:
        _discard_if_full(folder, lock.fileno())
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not folder.is_dir():
            _make(folder)
        yield Store(folder, f"{_TIPS}/{hashlib.sha256(location.url.encode()).hexdigest()[:24]}")


def _discard_if_full(folder: Path, lock: int) -> None:
    """Begin again when a store has become many small packs, unless others read from it now."""
    if len(list((folder / "objects" / "pack").glob("*.idx"))) < _MOST_PACKS:
        return
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        over = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_OLD))
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, over / folder.name)
        shutil.rmtree(over, ignore_errors=True)


def _sweep(cache: Path) -> None:
    """Remove what processes that were killed have left."""
    for left in (*cache.glob(f"{_NEW}*"), *cache.glob(f"{_OLD}*")):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
                shutil.rmtree(left, ignore_errors=True)


def _make(folder: Path) -> None:
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_NEW))
    Git(made).text("init", "--quiet", "--bare", "--template=", "--", str(made))
    try:
        os.rename(made, folder)
    except OSError:  # another process was faster
        shutil.rmtree(made, ignore_errors=True)
        if not folder.is_dir():
            raise


def _place(source: Path, target: Path) -> None:
    if target.exists():
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix="tmp_")
    os.close(handle)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        try:
            os.link(source, name)
        except OSError:  # another file system
            shutil.copyfile(source, name)
        os.replace(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
