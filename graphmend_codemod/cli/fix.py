"""`graphmend fix`: apply fixes in place, or show them as a diff."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.core.findings import Finding
    from graphmend_codemod.core.settings import Settings
    from graphmend_codemod.engine.api import FixResult

_DESCRIPTION = """\
Apply the safe fixes in place, until no finding has an applicable fix.
Only the statements at break sites change; a second run changes nothing.
"""
_EPILOG = """\
exit codes: 0 nothing to fix, 1 files were changed (with --diff: would be), 2 a file
could not be handled. Commit hooks rely on the 1; --exit-zero turns it into 0.

examples:
  graphmend fix src/models
  graphmend fix --diff --unsafe-fixes
  graphmend fix --trace trace.json --rerun
  graphmend fix - --stdin-filename model.py < model.py > fixed.py
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(subparsers, "fix", "apply fixes", _DESCRIPTION, _EPILOG)
    options.add_paths(parser)
    options.add_rule_options(parser)
    options.add_trace_option(parser)
    options.add_project_options(parser)
    parser.add_argument("--diff", action="store_true", help="print a unified diff and write nothing")
    parser.add_argument(
        "--exit-non-zero-on-fix",
        action="store_true",
        help="exit with 1 if files were changed (the default)",
    )
    parser.add_argument(
        "--exit-zero", action="store_true", help="exit with 0 even if files were changed; overrides the option above"
    )
    options.add_run_options(parser, cached=True)
    options.add_talk_options(parser)


def run(args: argparse.Namespace) -> int:
    """Fix, tell what was done, and return the exit code."""
    path = options.stdin_path(args)
    before = None
    if args.rerun:
        from graphmend_codemod.cli import rerunning

        if path is not None or args.diff:
            raise options.CommandError("--rerun runs the fixed files; it goes with neither `-` nor --diff")
        before = rerunning.recorded(args)
    changed, problems = _fix_files(args) if path is None else _fix_stdin(args, path)
    if problems:
        return 2
    if before is not None and changed and rerunning.rerun(args, before, options.projects(args)[0][0].root):
        return 2
    return 1 if changed and not args.exit_zero else 0


def _fix_files(args: argparse.Namespace) -> tuple[bool, bool]:
    from graphmend_codemod.engine import api

    groups = [(options.only_traced(args, settings), paths) for settings, paths in options.projects(args)]
    first = groups[0][0]
    results = []
    with options.telling(args, "fixing"):
        for settings, paths in groups:
            jobs, cache = options.workers(args), not args.no_cache
            result = api.fix(paths, settings, write=not args.diff, jobs=jobs, cache=cache)
            results.append(_rebased(result, settings.root, first.root))
    total = results[0] if len(results) == 1 else _joined(results)
    if not args.quiet:
        options.print_notes(note for result in results for note in result.notes)
    if args.verbose:
        options.print_details((settings for settings, _ in groups), total.files)
    if args.diff:
        _print_diff(total, first.root)
    elif not args.quiet:
        _print_files(total, first.root)
    # The diff must stay a diff when it is sent to a file.
    if not args.quiet:
        say(_summary(total, first, args), sys.stderr if args.diff else sys.stdout)
    options.print_problems(total.problems, first.root)
    return bool(total.fixes), any(not problem.aside for problem in total.problems)


def _rebased(result: FixResult, old: Path, new: Path) -> FixResult:
    return result._replace(
        fixes=tuple(options.rebased(result.fixes, old, new)),
        remaining=tuple(options.rebased(result.remaining, old, new)),
        problems=tuple(options.rebased(result.problems, old, new)),
    )


def _joined(results: Sequence[FixResult]) -> FixResult:
    return results[0]._replace(
        fixes=tuple(change for result in results for change in result.fixes),
        remaining=tuple(finding for result in results for finding in result.remaining),
        problems=tuple(problem for result in results for problem in result.problems),
        files=sum(result.files for result in results),
    )


def _fix_stdin(args: argparse.Namespace, path: Path) -> tuple[bool, bool]:
    from graphmend_codemod.engine import api

    settings = options.only_traced(args, options.settings_from(args, path))
    text = options.stdin_text()
    result = api.fix_text(text, path, settings)
    if args.diff:
        _print_diff(result, settings.root)
    else:
        # Also when the text could not be fixed: in a pipe, nothing must be lost.
        sys.stdout.buffer.write(result.fixes[0].after if result.fixes else text)
        while more := sys.stdin.buffer.read(2**20):
            sys.stdout.buffer.write(more)
    options.print_problems(result.problems, settings.root)
    return bool(result.fixes), any(not problem.aside for problem in result.problems)


def _print_diff(result: FixResult, root: Path) -> None:
    if not result.fixes:
        return
    from graphmend_codemod.core.colour import paint_for
    from graphmend_codemod.reporting.diff import hides_characters, unified
    from graphmend_codemod.reporting.report import shown_path

    paint = paint_for(sys.stdout, os.environ)
    for_eyes = paint.enabled or sys.stdout.isatty()
    for change in result.fixes:
        shown = shown_path(change.path, root)
        diff = unified(shown, change.before, change.after, paint, for_eyes=for_eyes)
        if hides_characters(diff) and not for_eyes:
            hidden = f"the diff of {shown} has control characters; the terminal shows them escaped"
            options.print_notes([hidden])
        sys.stdout.buffer.write(diff)


def _print_files(result: FixResult, root: Path) -> None:
    if not result.fixes:
        return
    from graphmend_codemod.reporting import fixes

    for change in result.fixes:
        say(fixes.line(change, root))


def _shown(args: argparse.Namespace, settings: Settings) -> str:
    """The command that tells why sites of the trace are left."""
    import shlex

    file = args.trace if args.trace is not None else settings.root / str(settings.trace)
    return shlex.join(["graphmend", "trace", "--show", os.path.relpath(file)])


def _of_sites(result: FixResult, root: Path, sites: Collection[tuple[str, str, str, str]]) -> Iterator[Finding]:
    """The findings of these sites that are left."""
    from graphmend_codemod.engine.fixpoint import first_line

    texts = {change.path: change.after for change in result.fixes}
    for each in result.remaining:
        if each.path not in texts:
            with contextlib.suppress(OSError):
                texts[each.path] = (root / each.path).read_bytes()
        text = texts.get(each.path, b"").decode("utf-8", "replace")
        if (each.path, each.code, each.function, first_line(text, each.span.start_line)) in sites:
            yield each


def _summary(result: FixResult, settings: Settings, args: argparse.Namespace) -> str:
    told = "graphmend check"
    if settings.only_sites is not None:  # the rest of the project is not what was asked about
        left = tuple(_of_sites(result, settings.root, settings.only_sites))
        result, told = result._replace(remaining=left), _shown(args, settings)
    if not result.fixes and not result.remaining and not result.problems:
        return f"Nothing to fix in {result.files} file{'s' if result.files != 1 else ''}."
    from graphmend_codemod.reporting import fixes

    return fixes.summary(
        result, unsafe_fixes=settings.unsafe_fixes, written=not args.diff, opaque=settings.opaque, told=told
    )
