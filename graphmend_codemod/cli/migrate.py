"""`graphmend migrate`: all fixes of a repository on a new branch, one commit a rule, with a report."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import models, options, rerunning
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.core.settings import Settings

ROUNDS = 3

_DESCRIPTION = """\
Fix a whole repository on a new branch, one commit per rule, and report what
was fixed and what was not. It starts from the last commit, in a temporary
`git worktree`: your files, index, stash, hooks and HEAD are not touched, and
if it fails or is interrupted there is no branch.

Models that are named, configured or found are compiled before and after, in
child processes: a fix that changes an eager result, breaks compilation or
does not remove its break is reverted. With --speed they are also timed, and a
fix that makes one slower is reverted unless --keep-slower is given. With
--record, models that still break are recorded, and what broke is fixed by
what the run shows, round by round.
This runs the repository's code as you: for code that you do not trust, use
--no-evaluate or --sandbox.
"""
_EPILOG = """\
exit codes: 0 a branch was made (with --dry-run: would be) or there is nothing
to fix, 2 it could not be done, 130 interrupted. A file that cannot be checked,
or a model that cannot be measured, is reported and skipped.

examples:
  graphmend migrate
  graphmend migrate --branch compile-fixes && graphmend pr --from compile-fixes
  graphmend migrate ~/src/mymodels --branch compile-whole --select GM1,GM2
  graphmend migrate --model mymodels.zoo:small_bart --model mymodels.zoo:small_t5
  graphmend migrate --model mymodels.zoo:small_bart --record
  graphmend migrate --dry-run --unsafe-fixes
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(subparsers, "migrate", "put all fixes on a branch", _DESCRIPTION, _EPILOG)
    options.add_repository(parser, "a git repository, or a folder in one to limit the migration to")
    parser.add_argument("--base", default="HEAD", metavar="REF", help="the commit to start from [default: HEAD]")
    parser.add_argument("--branch", metavar="NAME", help="the branch to make [default: graphmend/<year>-<month>-<day>]")
    parser.add_argument(
        "--paths", nargs="+", action="extend", default=[], metavar="PATH", help="limit it to these, relative to REPO"
    )
    models.add_evaluate_option(parser)
    parser.add_argument(
        "--record",
        nargs="?",
        type=_rounds,
        const=ROUNDS,
        default=0,
        metavar="ROUNDS",
        help="record the models that still break, compiled and without torch.compile, fix what broke in the run, with "
        "opaque operators at these places, measure, and do that again as long as it helps, at most ROUNDS times "
        f"[default: {ROUNDS}]",
    )
    parser.add_argument("--keep", action="store_true", help="also keep fixes that do not remove a break")
    parser.add_argument("--keep-slower", action="store_true", help="keep fixes that --speed measures as slower")
    models.add_model_options(parser)
    parser.add_argument(
        "--open",
        action="store_true",
        help="show the report in a browser, the page of the evaluation where models were evaluated",
    )
    parser.add_argument(
        "--report", metavar="DIR", help="where to write report.md and report.json [default: in the user's state folder]"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be committed; create no branch")
    options.add_rule_options(parser)
    options.add_trace_option(parser)
    options.add_project_options(parser)
    options.add_run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Migrate, tell what was done, and return the exit code."""
    from graphmend_codemod.core.colour import paint_for
    from graphmend_codemod.core.interruption import Interrupted
    from graphmend_codemod.core.progress import ProgressLine
    from graphmend_codemod.migrate import report as views
    from graphmend_codemod.migrate.migration import MigrationError, MigrationOptions, migrate

    if args.record and args.trace is not None:
        raise options.CommandError("--record makes traces of its own; leave out --trace, or --record")
    before = rerunning.recorded(args)
    request = MigrationOptions(
        repository=Path(args.repository),
        settings=partial(_settings, args),
        base=args.base,
        branch=args.branch,
        paths=tuple(Path(path) for path in args.paths),
        wanted=models.wanted(args),
        evaluate=args.evaluate,
        keep=args.keep,
        keep_slower=args.keep_slower,
        report=None if args.report is None else Path(args.report),
        dry_run=args.dry_run,
        jobs=options.workers(args),
        cache=False,  # of a work tree that is gone afterwards nothing needs to be remembered
        record=args.record,
    )
    try:
        with ProgressLine(sys.stderr) as progress:
            outcome = migrate(request, progress=progress)
    except MigrationError as error:
        raise options.CommandError(str(error)) from error
    except Interrupted as error:
        print("graphmend: interrupted; nothing was changed", file=sys.stderr)
        return error.exit_code
    for line in views.lines(outcome, paint_for(sys.stdout, os.environ)):
        say(line)
    options.print_notes(outcome.remarks)
    options.print_problems(outcome.problems, outcome.top or Path())
    if args.open and outcome.report is not None:
        page = outcome.report / "evaluation" / "report.html"
        options.open_page(page if page.exists() else outcome.report / "report.md")
    if before is not None and outcome.commits and not outcome.dry_run:
        rerunning.rerun_branch(args, before, Path(args.repository), outcome.branch)
    return outcome.exit_code


def _rounds(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 100:
        raise argparse.ArgumentTypeError(f"takes a number of rounds above 0, not {text!r}; name REPO before --record")
    return int(text)


def _settings(args: argparse.Namespace, start: Path) -> Settings:
    """The settings in the work tree. A trace that is configured may not be there; one that is named is read."""
    settings = options.settings_from(args, start)
    return settings if args.trace is None else options.only_traced(args, settings)
