"""A copy of a folder of code as `graphmend fix` leaves it, and what `graphmend check` says of a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphmend_codemod.core.cache import VARIABLE
from graphmend_evaluation.paper.prepare import PrepareError

FIX_TIMEOUT = 900
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__")


def after(base: Path, root: Path, made_by: str, options: Sequence[str]) -> None:
    """Make `root` a copy of `base` that `graphmend fix` has edited; one that was `made_by` the same is kept."""
    mark = root.with_name(f"{root.name}.made-by")
    text = f"{made_by} {' '.join(options)}"
    if root.is_dir() and mark.is_file() and mark.read_text(encoding="utf-8") == text:
        return
    being_made = root.with_name("being-made")  # always the same folder, for which the cache knows what files say
    for folder in (root, being_made):
        shutil.rmtree(folder, ignore_errors=True)
    mark.unlink(missing_ok=True)
    shutil.copytree(base, being_made, ignore=_LEFT_OUT)
    _graphmend(["fix", *options, str(being_made)], being_made)
    being_made.rename(root)
    mark.write_text(text, encoding="utf-8")


def findings(base: Path) -> list[dict[str, Any]]:
    """What `graphmend check` says of the folder's files."""
    found: list[dict[str, Any]] = json.loads(_graphmend(["check", "--output-format", "json", "."], base))["findings"]
    return found


def _graphmend(arguments: Sequence[str], folder: Path) -> str:
    project = folder / "pyproject.toml"  # paths begin at the folder, wherever the work folder lies
    if not project.is_file():
        project.write_text("[tool.graphmend]\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "graphmend_codemod", arguments[0], "--jobs", "1", *arguments[1:]],
        cwd=folder,
        env={**os.environ, VARIABLE: str(folder.parent / "cache")},
        capture_output=True,
        text=True,
        timeout=FIX_TIMEOUT,
        check=False,
    )
    if done.returncode not in (0, 1) and not done.stdout:
        raise PrepareError(f"graphmend {arguments[0]} of {folder} failed: {done.stderr.strip()[-300:]}")
    return done.stdout
