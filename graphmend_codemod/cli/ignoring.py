"""What `check` does about comments that suppress findings: name the useless ones, add and remove them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options

if TYPE_CHECKING:
    from graphmend_codemod.core.settings import Settings
    from graphmend_codemod.engine.suppressed import Useless
    from graphmend_codemod.reporting.report import Report


def refuse_what_does_not_go_together(args: argparse.Namespace) -> None:
    """CommandError where files would be written that are not there, or in two ways at once."""
    if (args.add_ignores or args.remove_ignores) and options.stdin_path(args) is not None:
        raise options.CommandError("--add-ignores and --remove-ignores write files; they do not go with `-`")
    if args.add_ignores and args.update_baseline:
        raise options.CommandError("--add-ignores and --update-baseline do the same in two ways; choose one")


def tell_useless(args: argparse.Namespace) -> int:
    """Name the comments that suppress nothing, or remove them where that was asked for; how many there are left."""
    from graphmend_codemod.engine import suppressed
    from graphmend_codemod.reporting.report import plural, shown_path

    left = 0
    for settings, found in _found(args):
        stay = [each for each in found if not args.remove_ignores or each.ignore.codes is None]
        if len(stay) < len(found):
            options.print_problems(suppressed.remove(found, settings), settings.root)
            gone = plural(len(found) - len(stay), "comment")
            options.print_notes([f"{gone} that suppressed nothing removed or shortened"])
        left += len(stay)
        if not args.quiet:
            places = ((f"{shown_path(each.path, settings.root)}:{each.ignore.line}", each.words) for each in stay)
            options.print_notes(f"{place}: {words}" for place, words in places)
    return left


def _found(args: argparse.Namespace) -> Iterator[tuple[Settings, list[Useless]]]:
    from graphmend_codemod.engine import suppressed

    jobs, cache = options.workers(args), not args.no_cache
    for settings, paths in options.projects(args):
        yield settings, suppressed.useless(paths, settings, options.known_codes(), jobs=jobs, cache=cache)


def add(args: argparse.Namespace, report: Report, settings: Settings) -> int:
    """Suppress what the report lists by comments in the files; the exit code."""
    from graphmend_codemod.engine import suppressed
    from graphmend_codemod.reporting.report import plural

    changed, problems = suppressed.add(report.findings, settings)
    options.print_notes(
        [f"{plural(len(report.findings), 'finding')} suppressed by comments in {plural(changed, 'file')}"]
    )
    options.print_problems(problems, report.root)
    return 2 if problems or report.problems else 0
