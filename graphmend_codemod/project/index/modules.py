"""Mapping between dotted module names and files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_USUAL_BASES = ("", "src", "lib", "python")


class PackageLayout:
    """The folders of a project as Python's import system would see them. Paths are relative to the root, with `/`.

    `files` are all Python files where they are known: their folders are searched too, as a monorepo needs it.
    """

    def __init__(self, root: Path, files: Iterable[str] = ()) -> None:
        self._root = os.path.abspath(root)
        self._entries: dict[str, frozenset[str]] = {}
        self._located: dict[tuple[str, str], str | None] = {}
        self._bases: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._prefix = self._package_of_root()
        files = sorted(files)
        bases = {self.base(path) for path in files}
        self._search = (*_USUAL_BASES, *sorted(bases.difference(_USUAL_BASES)))
        for path in files:
            self.name(path)

    def _package_of_root(self) -> tuple[str, ...]:
        parts: list[str] = []
        folder = self._root
        while os.path.isfile(os.path.join(folder, "__init__.py")):
            folder, name = os.path.split(folder)
            parts.append(name)
        return tuple(reversed(parts))

    def _listing(self, folder: str) -> frozenset[str]:
        entries = self._entries.get(folder)
        if entries is None:
            try:
                entries = frozenset(os.listdir(os.path.join(self._root, folder) if folder else self._root))
            except OSError:
                entries = frozenset()
            self._entries[folder] = entries
        return entries

    def _is_package(self, folder: str) -> bool:
        return "__init__.py" in self._listing(folder)

    def base(self, path: str) -> str:
        """The folder from which the module at `path` is imported: the first above it that is no package."""
        folder = path.rpartition("/")[0]
        base = self._bases.get(folder)
        if base is None:
            base = folder
            while base and not base.endswith("..") and self._is_package(base):
                base = base.rpartition("/")[0]
            self._bases[folder] = base
        return base

    def name(self, path: str) -> str:
        """The dotted name of the module at `path`, never shared by two paths.

        A module outside of packages is called by its whole path, so that two scripts of one name differ.
        """
        name = self._names.get(path)
        if name is None:
            name = self._dotted(self._importable(path), path)
            if self._paths.setdefault(name, path) != path:
                name = self._dotted(path, path)
                while self._paths.setdefault(name, path) != path:
                    name += "_"
            self._names[path] = name
        return name

    def path(self, name: str) -> str | None:
        """The file of a name that `name` gave; None where there is none."""
        return self._paths.get(name)

    def _importable(self, path: str) -> str:
        folder, base = path.rpartition("/")[0], self.base(path)
        if folder != base:
            return path[len(base) + 1 :] if base else path
        first, _, rest = path.partition("/")
        return rest if rest and first in _USUAL_BASES else path

    def _dotted(self, inside: str, path: str) -> str:
        parts = inside.removesuffix(".py").split("/")
        if parts[-1] == "__init__" and (len(parts) > 1 or self._prefix):
            parts.pop()
        if self._prefix and not path.startswith(".."):
            parts = [*self._prefix, *parts]
        return ".".join(part.replace(".", "_") for part in parts)

    def locate(self, name: str, importer: str) -> str | None:
        """The file of the absolute module `name` as the module at `importer` finds it; None outside the project."""
        base = self.base(importer)
        key = (base, name)
        if key not in self._located:
            self._located[key] = self._locate(name, base)
        return self._located[key]

    def _locate(self, name: str, base: str) -> str | None:
        parts = name.split(".")
        if self._prefix and tuple(parts[: len(self._prefix)]) == self._prefix:
            return self.below("", parts[len(self._prefix) :])
        for folder in (base, *self._search):
            found = self.below(folder, parts)
            if found is not None:
                return found
        return None

    def below(self, folder: str, parts: list[str]) -> str | None:
        """The file of the package or module that these names reach from `folder`; without names, its `__init__.py`."""
        if not parts:
            return _join(folder, "__init__.py") if self._is_package(folder) else None
        for part in parts[:-1]:
            if part not in self._listing(folder):
                return None
            folder = _join(folder, part)
        entries = self._listing(folder)
        inner = _join(folder, parts[-1])
        if parts[-1] in entries and self._is_package(inner):
            return f"{inner}/__init__.py"
        return f"{inner}.py" if f"{parts[-1]}.py" in entries else None

    def relative(self, level: int, parts: list[str], importer: str) -> str | None:
        """The file of a relative import with `level` dots in the module at `importer`; None where there is none."""
        folder = importer.rpartition("/")[0]
        for _ in range(level - 1):
            if not folder:
                return None
            folder = folder.rpartition("/")[0]
        return self.below(folder, parts)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
