"""`graphmend fleet`: many repositories, with one row of result each."""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options
from graphmend_codemod.core.extras import require
from graphmend_codemod.core.terminal import printable, say
from graphmend_codemod.fleet.jobs import ACTIONS, CHECK, MIGRATE, PR, Limits, Options

if TYPE_CHECKING:
    from graphmend_codemod.fleet.results import Row, Store
    from graphmend_codemod.fleet.sources import Target

_DESCRIPTION = """\
Check many repositories, migrate clones of them, or keep a pull request open in
each. Each repository runs in its own process with limits on time, memory and
disk; a failure costs only its row. Rows are kept in a SQLite
file as the run goes, so that it can be ended and resumed at any time.
"""
_EPILOG = """\
SOURCE is a folder of clones, a configuration of all-repos (.json), or a list:
a folder or an address a line, `#` begins a comment.

exit codes: 0 every repository was handled, 1 `check` found something that can
be fixed, 2 at least one repository failed, 130 interrupted.

examples:
  graphmend fleet check repositories.txt
  graphmend fleet migrate ~/src --jobs 4
  graphmend fleet pr all-repos.json --resume
  graphmend fleet pr repositories.txt --scheduler tcp://scheduler:8786
  graphmend fleet report --html fleet.html --json fleet.json --csv fleet.csv
  graphmend fleet serve --open
"""
_GIB = 2**30


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = options.command(subparsers, "fleet", "check, migrate or maintain many repositories", _DESCRIPTION, _EPILOG)
    actions = parser.add_subparsers(dest="fleet_action", metavar="ACTION", required=True)
    helps = {"check": "count break sites", "migrate": "make a branch in each clone", "pr": "keep a pull request open"}
    for action in ACTIONS:
        _add_action(actions, action, helps[action])
    report = actions.add_parser("report", help="write the rows as a page and as JSON", allow_abbrev=False)
    _add_results(report)
    report.add_argument("--html", type=Path, metavar="FILE", help="where to write the page")
    report.add_argument("--csv", type=Path, metavar="FILE", help="where to write all rows of all runs")
    serve = actions.add_parser("serve", help="show the state of a run in a browser, live", allow_abbrev=False)
    _add_results(serve)
    serve.add_argument("--port", type=_port, default=8788, metavar="N", help="on this machine alone [default: 8788]")
    serve.add_argument("--open", action="store_true", help="open the page in a browser")
    report.add_argument("--json", type=Path, metavar="FILE", help="where to write the JSON")


def _add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser], action: str, help_text: str) -> None:
    parser = actions.add_parser(
        action, help=help_text, epilog=_EPILOG, formatter_class=options.HelpFormatter, allow_abbrev=False
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="a folder, a list or all-repos.json")
    _add_results(parser)
    parser.add_argument("--resume", action="store_true", help="skip repositories that are done; retry failures")
    parser.add_argument(
        "--jobs", "-j", type=int, default=0, metavar="N", help="repositories at a time [default: cores]"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, tcp://HOST:PORT, to run on its workers"
    )
    parser.add_argument(
        "--time-limit", type=options.above_zero, default=1800.0, metavar="SECONDS", help="[default: 1800]"
    )
    parser.add_argument("--memory-limit", type=options.above_zero, default=8.0, metavar="GIB", help="[default: 8]")
    parser.add_argument("--disk-limit", type=options.above_zero, default=8.0, metavar="GIB", help="[default: 8]")
    parser.add_argument(
        "--git-timeout", type=options.above_zero, default=300.0, metavar="SECONDS", help="[default: 300]"
    )
    parser.add_argument("--forge", choices=("github", "gitlab"), help="forge type of unknown hosts")
    parser.add_argument("--api-url", metavar="URL", help="URL of the forge's API, if not the default")
    if action != MIGRATE:
        parser.add_argument(
            "--object-cache",
            type=Path,
            metavar="DIR",
            help="folder to keep fetched objects for later runs [default: none]",
        )
    if action != CHECK:
        parser.add_argument("--dry-run", action="store_true", help="change nothing")
        parser.add_argument("--branch", metavar="NAME", help="the branch to make")
        parser.add_argument(
            "--evaluate",
            action=argparse.BooleanOptionalAction,
            default=False,
            help="compile configured models: runs code of the repositories [default: no]",
        )
    if action == PR:
        parser.add_argument("--fork", action="store_true", help="push to your forks")
        parser.add_argument(
            "--patience", type=options.above_zero, default=900.0, metavar="SECONDS", help="[default: 900]"
        )
    options.add_rule_options(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, default=Path("graphmend-fleet.sqlite"), metavar="FILE", help="the SQLite file of rows"
    )


