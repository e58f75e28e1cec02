"""What compilers keep for a process, in the folder that `isolation` gives it: copied from another one, and dropped."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

_CACHES = ("inductor", "triton")
# Inductor keeps C++ headers that it compiled (150 MB, five seconds) in the folder for temporary files.
_HEADERS = "tmp/torchinductor_*/precompiled_headers"


def copy_caches(source: Path, target: Path) -> None:
    """Add what the process of `source` left to `target`; what a process may be using there stays as it is."""
    for name in _CACHES:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, copy_function=_copied, dirs_exist_ok=True)
    share_headers(source, target)


def share_headers(source: Path, target: Path) -> None:
    """Let the process of `target` use the C++ headers that the one of `source` compiled."""
    for headers in source.glob(_HEADERS):
        own = target / headers.relative_to(source)
        shutil.copytree(headers, own, copy_function=_linked, dirs_exist_ok=True)


def drop_caches(folder: Path) -> None:
    """Remove all of them."""
    for name in (*_CACHES, "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _copied(source: str, target: str) -> None:
    if not os.path.exists(target):
        shutil.copy2(source, target)


def _linked(source: str, target: str) -> None:
    with contextlib.suppress(OSError):  # there, or a file system without links
        os.link(source, target)
    _copied(source, target)
