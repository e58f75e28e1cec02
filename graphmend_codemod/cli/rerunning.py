"""`--rerun`: after fixing what broke in a recorded run, the same run once more, for proof."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.trace.document import Trace


def recorded(args: argparse.Namespace) -> Trace | None:
    """The trace whose command is to be run again, read before anything is changed; None where nobody asked.

    A file that only the settings name is never run from: who checks out a repository has not read it. CommandError
    without a trace or without its command.
    """
    if not args.rerun:
        return None
    if args.trace is None:
        raise options.CommandError("--rerun runs the command of a trace; name the trace with --trace FILE")
    from graphmend_codemod.trace import document

    before = document.read(args.trace)
    if not before.arguments:
        raise options.CommandError(
            f"{args.trace}: does not have the arguments of its command; record it with "
            f"`graphmend trace --keep-command`, or run `graphmend trace --compare {args.trace} -- COMMAND` afterwards"
        )
    return before


def rerun(args: argparse.Namespace, before: Trace, root: Path) -> int:
    """Run the command again below `root`, write its trace beside the old one and compare; 1 if the command failed."""
    from graphmend_codemod.trace import document, run
    from graphmend_codemod.trace.compare import Comparison

    options.print_notes([f"running again: {shlex.join(before.arguments)}"])
    outcome = run.again(before, root)
    after = args.trace.with_suffix(f".after{args.trace.suffix}")
    after.write_text(document.as_json(outcome.trace), encoding="utf-8", errors="backslashreplace")
    # Standard output belongs to the program.
    for line in Comparison(before, outcome.trace).lines():
        say(line, sys.stderr)
    say(f"Trace: {after}", sys.stderr)
    if outcome.exit_code:
        options.print_notes(
            [f"the program ended with exit code {outcome.exit_code}; the comparison is of a part of it"]
        )
    return 1 if outcome.exit_code else 0


def rerun_branch(args: argparse.Namespace, before: Trace, repository: Path, branch: str) -> int:
    """The same in a temporary work tree of `branch`; what git does not track, data for one, is not in it."""
    from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
    from graphmend_codemod.repository.worktree import temporary_folder, worktree

    checkout = open_checkout(repository)
    with temporary_folder() as folder, worktree(checkout, resolve_commit(checkout, branch), folder) as tree:
        code = rerun(args, before, tree.root / checkout.inside)
    if code:
        hint = f"git switch {branch} && graphmend trace --compare {args.trace} -- {shlex.join(before.arguments)}"
        options.print_notes([f"the branch was run without files that git does not track; if it needs some: {hint}"])
    return code