def run(args: argparse.Namespace) -> int:
    """Do it, tell what came of it, and return the exit code."""
    from graphmend_codemod.fleet.results import Store
    from graphmend_codemod.fleet.scheduler import SchedulerError
    from graphmend_codemod.fleet.sources import SourceError, find_targets

    views = {"report": _report, "serve": _serve}
    if args.fleet_action == "report" and not args.results.is_file():
        raise options.CommandError(f"{args.results}: does not exist; run `graphmend fleet check` first")
    try:
        view = views.get(args.fleet_action)
        targets = () if view is not None else find_targets(args.source)
        _require_extras(args, targets)
        store = Store(args.results)
        try:
            return view(args, store) if view is not None else _run(args, store, targets)
        finally:
            store.close()
    except (SourceError, SchedulerError) as error:
        raise options.CommandError(str(error)) from error
    except sqlite3.Error as error:
        raise options.CommandError(f"{args.results}: cannot be used: {error}; name another with --results") from error


def _require_extras(args: argparse.Namespace, targets: Sequence[Target]) -> None:
    """Before any repository is looked at: without them, each would fail."""
    from graphmend_codemod.forge.location import looks_remote

    if args.fleet_action == PR or (args.fleet_action == CHECK and any(looks_remote(one.location) for one in targets)):
        require("bot", f"`graphmend fleet {args.fleet_action}` of repositories on a forge")
    if getattr(args, "scheduler", None):
        require("cluster", "--scheduler")
    if getattr(args, "evaluate", None):
        require("eval", "--evaluate")


def _run(args: argparse.Namespace, store: Store, targets: Sequence[Target]) -> int:
    from graphmend_codemod.core.interruption import interruptible
    from graphmend_codemod.fleet.report import headline
    from graphmend_codemod.fleet.results import FINDINGS
    from graphmend_codemod.fleet.scheduler import run_all

    told = _options(args)
    limits = Limits(args.time_limit, int(args.memory_limit * _GIB), int(args.disk_limit * _GIB))
    done = store.done(told.action) if args.resume else frozenset()
    if not args.resume:
        store.begin(told.action)
    todo = [target for target in targets if target.location not in done]
    if done:
        print(f"{len(targets) - len(todo)} of {len(targets)} are done already", file=sys.stderr)
    store.expect(told.action, len(targets), len(targets) - len(todo))
    jobs = args.jobs if args.jobs > 0 else options.workers(argparse.Namespace(jobs=None))
    rows_to_come = run_all(todo, told, limits, jobs=jobs, scheduler=args.scheduler)
    with interruptible(), contextlib.closing(rows_to_come):
        for number, row in enumerate(rows_to_come, start=1):
            store.keep(row)
            _tell(number, len(todo), row)
    wanted = {target.location for target in targets}
    rows = [row for row in store.rows() if row.action == told.action and row.location in wanted]
    say(headline(rows))
    if any(row.failed for row in rows):
        return 2
    return 1 if any(row.status == FINDINGS for row in rows) else 0


def _tell(number: int, count: int, row: Row) -> None:

    what = f"{row.sites} sites" + (f", {row.fixed} fixed" if row.fixed else "")
    told = row.error if row.failed else f"{what}{f', {row.pull_request}' if row.pull_request else ''}"
    line = printable(f"[{number}/{count}] {row.name}: {row.status}, {told}")
    say(line, sys.stderr if row.failed else sys.stdout, flush=True)


def _report(args: argparse.Namespace, store: Store) -> int:
    from graphmend_codemod.fleet import history, report

    rows = list(store.rows())
    texts: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (args.html, lambda: report.as_html(rows, earlier=history.runs(store.everything()))),
        (args.json, lambda: report.as_json(rows)),
        (args.csv, lambda: history.as_csv(store.everything())),
    )
    for file, text in texts:
        if file is not None:
            file.write_text(text(), encoding="utf-8")
    say(report.headline(rows))
    return 0


def _serve(args: argparse.Namespace, store: Store) -> int:
    """Until Ctrl-C. The file may not be there yet: a run makes it."""
    from graphmend_codemod.fleet.serve import make_server

    store.close()
    try:
        server = make_server(args.results, args.port)
    except OSError as error:
        raise options.CommandError(f"port {args.port}: {error.strerror}; choose another one with --port") from error
    address = f"http://{server.server_address[0]!s}:{server.server_address[1]}/"
    print(f"Serving {args.results} at {address}; press Ctrl-C to stop", flush=True)
    if args.open:
        import webbrowser

        webbrowser.open(address)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


def _options(args: argparse.Namespace) -> Options:
    return Options(
        action=args.fleet_action,
        select=tuple(args.select or ()),
        ignore=tuple(args.ignore or ()),
        unsafe_fixes=args.unsafe_fixes,
        opaque=args.opaque,
        config=None if args.config is None else str(args.config.resolve()),
        evaluate=getattr(args, "evaluate", False),
        forge=args.forge,
        api=args.api_url,
        fork=getattr(args, "fork", False),
        dry_run=getattr(args, "dry_run", False),
        patience=getattr(args, "patience", 900.0),
        git_timeout=args.git_timeout,
        branch=getattr(args, "branch", None),
        object_cache=_absolute(getattr(args, "object_cache", None)),
    )


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


def _port(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f"must be a number below 65536, not {text!r}")
    return number
