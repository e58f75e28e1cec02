"""`graphmend pr`: open or update the one pull request of a repository."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import models, options
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.extras import require
from graphmend_codemod.core.terminal import printable, say

if TYPE_CHECKING:
    from graphmend_codemod.bot.pull_request import Outcome, PullRequestOptions
    from graphmend_codemod.forge.credentials import Credential
    from graphmend_codemod.migrate.saved import Earlier
    from graphmend_codemod.repository.checkout import Checkout

_DESCRIPTION = """\
Fix a repository and open a pull request for it, or bring the one that is open
up to date: its base may have moved, or nothing may be left to do. There is at
most one. Commits of anybody else on its branch are never overwritten, and a
pull request that a person closed is not opened again for the same findings.

The work is done in a temporary repository: your checkout is not touched.
A token is read from GRAPHMEND_TOKEN, GH_TOKEN, GITHUB_TOKEN or GITLAB_TOKEN,
or asked of git's credential helper. With --no-evaluate, no code of the
repository runs.
"""
_EPILOG = """\
settings: [tool.graphmend.pull-request] in pyproject.toml of the base branch:
enabled, base, branch, title, body, labels, reviewers, draft.

exit codes: 0 the pull request is up to date, or there is nothing to do (see
the first line), 2 an error occurred, 130 interrupted.

examples:
  graphmend pr --dry-run
  graphmend pr --no-evaluate
  graphmend migrate --branch compile-fixes && graphmend pr --from compile-fixes
  graphmend pr https://github.com/OWNER/NAME --fork --draft
  graphmend pr https://code.example.org/OWNER/NAME --forge gitlab
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(subparsers, "pr", "open or update a pull request with all fixes", _DESCRIPTION, _EPILOG)
    options.add_repository(parser, "a clone with a remote on the forge, or an address")
    _add_forge_options(parser)
    models.add_evaluate_option(parser)
    parser.add_argument(
        "--from",
        dest="earlier",
        metavar="BRANCH",
        help="propose a branch created by `graphmend migrate` instead of migrating",
    )
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="with --from: where migrate wrote its report [default: in .git]"
    )
    parser.add_argument("--record", nargs="?", const="", help=argparse.SUPPRESS)
    models.add_model_options(parser)
    options.add_rule_options(parser)
    options.add_run_options(parser)


def _add_forge_options(parser: argparse.ArgumentParser) -> None:
    """What is pushed where, and how long to wait."""
    parser.add_argument("--remote", default="origin", metavar="NAME", help="the remote of a clone [default: origin]")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and the pull request's text")
    parser.add_argument("--fork", action="store_true", help="push to your fork, created if there is none")
    parser.add_argument("--base", metavar="BRANCH", help="base branch [default: the forge's default branch]")
    parser.add_argument("--branch", metavar="NAME", help="the branch to push [default: graphmend/fix-graph-breaks]")
    parser.add_argument("--draft", action=argparse.BooleanOptionalAction, default=None, help="open it as a draft")
    parser.add_argument("--forge", choices=("github", "gitlab"), help="forge type of an unknown host")
    parser.add_argument("--api-url", metavar="URL", help="URL of the forge's API, if not the default")
    parser.add_argument(
        "--patience",
        type=_seconds,
        default=900.0,
        metavar="SECONDS",
        help="total seconds to wait when the forge limits requests [default: 900]",
    )
    parser.add_argument(
        "--git-timeout",
        type=_seconds,
        default=900.0,
        metavar="SECONDS",
        help="time limit of one fetch or push in seconds [default: 900]",
    )


def run(args: argparse.Namespace) -> int:
    """Do it, tell what was done, and return the exit code."""
    if args.record is not None:
        raise options.CommandError(
            "--record belongs to `graphmend migrate`: make a branch with it, then propose that with "
            "`graphmend pr --from BRANCH`"
        )
    require("bot", "`graphmend pr`")
    from graphmend_codemod.bot import runner
    from graphmend_codemod.core.interruption import Interrupted
    from graphmend_codemod.core.progress import ProgressLine
    from graphmend_codemod.forge.base import ForgeError
    from graphmend_codemod.forge.credentials import scrubbed
    from graphmend_codemod.migrate.migration import MigrationError
    from graphmend_codemod.repository.git import RepositoryError

    request = _request(args)
    credential: Credential | None = None
    try:
        location, checkout = runner.find_repository(args.repository, args.remote, kind=args.forge, api=args.api_url)
        credential = runner.find_credential(location)
        if args.earlier is not None:
            request = replace(request, earlier=_earlier(args, request, checkout))
        with ProgressLine(sys.stderr) as progress:
            outcome = runner.run_bot(
                request,
                location,
                checkout,
                credential,
                patience=args.patience,
                git_timeout=args.git_timeout,
                progress=progress,
            )
    except (ForgeError, MigrationError, RepositoryError, options.CommandError, SettingsError) as error:
        raise options.CommandError(printable(scrubbed(str(error), credential))) from None
    except Interrupted as error:
        print("graphmend: interrupted; the next run goes on from what the forge has", file=sys.stderr)
        return error.exit_code
    _tell(outcome, args.dry_run)
    return 0


def _request(args: argparse.Namespace) -> PullRequestOptions:
    from graphmend_codemod.bot.pull_request import PullRequestOptions

    return PullRequestOptions(
        settings=partial(options.settings_from, args),
        base=args.base,
        branch=args.branch,
        draft=args.draft,
        fork=args.fork,
        evaluate=args.evaluate,
        wanted=models.wanted(args),
        dry_run=args.dry_run,
        jobs=options.workers(args),
        cache=False,  # of a work tree that is gone afterwards nothing needs to be remembered
    )


def _earlier(args: argparse.Namespace, request: PullRequestOptions, checkout: Checkout | None) -> Earlier:
    """The migration whose branch `--from` names. Raises CommandError where other options contradict it."""
    from graphmend_codemod.migrate.saved import earlier_migration

    if checkout is None:
        raise options.CommandError("--from needs a clone that holds the branch; name its folder")
    rules = (args.select, args.ignore, args.unsafe_fixes is not None, args.opaque is not None)
    if args.evaluate or request.wanted.anything or any(rules):
        raise options.CommandError("--from takes an existing branch; pass models and rules to `graphmend migrate`")
    return earlier_migration(checkout, args.earlier, args.report)


def _tell(outcome: Outcome, dry_run: bool) -> None:
    """The answer first."""
    from graphmend_codemod.bot.pull_request import CHANGES

    would = "dry run: would be " if dry_run and outcome.done in CHANGES else "dry run: " if dry_run else ""
    where = f" {outcome.pull_request.url}" if outcome.pull_request is not None else ""
    from graphmend_codemod.migrate.report import headline

    say(f"{would}{outcome.done.value}{where}")
    if outcome.migration is not None:
        say(f"  {headline(outcome.migration)}")
    for fact in outcome.facts:
        say(f"  {printable(fact)}")
    for step in outcome.steps:
        say(f"  {'would ' if dry_run else ''}{printable(step)}")
    if dry_run and outcome.proposal is not None:
        say(f"\n{outcome.proposal.title}\n\n{outcome.proposal.body}", end="")
    options.print_notes(outcome.remarks)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}")
    return seconds
