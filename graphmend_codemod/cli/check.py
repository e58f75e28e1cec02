"""`graphmend check`: list break sites. Writes only baselines and comments that suppress findings, if asked to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import ignoring, options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.core.findings import Finding
    from graphmend_codemod.reporting.report import Report

FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")

_DESCRIPTION = """\
List the places where TorchDynamo breaks the graph. Nothing is written unless
you ask for a baseline or for comments.

A finding is marked [*] if `graphmend fix` fixes it, [unsafe] if only
`--unsafe-fixes` does. A finding without a fix gives the reason and a way out
("not applied: ..."); it counts, but sets exit code 1 only with --strict, as
does a comment `# graphmend: ignore[...]` that suppresses nothing.
"""
_EPILOG = """\
exit codes: 0 nothing can be fixed, 1 something can, 2 a file could not be checked

examples:
  graphmend check src/models
  graphmend check --baseline graphmend-baseline.json
  graphmend check --add-ignores src/legacy
  graphmend check --select GM1,GM201 --output-format concise
  graphmend check --output-format sarif > graphmend.sarif
  git show :model.py | graphmend check - --stdin-filename model.py
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(subparsers, "check", "list break sites", _DESCRIPTION, _EPILOG)
    options.add_paths(parser)
    options.add_rule_options(parser)
    options.add_project_options(parser)
    parser.add_argument("--output-format", choices=FORMATS, default="full", help="how to show findings [default: full]")
    parser.add_argument("--statistics", action="store_true", help="show counts per rule instead of findings")
    parser.add_argument("--watch", action="store_true", help="check again on every file change, until interrupted")
    parser.add_argument("--strict", action="store_true", help="also exit with 1 for findings without a fix")
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        type=Path,
        help="report only findings that are not in FILE; creates FILE if it does not exist",
    )
    parser.add_argument("--update-baseline", action="store_true", help="rewrite the baseline with all current findings")
    parser.add_argument(
        "--add-ignores",
        action="store_true",
        help="suppress every finding shown with a comment on its line, and report none",
    )
    parser.add_argument("--remove-ignores", action="store_true", help="remove comments and codes that suppress nothing")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    options.add_run_options(parser, cached=True)
    options.add_talk_options(parser)


def run(args: argparse.Namespace) -> int:
    """Check, show, and return the exit code."""
    if args.statistics and args.output_format not in ("full", "concise", "json"):
        raise options.CommandError("--statistics goes with --output-format full, concise or json")
    ignoring.refuse_what_does_not_go_together(args)
    if args.watch:
        from graphmend_codemod.cli.watching import watch

        return watch(args, _show)
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    with options.telling(args, "checking"):
        report = _without_known(args, _report(args))
        useless = 0 if options.stdin_path(args) is not None else ignoring.tell_useless(args)
    if args.add_ignores:
        return ignoring.add(args, report, options.projects(args)[0][0])
    for line in _view(args, report):
        say(line)
    options.print_problems(report.problems, report.root)
    if report.problems:
        return 2
    counted = [finding for finding in report.findings if args.strict or report.actionable(finding)]
    return 1 if (counted or (useless and args.strict)) and not args.exit_zero else 0


def _without_known(args: argparse.Namespace, report: Report) -> Report:
    """The report without what its baseline has; the baseline is written where that is asked for."""
    if args.baseline is None:
        if args.update_baseline:
            raise options.CommandError("--update-baseline needs --baseline FILE")
        return report
    from graphmend_codemod.reporting import baseline
    from graphmend_codemod.reporting.report import plural

    if args.update_baseline or not args.baseline.exists():
        baseline.write(args.baseline, report)
        options.print_notes([f"{args.baseline}: baseline of {plural(len(report.findings), 'finding')} written"])
    compared = baseline.compare(args.baseline, report)
    if left := len(report.findings) - len(compared.new):
        options.print_notes([f"{plural(left, 'finding')} of {args.baseline} left out"])
    if compared.gone:
        gone = plural(compared.gone, "finding")
        options.print_notes([f"{gone} of {args.baseline} are gone; update the baseline with --update-baseline"])
    from dataclasses import replace

    return replace(report, findings=compared.new)


def _report(args: argparse.Namespace) -> Report:
    from graphmend_codemod.reporting.report import Report

    path = options.stdin_path(args)
    if path is not None:
        return _stdin_report(args, path)
    from graphmend_codemod.core.findings import Problem
    from graphmend_codemod.engine import api

    findings: list[Finding] = []
    problems: list[Problem] = []
    notes: list[str] = []
    texts: dict[str, bytes] = {}
    files = 0
    groups = options.projects(args)
    first = groups[0][0]
    for settings, paths in groups:
        result = api.check(paths, settings, jobs=options.workers(args), cache=not args.no_cache)
        findings += options.rebased(result.findings, settings.root, first.root)
        problems += options.rebased(result.problems, settings.root, first.root)
        notes += result.notes
        files += result.files
        for place, text in result.texts.items():
            (moved,) = options.rebased([Problem(place, "")], settings.root, first.root)
            texts[moved.path] = text
    if not args.quiet:
        options.print_notes(notes)
    if args.verbose:
        options.print_details((settings for settings, _ in groups), files)
    return Report.of(findings, problems, files, first, texts)


def _stdin_report(args: argparse.Namespace, path: Path) -> Report:
    from graphmend_codemod.engine import api
    from graphmend_codemod.reporting.report import Report

    settings = options.settings_from(args, path)
    text = options.stdin_text()
    result = api.check_text(text, path, settings)
    given = {finding.path: text for finding in result.findings} | dict(result.texts)
    return Report.of(result.findings, result.problems, result.files, settings, given)


def _view(args: argparse.Namespace, report: Report) -> Iterable[str]:
    from graphmend_codemod.core.colour import paint_for

    paint = paint_for(sys.stdout, os.environ)
    if args.statistics:
        from graphmend_codemod.reporting import statistics

        return [statistics.as_json(report)] if args.output_format == "json" else statistics.text(report, paint)
    if args.output_format in ("full", "concise"):
        from graphmend_codemod.reporting import text

        view = text.full if args.output_format == "full" else text.concise
        return view(report, paint, summarized=not args.quiet)
    return _DOCUMENTS[args.output_format](report)


def _json(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import json

    return [json.render(report)]


def _sarif(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import sarif
    from graphmend_codemod.rules.framework.registry import all_rules

    return [sarif.render(report, all_rules())]


def _github(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import github

    return github.render(report)


def _gitlab(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import gitlab

    return [gitlab.render(report)]


def _junit(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import junit

    return [junit.render(report)]


def _markdown(report: Report) -> Iterable[str]:
    from graphmend_codemod.reporting import markdown

    return [markdown.render(report)]


_DOCUMENTS: dict[str, Callable[[Report], Iterable[str]]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "gitlab": _gitlab,
    "junit": _junit,
    "markdown": _markdown,
}
