"""Run pytest with the plugin that records models: the child process that `sources.record_from_tests` starts.

python -m graphmend_evaluation.recording.run_tests --root WORKTREE --settings FILE [--package NAME ...] -- ARGUMENTS
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from graphmend_evaluation import child_process
from graphmend_evaluation.worktree import add_to_path

PLUGIN = "graphmend_evaluation.recording.pytest_plugin"


def main(arguments: list[str] | None = None) -> int:
    """Run the tests with the work tree's own packages before installed ones. Pytest's exit code."""
    options = _parser().parse_args(arguments)
    child_process.begin(options)
    for package in options.package:
        add_to_path(options.root, package)
    import pytest

    given = [each for each in options.pytest if each != "--"]
    return int(pytest.main(["-p", PLUGIN, "--graphmend-recording", str(options.settings), *given]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphmend_evaluation.recording.run_tests", description="Run tests, record.")
    parser.add_argument("--root", type=Path, required=True, help="the worktree whose tests run")
    parser.add_argument("--settings", type=Path, required=True, help="what the plugin records, and where to")
    parser.add_argument("--package", action="append", default=[], help="a package of the worktree")
    child_process.add_memory_option(parser)
    parser.add_argument("pytest", nargs=argparse.REMAINDER, help="arguments for pytest")
    return parser


if __name__ == "__main__":
    sys.exit(main())
