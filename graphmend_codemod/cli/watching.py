"""`--watch`: run again whenever a Python file or the settings change."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from graphmend_codemod.cli import options
from graphmend_codemod.core.discovery import discover
from graphmend_codemod.core.terminal import say

_WAIT = 0.5  # seconds between looks at the files
_CLEAR = "\x1b[2J\x1b[H"

Stamps = dict[str, tuple[int, int]]


def watch(args: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> int:
    """Run, and again after each change; ends with an interruption alone."""
    if options.stdin_path(args) is not None:
        raise options.CommandError("--watch looks at files; it does not go with `-`")
    while True:
        if sys.stdout.isatty():
            print(_CLEAR, end="")
        seen = _stamps(args)
        run(args)
        say("graphmend: watching; press Ctrl-C to stop", sys.stderr, flush=True)
        sys.stdout.flush()
        while _stamps(args) == seen:
            time.sleep(_WAIT)


def _stamps(args: argparse.Namespace) -> Stamps:
    """Size and time of every file that the run depends on by its arguments."""
    found: Stamps = {}
    for settings, paths in options.projects(args):
        found_there = discover(paths, settings)
        files = [str(settings.root / path) for path in (*found_there.files, *found_there.notebooks)]
        for path in [*files, str(settings.root / "pyproject.toml"), *map(str, paths)]:
            try:
                state = os.stat(path)
            except OSError:
                continue
            if not Path(path).is_dir():
                found[path] = (state.st_mtime_ns, state.st_size)
    return found
