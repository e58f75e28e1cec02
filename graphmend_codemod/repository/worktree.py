"""A temporary git work tree, always removed.

A run that was killed cannot remove its own. The next one does: a work tree is stale when nobody locks its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from graphmend_codemod.core.interruption import uninterrupted
from graphmend_codemod.repository.checkout import Checkout, Commit
from graphmend_codemod.repository.git import Git, GitFailed, RepositoryError

_REGULAR = {"100644", "100755"}
_LINK = "120000"
_SUBMODULE = "160000"
_LOCK = "lock"
_PREFIX = f"graphmend-{re.sub(r'[^A-Za-z0-9]', '_', socket.gethostname()) or 'local'}-"
_OURS = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_NEWBORN = 10.0  # seconds
_SUFFIXES = (".py", ".pyi")
_NAMES = frozenset({"pyproject.toml", "setup.cfg"})
_LEFT_OUT_ALREADY = r"^(core\.sparsecheckout|extensions\.partialclone|remote\..*\.promisor)$"


@dataclass(frozen=True)
class Entry:
    """What git tracks at one path."""

    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """True for a regular file; false for a symbolic link and a submodule."""
        return self.mode in _REGULAR


@dataclass(frozen=True)
class Worktree:
    """A checked-out commit. `entries` are keyed by path from the root, with forward slashes.

    Files at the paths of `missing` are in git's index, and so in each tree that is written from it, but not on disk.
    """

    git: Git
    commit: Commit
    entries: Mapping[str, Entry]
    missing: Collection[str] = ()

    @property
    def root(self) -> Path:
        """The folder of the work tree."""
        return self.git.folder

    @property
    def submodules(self) -> tuple[str, ...]:
        """Paths of submodules; their folders are empty here."""
        return tuple(path for path, entry in self.entries.items() if entry.mode == _SUBMODULE)

    def has_folder(self, path: str) -> bool:
        """Whether the commit has something in the folder at `path`, on disk or not; the root's path is empty."""
        return not path or path in self.submodules or any(name.startswith(f"{path}/") for name in self.entries)

    def write(self, path: str) -> None:
        """Put one file on disk that may have been left out."""
        if os.path.lexists(self.root / path) or path not in self.entries:
            return
        if path in self.missing:
            _write_files(self.git, self.commit, [path])
        else:  # left out by a sparse checkout
            with _told_of_space(self.commit, self.root):
                content = self.git.output("cat-file", "blob", self.entries[path].oid)
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(content)

    def complete(self) -> Worktree:
        """The same with all files on disk. Raises `RepositoryError` when they cannot be written (no space)."""
        _write_files(self.git, self.commit, self.missing)
        return replace(self, missing=())


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for one run, locked while the run lives, removed at its end; those of runs that were killed go first."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    try:
        with (folder / _LOCK).open("wb") as lock:
            _lock(lock)
            yield folder
    finally:
        with uninterrupted():
            shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Remove the folders of this user's runs on this machine that were killed: nobody locks them."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if _OURS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) and _is_left(entry):
                    with uninterrupted():
                        shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    told = entry.stat(follow_symlinks=False)
    if hasattr(os, "getuid") and told.st_uid != os.getuid():
        return False
    # One that is being made is not locked yet.
    return time.time() - told.st_mtime > _NEWBORN and _is_abandoned(Path(entry.path))


def is_source(path: str) -> bool:
    """Whether the file at a path can matter to what reads and fixes code, and runs none of it."""
    folder, _, name = path.rpartition("/")
    requirements = name.endswith(".txt") and (name.startswith("requirements") or folder.endswith("requirements"))
    return name.endswith(_SUFFIXES) or name in _NAMES or requirements


@contextlib.contextmanager
def worktree(
    checkout: Checkout, commit: Commit, folder: Path, *, only: Callable[[str], bool] | None = None
) -> Iterator[Worktree]:
    """Check `commit` out, detached, into a new folder in `folder`: one of `temporary_folder`, or a folder in it.

    Python files hold the committed bytes, without conversion of line endings, keywords or encodings, so that what is
    written from them changes only what was edited. With `only`, files at other paths are left out (`missing`), except
    symbolic links, which may lead to packages; not in a repository that leaves files out by itself.

    Raises `RepositoryError` when git cannot make it (no space, read-only repository).
    """
    root = folder / _folder_name(checkout)
    chooses = only is not None and not _leaves_files_out(checkout)
    try:
        _add(checkout, commit, root)
        git = Git(root)
        if chooses:
            git.output("read-tree", commit.oid)
        else:
            with _told_of_space(commit, root):
                git.output("reset", "--quiet", "--hard", "--no-recurse-submodules")
        entries = dict(_entries(git))
        missing: frozenset[str] = frozenset()
        if only is not None and chooses:
            files = {path: entry for path, entry in entries.items() if entry.mode != _SUBMODULE}
            missing = frozenset(path for path, entry in files.items() if entry.mode != _LINK and not only(path))
            _write_files(git, commit, files.keys() - missing)
        _undo_conversions(git, entries)
        yield Worktree(git, commit, entries, missing)
    finally:
        with uninterrupted():
            _remove(checkout, root)


