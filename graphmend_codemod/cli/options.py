"""Options that commands share, and the settings that come of them."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from graphmend_codemod.core.errors import GraphmendError
from graphmend_codemod.core.settings import Overrides, Settings, overridden_settings, with_target_torch
from graphmend_codemod.core.terminal import printable, say

if TYPE_CHECKING:
    from graphmend_codemod.core.findings import Finding, Problem
    from graphmend_codemod.engine.api import FileFix

    Placed = TypeVar("Placed", Finding, Problem, FileFix)

STDIN = "-"


class CommandError(GraphmendError):
    """Something that the command cannot do. The text is one line: what, why, way out."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions and examples, in a terminal's width without what `shutil` imports."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size().columns
        except (ValueError, OSError):
            columns = 80
        super().__init__(prog, max_help_position=34, width=min(columns, 120) - 2)


def command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    told: str,
    description: str,
    epilog: str,
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Register a command, `told` in a line of the list of commands; its own page stays unchanged."""
    return subparsers.add_parser(
        name,
        help=told,
        description=description,
        epilog=epilog,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
        usage=usage,
    )


def add_repository(parser: argparse.ArgumentParser, told: str) -> None:
    """REPO, the current folder by default."""
    parser.add_argument("repository", nargs="?", default=".", metavar="REPO", help=f"{told} [default: .]")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """PATHS and what goes with standard input."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATHS", help="files and folders, or - for standard input [default: .]"
    )
    parser.add_argument("--stdin-filename", metavar="PATH", help="file path to assume for standard input")


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """Which rules, which settings."""
    parser.add_argument(
        "--select",
        action="append",
        metavar="CODES",
        help="rule codes or prefixes, comma-separated; replaces the configured select and ignore",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        metavar="CODES",
        help="rule codes or prefixes to skip, comma-separated; adds to the configured ignore",
    )
    parser.add_argument(
        "--unsafe-fixes",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="also apply unsafe fixes, which need review",
    )
    parser.add_argument(
        "--opaque",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="also outline what nothing else fixes as custom operators, which the compiler cannot look into",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="read [tool.graphmend] from this pyproject.toml instead of the project's",
    )


def add_trace_option(parser: argparse.ArgumentParser) -> None:
    """Which sites to fix: those of a recorded run."""
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=Path,
        help="fix only breaks recorded by `graphmend trace`, most expensive first",
    )
    parser.add_argument(
        "--rerun",
        action="store_true",
        help="then run the traced command again, and compare; needs a trace with --keep-command",
    )


def add_project_options(parser: argparse.ArgumentParser) -> None:
    """What the settings file says of the project as a whole."""
    parser.add_argument(
        "--exclude",
        action="append",
        metavar="GLOBS",
        help="files and folders to skip, comma-separated; adds to the configured exclude",
    )
    parser.add_argument(
        "--target-torch",
        metavar="X.Y",
        help="lowest torch version that the project supports [default: from its requirements]",
    )


def add_talk_options(parser: argparse.ArgumentParser) -> None:
    """How much to say."""
    talk = parser.add_mutually_exclusive_group()
    talk.add_argument("--quiet", "-q", action="store_true", help="findings and errors only: no summary, no notes")
    talk.add_argument("--verbose", "-v", action="store_true", help="print the settings used and the time taken")


def add_run_options(parser: argparse.ArgumentParser, *, cached: bool = False) -> None:
    """How to run. Commands that are not `cached` take `--no-cache` as well and have no use for it."""
    parser.add_argument(
        "--jobs", "-j", type=_positive, metavar="N", help="worker processes [default: one for each core]"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="do not read or write the cache" if cached else argparse.SUPPRESS
    )


def settings_from(args: argparse.Namespace, start: Path) -> Settings:
    """The project's settings at `start` with the command line over them; SettingsError if they cannot be used."""
    told = Overrides(tuple(args.select or ()), tuple(args.ignore or ()), args.unsafe_fixes, args.config, args.opaque)
    settings = overridden_settings(told, known_codes, start)
    if globs := getattr(args, "exclude", None):
        settings = settings._replace(exclude=(*settings.exclude, *_separated(globs)))
    if version := getattr(args, "target_torch", None):
        settings = with_target_torch(settings, version)
    return settings


