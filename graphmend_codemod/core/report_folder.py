"""Where reports go when nobody says: the user's folder for state, where editors and browsers find them."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "GRAPHMEND_REPORTS"


def report_folder(common: Path, name: str) -> Path:
    """The folder of a report on the repository whose git folder is `common`; it need not exist.

    It is below `$GRAPHMEND_REPORTS`, or `graphmend` in `$XDG_STATE_HOME` (`~/.local/state`), by the repository's name
    and place. Without a home folder it is in the git folder.
    """
    import hashlib

    base = _base()
    if base is None:
        return common / "graphmend" / name
    common = Path(os.path.realpath(common))
    folder = common.parent if common.name == ".git" else common
    place = hashlib.sha256(os.fsencode(common)).hexdigest()[:8]
    return base / f"{folder.name}-{place}" / name


def _base() -> Path | None:
    if told := os.environ.get(VARIABLE):
        return Path(os.path.abspath(told))
    state = os.environ.get("XDG_STATE_HOME")
    if state is not None and os.path.isabs(state):
        return Path(state) / "graphmend"
    home = os.path.expanduser("~")
    return Path(home, ".local", "state", "graphmend") if os.path.isdir(home) and home != "~" else None
