"""Writing a file in one step, without losing what another program writes at the same time.

The new text is written beside the file. Where the system can (Linux), both then change places, and what was in the file
at that moment is compared once more: an edit that came in between goes back to its place. Each file of ours is locked
while its process lives; what killed processes have left, `remove_leftovers` removes. Files named `.tmp` hold nothing
but a part of our own text; a `.swap` may hold what another program wrote, and goes only when it is known not to.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphmend_codemod.core.digests import blake2b
from graphmend_codemod.core.source import SourceError, read_bytes

MARK = ".graphmend-"
_WRITING, _SWAPPING = ".tmp", ".swap"
_NAME_SHOWN = 40  # characters of the file's name in ours, which must not get too long
_YOUNG = 5.0  # seconds in which an empty file may be one that its process is about to lock
_CHANGED = "was changed by another process while graphmend ran; run it again"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_atomically(path: Path, before: bytes, after: bytes, *, root: Path | None = None) -> None:
    """Replace a file's content in one step, keeping its mode, owner and extended attributes.

    Refuses with SourceError, leaving everything as it was, when the content is no longer `before`, the file is
    read-only, or a symbolic link leads out of `root` (without `root`, and for a path outside of it: out of the folder
    of `path`). A link stays a link and its target is written; other hard links to the same content keep the old one.
    """
    try:
        target = path.resolve(strict=True)
        named = Path(os.path.abspath(path))  # a file outside of the project is one that the user named
        inside = root is not None and (
            named.is_relative_to(os.path.abspath(root)) or named.is_relative_to(root.resolve())
        )
        if not target.is_relative_to((root if root is not None and inside else path.parent).resolve(strict=True)):
            raise SourceError(f"is a link to {target}, outside the project; skipped")
        status = os.stat(target)
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise SourceError("is read-only; make it writable or exclude it")
        _replace(target, before, after, status)
    except (OSError, RuntimeError) as error:  # RuntimeError: pathlib's answer to a symlink loop before Python 3.13
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SourceError(f"cannot be written: {reason}; it was not changed") from error


def remove_leftovers(folders: Iterable[str]) -> Iterator[str]:
    """Remove what killed processes have left in these folders. Yields a note for what may be somebody's text."""
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                names = [each.name for each in entries if MARK in each.name]
        except OSError:
            continue
        for name in names:
            if name.startswith(".") and name.endswith((_WRITING, _SWAPPING)):
                path = os.path.join(folder, name)
                if _is_abandoned(path) and not _remove(path):
                    yield (
                        f"{path} contains an edit by someone else, saved when an earlier run was killed; "
                        "compare it with the file, then delete it"
                    )


def _replace(target: Path, before: bytes, after: bytes, status: os.stat_result) -> None:
    import shutil

    name = os.path.join(target.parent, f".{target.name[:_NAME_SHOWN]}{MARK}")
    writing = f"{name}{os.urandom(8).hex()}{_WRITING}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(writing, flags, 0o600)
    _lock(handle)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(after)
            file.flush()
            os.fsync(handle)
        with contextlib.suppress(PermissionError):
            if hasattr(os, "chown"):
                os.chown(writing, status.st_uid, status.st_gid)
        shutil.copystat(target, writing)
        os.utime(writing)
        if read_bytes(target) != before:
            raise SourceError(_CHANGED)
        _change_places(writing, f"{name}{_digest(before)}{_digest(after)}{_SWAPPING}", target, before, after)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(writing)
        raise
    finally:
        os.close(handle)


def _change_places(writing: str, swap: str, target: Path, before: bytes, after: bytes) -> None:
    from graphmend_codemod.core.interruption import uninterrupted

    with uninterrupted(), open(target, "rb") as old:
        _lock(old.fileno())  # which lies at `swap` for a while
        os.rename(writing, swap)
        try:
            exchanged = _exchange(swap, target)
        except OSError:
            os.unlink(swap)
            raise
        if not exchanged:
            os.replace(swap, target)
        elif _holds(swap, before):
            os.unlink(swap)
        else:
            _give_back(swap, target, after)


def _give_back(swap: str, target: Path, after: bytes) -> None:
    """Put what another program wrote in its place again."""
    _exchange(swap, target)
    if _holds(swap, after):
        os.unlink(swap)
        raise SourceError(_CHANGED)
    kept = f"{target}{MARK}kept-{os.urandom(4).hex()}"
    os.rename(swap, kept)
    raise SourceError(f"was changed twice while graphmend was writing it; one of the texts is in {kept}")


def _exchange(first: str, second: Path) -> bool:
    """Let two files change places in one step. False where the system or the file system cannot. Raises OSError."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes
    import errno

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:  # a C library without it
        return False
    done = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), ctypes.c_uint(_RENAME_EXCHANGE))
    if done == 0:
        return True
    error = ctypes.get_errno()
    if error in {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENOTSUP}:
        return False
    raise OSError(error, os.strerror(error), first)


def _holds(path: str, content: bytes) -> bool:
    try:
        return read_bytes(path) == content
    except SourceError:
        return False


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def _lock(handle: int) -> bool:
    """Lock a file until it is closed or the process dies. False when another process holds it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_abandoned(path: str) -> bool:
    if sys.platform == "win32":  # which lets nobody delete a file that is open
        return True
    import time

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        young = status.st_size == 0 and time.time() - status.st_mtime < _YOUNG
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        return ours and not young and _lock(handle)
    finally:
        os.close(handle)


def _remove(path: str) -> bool:
    """Remove a file of ours; False when it holds what is not known to be ours or to be in its place again."""
    if path.endswith(_SWAPPING):
        digests = path.removesuffix(_SWAPPING)[-32:]
        try:
            held = _digest(read_bytes(path))
        except SourceError:
            return True
        if held not in (digests[:16], digests[16:]):
            return False
    with contextlib.suppress(OSError):
        os.unlink(path)
    return True
