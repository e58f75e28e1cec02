"""`graphmend evaluate`: compile models at two commits, and report breaks, equality and speed."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from graphmend_codemod.cli import models, options
from graphmend_codemod.core.terminal import say

_DESCRIPTION = """\
Compile the models of a repository at two commits and compare: graph breaks,
eager results bit for bit, compiled results, and with --speed also time and
memory. Each model runs in child processes of its own, without tokens in their
environment; one that crashes or hangs costs only its row. This runs the
repository's code as you, so use it for code that you trust, or --sandbox.
Nothing in the repository is changed.
"""
_EPILOG = """\
exit codes: 0 all models behave as before or better, 1 needs review: a result
changed, compilation fails, or a change does not help, 2 an error occurred,
130 interrupted.

examples:
  graphmend evaluate --model mymodels.zoo:small_bart
  graphmend evaluate --head graphmend/2026-11-21 --from-tests "tests -k forward"
  graphmend evaluate ~/src/transformers --base v4.52.4 --huggingface --speed
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(subparsers, "evaluate", "compile models before and after a branch", _DESCRIPTION, _EPILOG)
    options.add_repository(parser, "a git repository, or a project in one")
    parser.add_argument("--base", metavar="REF", help="the commit before [default: where the branch of --head began]")
    parser.add_argument("--head", default="HEAD", metavar="REF", help="the commit after [default: HEAD]")
    parser.add_argument(
        "--report",
        metavar="DIR",
        help="where to write it (HTML, Markdown, JSON) [default: in the user's state folder]",
    )
    models.add_model_options(parser)
    parser.add_argument("--open", action="store_true", help="show the report in a browser")
    options.add_rule_options(parser)
    options.add_run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate, tell what was found, and return the exit code."""
    from graphmend_codemod.core.colour import paint_for
    from graphmend_codemod.core.interruption import Interrupted
    from graphmend_codemod.core.progress import ProgressLine
    from graphmend_codemod.evaluation.compare_refs import CompareOptions, EvaluationError, evaluate

    request = CompareOptions(
        repository=Path(args.repository),
        settings=partial(options.settings_from, args),
        base=args.base,
        head=args.head,
        wanted=models.wanted(args),
        report=None if args.report is None else Path(args.report),
        jobs=options.workers(args),
        cache=False,  # of a work tree that is gone afterwards nothing needs to be remembered
    )
    try:
        with ProgressLine(sys.stderr) as progress:
            outcome = evaluate(request, progress=progress)
    except EvaluationError as error:
        raise options.CommandError(str(error)) from error
    except Interrupted as error:
        print("graphmend: interrupted; what was measured is kept for the next run", file=sys.stderr)
        return error.exit_code
    from graphmend_evaluation.reporting import terminal_lines

    for line in terminal_lines(outcome.evaluation, paint_for(sys.stdout, os.environ)):
        say(line)
    say(f"Report: {outcome.report / 'report.html'}")
    if args.open:
        options.open_page(outcome.report / "report.html")
    return outcome.exit_code
