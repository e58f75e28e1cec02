"""Check early that the module which builds a model exists at a commit."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Collection
from pathlib import Path

_NAMED = "huggingface:"
_FROM_ELSEWHERE = ("huggingface-id:", "huggingface-id-trusted:", "recorded:")
_SUFFIXES = (".py", "/__init__.py")


def missing_module(model: str, paths: Collection[str], top: Path | None, commit: str) -> str | None:
    """Why `model` cannot be made at `commit`, whose files are `paths`, and what to do; None when its module is there.

    A module that the repository does not have may be installed. `top` is the user's own checkout, where it may lie
    uncommitted. Imports nothing.
    """
    if model.startswith(_FROM_ELSEWHERE):
        return None
    module = model.removeprefix(_NAMED).partition(":")[0]
    inside = module.replace(".", "/")
    if _is_there(inside, paths):
        return None
    package = module.partition(".")[0]
    if not _is_there(package, paths) and _is_installed(package, top):
        return None
    found = None if top is None else _in_checkout(top, inside)
    if found is not None:
        return f"model {model}: {found} is not at {commit}; commit it, or name a commit that has it with --base"
    return f"model {model}: there is no module {module} at {commit}, and none is installed; check its name"


def _is_there(inside: str, paths: Collection[str]) -> bool:
    """Whether a module or package is in some folder, which the evaluation puts on the path."""
    files = tuple(f"{inside}{suffix}" for suffix in _SUFFIXES)
    below = tuple(f"/{file}" for file in files)
    folder = f"{inside}/"
    return any(
        path in files or path.endswith(below) or path.startswith(folder) or f"/{folder}" in path for path in paths
    )


def _is_installed(package: str, top: Path | None) -> bool:
    """Whether a package is found outside of the checkout; an installation that leads into it has what it has."""
    places = [path for path in sys.path if path and (top is None or not Path(path).is_relative_to(top))]
    if importlib.machinery.PathFinder.find_spec(package, places) is not None:
        return True
    for finder in sys.meta_path:  # editable installations
        spec = getattr(finder, "find_spec", lambda *_: None)(package, None)
        if spec is None or finder is importlib.machinery.PathFinder:
            continue
        origin = Path(spec.origin or "")
        return top is None or not origin.is_relative_to(top)
    return False


def _in_checkout(top: Path, inside: str) -> str | None:
    for prefix in ("", "src/", "python/", "lib/"):
        for suffix in _SUFFIXES:
            if (top / f"{prefix}{inside}{suffix}").is_file():
                return f"{prefix}{inside}{suffix}"
    return None