def remove_stale_worktrees(checkout: Checkout) -> None:
    """Remove what runs on this machine that were killed have left. Running ones and other people's are not touched."""
    for root in _registered(checkout):
        folder = _run_folder(root)
        if folder is not None and _is_abandoned(folder):
            with uninterrupted():
                _remove(checkout, root)
                shutil.rmtree(folder, ignore_errors=True)


def blob_id(data: bytes, like: str) -> str:
    """The id that git gives to a file's bytes, in the hash function of the id `like`."""
    algorithm = hashlib.sha256 if len(like) == hashlib.sha256().digest_size * 2 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest()


def _add(checkout: Checkout, commit: Commit, root: Path) -> None:
    # No files yet: the settings may include others for this work tree alone, which are only known once it is there.
    with _told_of_space(commit, root):
        checkout.git.output("worktree", "add", "--quiet", "--detach", "--no-checkout", str(root), commit.oid)


def _write_files(git: Git, commit: Commit, paths: Collection[str]) -> None:
    """Check files of the index out that are not on disk yet."""
    if not paths:
        return
    with _told_of_space(commit, git.folder):
        names = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
        # Names that differ only in case may be one file on this disk: as in any checkout, the last one is there.
        git.output("checkout-index", "--quiet", "--force", "-z", "--stdin", stdin=names)


@contextlib.contextmanager
def _told_of_space(commit: Commit, root: Path) -> Iterator[None]:
    try:
        yield
    except GitFailed as error:
        # Git does not say why it could not write a file.
        if "unable to write" not in error.detail:
            raise
        raise RepositoryError(
            f"{commit} cannot be checked out into {root.parent}: {error.detail}; "
            "is the disk full? TMPDIR may name a folder with more space"
        ) from error


def _leaves_files_out(checkout: Checkout) -> bool:
    """Whether work trees of this repository are sparse, or files may have to be fetched, which git does in one go."""
    try:
        found = checkout.git.text("config", "-z", "--get-regexp", _LEFT_OUT_ALREADY)
    except GitFailed:
        return False
    settings = (setting.partition("\n") for setting in found.split("\0") if setting)
    return any(name != "core.sparsecheckout" or value != "false" for name, _, value in settings)


def _entries(git: Git) -> Iterator[tuple[str, Entry]]:
    for line in git.output("ls-files", "--stage", "-z").split(b"\0"):
        if line:
            facts, path = line.split(b"\t", 1)
            mode, oid, _stage = facts.decode("ascii").split()
            yield os.fsdecode(path), Entry(mode, oid)


def _undo_conversions(git: Git, entries: Mapping[str, Entry]) -> None:
    for path, entry in entries.items():
        file = git.folder / path
        # A sparse checkout leaves files out.
        if not path.endswith(_SUFFIXES) or not entry.is_file or not file.is_file():
            continue
        if blob_id(file.read_bytes(), like=entry.oid) != entry.oid:
            file.write_bytes(git.output("cat-file", "blob", entry.oid))


def _folder_name(checkout: Checkout) -> str:
    """The repository's own name, since a flat package is imported by it, unless git or tools may stumble over it."""
    return checkout.name if re.fullmatch(r"[A-Za-z0-9_][\w.-]*", checkout.name, re.ASCII) else "repository"


def _registered(checkout: Checkout) -> list[Path]:
    """Roots of all linked work trees. Read from git's files: `git worktree list -z` is younger than the gits in use."""
    roots = []
    for record in (checkout.common / "worktrees").glob("*/gitdir"):
        with contextlib.suppress(FileNotFoundError):
            git_file = os.fsdecode(record.read_bytes().removesuffix(b"\n"))
            roots.append(Path(os.path.normpath(record.parent / git_file)).parent)
    return roots


def _run_folder(root: Path) -> Path | None:
    """The temporary folder of the run that made this work tree; None for other people's work trees."""
    return next((parent for parent in root.parents[:2] if _OURS.fullmatch(parent.name)), None)


def _is_abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb+") as lock:
            _lock(lock)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _lock(file: IO[bytes]) -> None:
    """Lock until the file is closed or the process dies. Raises `OSError` when another process holds it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(checkout: Checkout, root: Path) -> None:
    if root not in _registered(checkout):
        shutil.rmtree(root, ignore_errors=True)
        return
    try:
        checkout.git.output("worktree", "remove", "--force", "--force", str(root))
    except RepositoryError as error:
        shutil.rmtree(root, ignore_errors=True)
        _forget(checkout, root, error)


def _forget(checkout: Checkout, root: Path, cause: RepositoryError) -> None:
    """Delete git's record of a work tree that git cannot remove, as `git worktree prune` would for all of them."""
    for record in (checkout.common / "worktrees").glob("*/gitdir"):
        with contextlib.suppress(FileNotFoundError):
            if os.fsdecode(record.read_bytes().removesuffix(b"\n")) == str(root / ".git"):
                shutil.rmtree(record.parent, ignore_errors=True)
    if root in _registered(checkout):
        raise RepositoryError(f"cannot remove the temporary work tree {root} ({cause}); run `git worktree prune`")
