"""The reports as files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from graphmend_evaluation.evaluation import Evaluation
from graphmend_evaluation.reporting.markdown import markdown
from graphmend_evaluation.reporting.page import html
from graphmend_evaluation.results import to_json

PULL_REQUEST_LIMIT = 65_000
"""Characters that fit into the body of a pull request on GitHub, which takes 65,536, with room for a few words more."""


def as_json(evaluation: Evaluation) -> str:
    """The whole evaluation, as `report.schema.json` describes it; `from_json(Evaluation, ...)` reads it."""
    return json.dumps(to_json(evaluation), indent=1) + "\n"


def write_reports(evaluation: Evaluation, folder: Path) -> None:
    """Write `report.json`, `report.md` and `report.html` into `folder`, which is made if need be.

    A reader never sees half a file. Raises `OSError` when they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "report.json", as_json(evaluation))
    _write(folder / "report.md", markdown(evaluation, limit=PULL_REQUEST_LIMIT))
    _write(folder / "report.html", html(evaluation))


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
