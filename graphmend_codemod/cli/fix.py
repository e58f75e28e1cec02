"""`graphmend fix`: apply fixes in place, or show them as a diff."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options

if TYPE_CHECKING:
    from graphmend_codemod.runner import FixResult
    from graphmend_codemod.settings import Settings

_DESCRIPTION = """\
Apply the safe fixes in place, again and again until there is nothing left to do.
Only the statements at break sites change; running it a second time changes nothing.
"""
_EPILOG = """\
exit codes: 0 nothing to fix, 1 files were changed (with --diff: would be), 2 a file
could not be handled. Commit hooks rely on the 1; --exit-zero turns it into 0.

examples:
  graphmend fix src/models
  graphmend fix --diff --unsafe-fixes
  graphmend fix - --stdin-filename model.py < model.py > fixed.py
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "fix",
        help="apply fixes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=options.HelpFormatter,
        allow_abbrev=False,
    )
    options.add_paths(parser)
    options.add_rule_options(parser)
    parser.add_argument("--diff", action="store_true", help="print a unified diff and write nothing")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if files were changed")
    options.add_run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Fix, tell what was done, and return the exit code."""
    path = options.stdin_path(args)
    paths = options.paths_from(args) if path is None else ()
    settings = options.settings_from(args, path or paths[0])
    result = _fix_files(args, paths, settings) if path is None else _fix_stdin(args, path, settings)
    options.print_problems(result.problems, settings.root)
    if result.problems:
        return 2
    return 1 if result.fixes and not args.exit_zero else 0


def _fix_files(args: argparse.Namespace, paths: Sequence[Path], settings: Settings) -> FixResult:
    from graphmend_codemod import runner

    result = runner.fix(paths, settings, write=not args.diff, jobs=options.workers(args), cache=not args.no_cache)
    if args.diff:
        _print_diff(result, settings)
    else:
        _print_files(result, settings)
    # The diff must stay a diff when it is sent to a file.
    print(_summary(result, settings, args.diff), file=sys.stderr if args.diff else sys.stdout)
    return result


def _fix_stdin(args: argparse.Namespace, path: Path, settings: Settings) -> FixResult:
    from graphmend_codemod import runner

    text = sys.stdin.buffer.read()
    result = runner.fix_text(text, path, settings)
    if args.diff:
        _print_diff(result, settings)
    else:
        # Also when the text could not be fixed: in a pipe, nothing must be lost.
        sys.stdout.buffer.write(result.fixes[0].after if result.fixes else text)
    return result


def _print_diff(result: FixResult, settings: Settings) -> None:
    if not result.fixes:
        return
    from graphmend_codemod.reporting.colour import paint_for
    from graphmend_codemod.reporting.diff import unified
    from graphmend_codemod.reporting.report import shown_path

    paint = paint_for(sys.stdout, os.environ)
    for change in result.fixes:
        shown = shown_path(change.path, settings.root)
        sys.stdout.buffer.write(unified(shown, change.before, change.after, paint))


def _print_files(result: FixResult, settings: Settings) -> None:
    if not result.fixes:
        return
    from graphmend_codemod.reporting import fixes

    for change in result.fixes:
        print(fixes.line(change, settings.root))


def _summary(result: FixResult, settings: Settings, diff: bool) -> str:
    if not result.fixes and not result.remaining:
        return f"Nothing to fix in {result.files} file{'s' if result.files != 1 else ''}."
    from graphmend_codemod.reporting import fixes

    return fixes.summary(result, unsafe_fixes=settings.unsafe_fixes, written=not diff)
