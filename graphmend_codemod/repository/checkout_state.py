"""What a user's checkout looks like, so that it can be said when something has written to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from graphmend_codemod.repository.checkout import Checkout

_WATCHED = ("config", "hooks", "info", "HEAD", "config.worktree")
_MOST_NAMED = 3


def checkout_state(checkout: Checkout) -> Mapping[str, object]:
    """Files that git does not ignore and that differ from the index, hooks, settings and refs. No file is read."""
    state: dict[str, object] = {}
    if checkout.top is not None:
        status = checkout.git.output("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty")
        for line in status.split(b"\0"):
            if line:
                name = os.fsdecode(line[3:])
                state[name] = (line[:2], _told(checkout.top / name))
    for name in _WATCHED:
        place = checkout.common / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            state[f".git/{path.relative_to(checkout.common).as_posix()}"] = _told(path)
    for ref in checkout.git.text("for-each-ref", "--format=%(refname) %(objectname)").splitlines():
        named, _, oid = ref.rpartition(" ")
        state[named] = oid
    return state


def changed_meanwhile(before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    """A remark about what differs; None when nothing does."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not names:
        return None
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (
        f"your checkout changed while models ran: {', '.join(names[:_MOST_NAMED])}{more}; "
        "if that was not you, the code of a model did it; review it before you continue"
    )


def _told(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mode, found.st_size, found.st_mtime_ns
