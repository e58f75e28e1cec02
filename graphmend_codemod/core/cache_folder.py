"""The one place that opens, writes and removes entries of the cache.

A folder may have been prepared by somebody else: links, pipes, devices and huge files are neither followed nor read.
It is opened once, without following a link, and everything in it is reached relative to what was opened, so that
nothing that is put in its place meanwhile matters either.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

MOST_BYTES = 64 * 2**20
_ENTRY = ".json"
_UNFINISHED = ".tmp"
_TOO_OLD_TO_BE_WRITTEN = 3600.0
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Unsafe(OSError):
    """A folder that is not to be used. The text is the reason, in words that follow the folder's name."""


class Stored(NamedTuple):
    """A name in a folder, and when it was written."""

    name: str
    modified: float


class CacheFolder:
    """A folder that is held open. Raises `Unsafe` for a link, OSError where there is none."""

    handle: int

    def __init__(self, path: str, *, inside: CacheFolder | None = None, make: bool = False) -> None:
        if os.open not in os.supports_dir_fd:
            raise OSError("this system cannot open files relative to a folder")
        above = None if inside is None else inside.handle
        self.made = False
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700, dir_fd=above)
                self.made = True
        try:
            self.handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Unsafe("is a link or not a folder") from error

    def __del__(self) -> None:
        handle = self.__dict__.pop("handle", None)
        if handle is not None:
            os.close(handle)

    def require_ours(self) -> CacheFolder:
        """The folder itself. Raises `Unsafe` when others could have put something into it."""
        status = os.fstat(self.handle)
        if status.st_uid != os.geteuid():
            raise Unsafe("belongs to another user")
        if status.st_mode & _OTHERS_MAY_WRITE:
            raise Unsafe("can be written to by other users")
        return self

    def read(self, name: str) -> bytes | None:
        """What is in a regular file of a usual size; None for anything else."""
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=self.handle)
        except OSError:
            return None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return None
            with open(handle, "rb", closefd=False) as file:
                content = file.read(MOST_BYTES + 1)
        except OSError:
            return None
        finally:
            os.close(handle)
        return content if len(content) <= MOST_BYTES else None

    def write(self, name: str, content: bytes) -> None:
        """Put a file in place of the one with this name, in one step. Raises OSError."""
        if len(content) > MOST_BYTES:
            return
        temporary = f"{name}.{os.urandom(12).hex()}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(temporary, flags, 0o600, dir_fd=self.handle)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, name, src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except BaseException:
            self._unlink(temporary)
            raise

    def entries(self) -> Iterator[Stored]:
        """Entries that are regular files."""
        yield from self._stored(_ENTRY)

    def remove(self, name: str) -> None:
        """Remove an entry; a link goes, what it leads to stays."""
        if name.endswith(_ENTRY):
            self._unlink(name)

    def sweep(self, now: float) -> None:
        """Remove what runs that were killed have left half written."""
        for each in self._stored(_UNFINISHED):
            if now - each.modified > _TOO_OLD_TO_BE_WRITTEN:
                self._unlink(each.name)

    def folders(self) -> Iterator[Stored]:
        """Folders in this one."""
        for name in self._names():
            status = self._status(name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                yield Stored(name, status.st_mtime)

    def remove_folder(self, name: str) -> None:
        """Remove a folder of this one with folders of entries in it; what else is in it keeps it there."""
        with contextlib.suppress(OSError):
            project = CacheFolder(name, inside=self).require_ours()
            for kind in project.folders():
                project._remove_entries(kind.name)
            os.rmdir(name, dir_fd=self.handle)

    def touch(self) -> None:
        """Note that the folder is in use."""
        with contextlib.suppress(OSError):
            os.utime(self.handle)

    def _remove_entries(self, name: str) -> None:
        with contextlib.suppress(OSError):
            folder = CacheFolder(name, inside=self).require_ours()
            for each in (*folder._stored(_ENTRY), *folder._stored(_UNFINISHED)):
                folder._unlink(each.name)
            os.rmdir(name, dir_fd=self.handle)

    def _stored(self, suffix: str) -> Iterator[Stored]:
        for name in self._names():
            if name.endswith(suffix):
                status = self._status(name)
                if status is not None and stat.S_ISREG(status.st_mode):
                    yield Stored(name, status.st_mtime)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.handle)
        except OSError:
            return []

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError:
            return None

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self.handle)
