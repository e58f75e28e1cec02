"""The worktree whose code is measured: its folders on `sys.path`, and the proof that nothing else was imported.

This module does not import torch, so that a worktree comes first for torch's own imports too.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from pathlib import Path

_SOURCE_FOLDERS = ("src", "python", "lib")
_MODULES = frozenset({".py", ".so", ".pyc"})
_SKIPPED_FOLDERS = ("build", "dist", "node_modules", "site-packages")


class LoadError(Exception):
    """A model that cannot be measured. The text is one line: what, cause, way out."""


def add_to_path(root: Path, name: str) -> None:
    """Put the worktree's own source folders before everything that is installed."""
    for folder in source_folders(root, name):
        sys.path.insert(0, str(folder))


def source_folders(root: Path, name: str) -> list[Path]:
    """The worktree's own source folders, the one that is looked into last first."""
    top = _top(name)
    folders = [root, *(root / folder for folder in _SOURCE_FOLDERS if (root / folder).is_dir())]
    if not any(_provides(folder, top) for folder in folders):
        folders += [found for found in _folders_with(root, top) if found not in folders][:1]
    return folders


def provides_one_of(root: Path, name: str, modules: Set[str]) -> bool:
    """Whether one of `modules`, top-level names, would be imported from the worktree."""
    entries = [entry for folder in source_folders(root, name) if folder.is_dir() for entry in folder.iterdir()]
    return any(
        entry.name.partition(".")[0] in modules and (entry.suffix in _MODULES or (entry / "__init__.py").is_file())
        for entry in entries
    )


def check_origin(root: Path, name: str) -> None:
    """Make sure that what is measured is the worktree's code and not an installed copy of it.

    Raises `LoadError` when a package of the worktree was imported from elsewhere, or none was imported at all.
    """
    top = _top(name)
    seen = False
    for folder in [Path(entry) for entry in sys.path if Path(entry).is_relative_to(root)]:
        for package in _packages(folder, top):
            origin = _origin(package)
            if origin is None:
                continue
            if not origin.is_relative_to(root):
                raise LoadError(f"{package} was imported from {origin}, not from the worktree {root}")
            seen = True
    if not seen:
        raise LoadError(f"{name} imported nothing from the worktree {root}: its result would say nothing about it")


def own_versions(root: Path) -> tuple[tuple[str, str], ...]:
    """Python, torch, and each package of the worktree that is imported and knows its version."""
    found = {"python": sys.version.split()[0]}
    for name, module in list(sys.modules.items()):
        version = getattr(module, "__version__", None) if "." not in name else None
        file = getattr(module, "__file__", None)
        if version is not None and file and (name == "torch" or Path(file).is_relative_to(root)):
            found[name] = str(version)
    return tuple(found.items())


def own_files(root: Path) -> tuple[str, ...]:
    """The files of the worktree that are imported, relative to it, with forward slashes."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = {Path(file) for file in files if file}
    return tuple(sorted(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)))


def _top(name: str) -> str:
    from graphmend_evaluation.names import imported_package

    return imported_package(name)


def _provides(folder: Path, top: str) -> bool:
    return (folder / top).is_dir() or (folder / f"{top}.py").is_file()


def _folders_with(root: Path, top: str) -> list[Path]:
    """Folders at most three levels down that hold the package, nearest first."""
    found = [
        init.parent.parent
        for pattern in (f"*/{top}/__init__.py", f"*/*/{top}/__init__.py", f"*/*/*/{top}/__init__.py")
        for init in sorted(root.glob(pattern))
    ]
    return [
        folder
        for folder in found
        if not any(part.startswith(".") or part in _SKIPPED_FOLDERS for part in folder.relative_to(root).parts)
    ]


def _packages(folder: Path, top: str) -> list[str]:
    """Names that must come from `folder` when they are imported: the factory's own and all real packages in it."""
    names = {init.parent.name for init in folder.glob("*/__init__.py")} - sys.stdlib_module_names
    if _provides(folder, top):
        names.add(top)
    return sorted(names - {"graphmend_evaluation"})


def _origin(package: str) -> Path | None:
    module = sys.modules.get(package)
    if module is None:
        return None
    file = getattr(module, "__file__", None)
    if file is not None:
        return Path(file).resolve()
    places = list(getattr(module, "__path__", []))  # a package without __init__.py
    return Path(places[0]).resolve() if places else None
