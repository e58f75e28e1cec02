"""The recorded run that a repository keeps: a migration then fixes only what broke in it."""

from __future__ import annotations

import os
from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.repository.worktree import Worktree


def with_trace(settings: Settings, tree: Worktree, jobs: int, cache: bool) -> tuple[Settings, tuple[str, ...]]:
    """The settings with the sites of the trace that they name, and what to say about it.

    A trace that was named on the command line is in the settings already and stays. Raises `TraceError` for a file that
    is no trace.
    """
    if settings.trace is None or settings.only_sites is not None:
        return settings, ()
    from graphmend_codemod.trace.selection import only_traced

    path = os.path.normpath(settings.root / settings.trace)
    inside = os.path.relpath(path, tree.root).replace(os.sep, "/")
    if inside not in tree.entries or not tree.entries[inside].is_file:
        return settings, (f"{settings.trace} of the settings is not in {tree.commit}: every site was looked at",)
    tree.write(inside)
    return only_traced(Path(path), settings, jobs=jobs, cache=cache), ()