def only_traced(args: argparse.Namespace, settings: Settings) -> Settings:
    """The settings with the sites of the trace that was named or configured, if one was. Raises TraceError."""
    if args.trace is None and settings.trace is None:
        return settings
    from graphmend_codemod.trace.selection import only_traced as selected

    path = args.trace if args.trace is not None else settings.root / str(settings.trace)
    return selected(path, settings, jobs=workers(args), cache=not args.no_cache)


def known_codes() -> Collection[str]:
    """The codes that settings may name."""
    from graphmend_codemod.rules.framework import retired

    return retired.known_codes()


def projects(args: argparse.Namespace) -> list[tuple[Settings, list[Path]]]:
    """PATHS, or the current folder, by the settings that hold for them: a commit may touch several projects."""
    from graphmend_codemod.core.discovery import own_project

    groups: dict[Settings, list[Path]] = {}
    known: dict[Path, Settings] = {}
    for path in [Path(path) for path in args.paths] or [Path()]:
        is_folder = os.path.isdir(path)
        start = path if is_folder else path.parent
        if start not in known:
            known[start] = settings_from(args, start)
        settings = own_project(known[start], path) if is_folder else known[start]
        groups.setdefault(settings, []).append(path)
    return list(groups.items())


def rebased(items: Iterable[Placed], old: Path, new: Path) -> Iterator[Placed]:
    """Findings, problems or changes of one project with their paths relative to the root of another."""
    for item in items:
        yield item if old == new else item._replace(path=os.path.relpath(old / item.path, new).replace(os.sep, "/"))


def stdin_path(args: argparse.Namespace) -> Path | None:
    """Where the text on standard input stands; None if it is not asked for. CommandError on a contradiction."""
    if STDIN not in args.paths:
        if args.stdin_filename is not None:
            raise CommandError("--stdin-filename requires `-` as PATHS")
        return None
    if args.paths != [STDIN]:
        raise CommandError("`-` reads standard input and cannot be combined with other paths; run graphmend twice")
    return Path(args.stdin_filename or "stdin.py")


def stdin_text() -> bytes:
    """Standard input, up to what is too much to be looked at; the rest can still be read."""
    from graphmend_codemod.core.source import MOST_READ

    return sys.stdin.buffer.read(MOST_READ + 1)


def workers(args: argparse.Namespace) -> int:
    """How many worker processes to use at most."""
    if args.jobs is not None:
        return int(args.jobs)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def print_problems(problems: Iterable[Problem], root: Path) -> None:
    """One line each on standard error, without those of files that have nothing to do with torch."""
    for problem in problems:
        if problem.aside:
            continue
        from graphmend_codemod.reporting.report import shown_path

        shown = problem._replace(path=shown_path(problem.path, root))
        say(f"graphmend: error: {printable(str(shown))}", sys.stderr)


def open_page(page: Path) -> None:
    """Show a file in the user's browser, or say how to where there is none."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        print_notes([f"no browser was found; open {page} yourself"])


@contextmanager
def telling(args: argparse.Namespace, what: str) -> Iterator[None]:
    """Show on a terminal that a run goes on which takes more than two seconds; with --verbose, say how long it took."""
    start = time.perf_counter()
    if args.quiet or not sys.stderr.isatty():
        yield
    else:
        from graphmend_codemod.core.progress import ticking

        with ticking(sys.stderr, what):
            yield
    if args.verbose:
        say(f"graphmend: {what} took {time.perf_counter() - start:.2f} s", sys.stderr)


def print_details(used: Iterable[Settings], files: int) -> None:
    """What --verbose says: the projects with their settings, and how many files were looked at."""
    for settings in used:
        torch = ".".join(map(str, settings.target_torch or ())) or "any"
        told = f"select {','.join(settings.select)}, ignore {','.join(settings.ignore) or 'nothing'}, torch {torch}"
        say(f"graphmend: project {printable(str(settings.root))}: {told}", sys.stderr)
    say(f"graphmend: {files} Python files", sys.stderr)


def print_notes(notes: Iterable[str]) -> None:
    """One line each on standard error, none of them twice."""
    for note in dict.fromkeys(notes):
        say(f"graphmend: note: {printable(note)}", sys.stderr)


def _separated(values: Iterable[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return number


def above_zero(text: str) -> float:
    """An option's number, of which there may be a part."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return number
