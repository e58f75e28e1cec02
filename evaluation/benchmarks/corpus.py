"""The code that is measured: a package, copied into a git repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NO_BYTECODE = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True)
class SourceText:
    """One Python file: its path below the root, its size, and whether a module with a `forward` may stand in it."""

    path: str
    size: int
    lines: int
    has_forward: bool


@dataclass(frozen=True)
class Corpus:
    """A git repository and its Python files in order of path."""

    root: Path
    files: tuple[SourceText, ...]

    @property
    def size(self) -> int:
        """Bytes of all Python files."""
        return sum(file.size for file in self.files)

    @property
    def lines(self) -> int:
        """Lines of all Python files."""
        return sum(file.lines for file in self.files)


def make_corpus(package: Path, root: Path) -> Corpus:
    """Copy `package` into a new git repository at `root` and commit it there."""
    copy(package, root / "src" / package.name)
    _git(root, "init", "--quiet")
    _git(root, "add", "--all", "--force")
    _git(root, "-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost", "commit", "--quiet", "-m", "corpus")
    return Corpus(root, tuple(_described(path, root) for path in sorted(root.glob("src/**/*.py"))))


def copy(folder: Path, to: Path) -> None:
    """Copy a folder without compiled Python files."""
    shutil.copytree(folder, to, ignore=_NO_BYTECODE)


def sample(files: tuple[SourceText, ...], count: int) -> tuple[SourceText, ...]:
    """At most `count` files, of all sizes: of the files in order of size, each so-and-so-manieth."""
    by_size = sorted(files, key=lambda file: (file.size, file.path))
    if count >= len(by_size):
        return tuple(by_size)
    return tuple(by_size[(2 * number + 1) * len(by_size) // (2 * count)] for number in range(count))


def near_length(files: tuple[SourceText, ...], lines: int, count: int) -> tuple[SourceText, ...]:
    """The `count` files whose length is nearest to `lines`, those with a `forward` before all others."""
    return tuple(sorted(files, key=lambda file: (not file.has_forward, abs(file.lines - lines), file.path))[:count])


def _described(path: Path, root: Path) -> SourceText:
    raw = path.read_bytes()
    has_forward = b"nn.Module" in raw and b"def forward" in raw
    return SourceText(path.relative_to(root).as_posix(), len(raw), len(raw.splitlines()), has_forward)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *arguments], cwd=folder, check=True, capture_output=True)
