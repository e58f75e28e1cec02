"""`graphmend trace`: run a program as it is, and list what broke its graphs, with cause, cost and fix."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.core.settings import Settings
    from graphmend_codemod.trace.baseline import Compared
    from graphmend_codemod.trace.document import Trace
    from graphmend_codemod.trace.join import Joined
    from graphmend_codemod.trace.run import Outcome

FORMATS = ("text", "json", "sarif", "github", "gitlab", "markdown", "badge")
DEFAULT_OUTPUT = "trace.json"
_EXPLAINED = 5

_DESCRIPTION = """\
Run a program as it is and record what its own torch.compile calls do: every
graph break once, however many frames it broke, with its cause, what it cost,
and what graphmend can do about it. Recompilations and functions that Dynamo
gave up are listed as well. Nothing of the program changes, and nothing of
graphmend is imported by it; an exception or Ctrl-C still leaves the trace.
Processes that it starts (data loaders, torchrun) are recorded, too.
"""
_EPILOG = """\
exit codes: that of the program; 1 if there is a break site that the baseline
does not have, 2 if nothing could be traced

examples:
  graphmend trace -- python train.py --epochs 1
  graphmend trace -m mypackage.train --epochs 1
  graphmend trace --compile auto -- python predict.py
  graphmend trace -- torchrun --nproc-per-node 2 train.py
  graphmend trace --from-tests "tests -q"
  graphmend trace --import /logs/torch_trace
  graphmend trace --baseline breaks.json -- python train.py
  graphmend fix --trace trace.json
  graphmend trace --compare trace.json -o after.json -- python train.py
  graphmend trace --show trace.json --format badge
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(
        subparsers,
        "trace",
        "list the graph breaks of a run",
        _DESCRIPTION,
        _EPILOG,
        usage="graphmend trace [OPTIONS] -- COMMAND ...",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments")
    _add_sources(parser)
    parser.add_argument(
        "--compile",
        choices=("auto",),
        help="compile the outermost called modules with backend `eager`, for programs that never call torch.compile",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"where to write the trace [default: {DEFAULT_OUTPUT}]"
    )
    parser.add_argument(
        "--keep-command",
        action="store_true",
        help="keep the command with its arguments in the trace, for `fix --rerun`; they may hold secrets",
    )
    parser.add_argument(
        "--calls",
        action="store_true",
        help="run the command once more, without torch.compile, and note what went into and came out of the statements "
        "that broke, for `fix --trace --opaque`",
    )
    _add_views(parser)
    parser.add_argument("--no-source", action="store_true", help="keep source lines out of the trace")
    parser.add_argument("--quiet", "-q", action="store_true", help="say nothing of breaks while the program runs")
    baseline = parser.add_argument_group("no new breaks")
    baseline.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="exit with 1 for break sites that are not in FILE; written if missing",
    )
    baseline.add_argument("--update-baseline", action="store_true", help="rewrite the baseline")
    options.add_rule_options(parser)
    options.add_run_options(parser, cached=True)


def _add_views(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--compare", type=Path, metavar="FILE", help="say what changed since the trace in FILE")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write one page to look at in a browser")
    parser.add_argument("--open", action="store_true", help="write the page beside the trace and open it")
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to show it [default: text]")
    parser.add_argument(
        "--top",
        type=_number,
        metavar="N",
        help="show the N dearest sites in full, and a line for each other one [default: 10]",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to trace, in place of a command")
    what.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="python -m MODULE ...")
    what.add_argument(
        "--model", metavar="PKG:FACTORY", help="a factory of a module and its inputs, as `evaluate` takes"
    )
    what.add_argument("--from-tests", metavar="ARGS", help="python -m pytest ARGS")
    what.add_argument("--import", dest="logs", type=Path, metavar="DIR", help="read what TORCH_TRACE=DIR wrote")
    what.add_argument("--show", type=Path, metavar="FILE", help="show a trace that was recorded before")


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def run(args: argparse.Namespace) -> int:
    """Trace, show, and return the exit code."""
    _check(args)
    if args.format == "badge" and args.show is not None:
        from graphmend_codemod.trace import badge

        say(badge.of_file(args.show))
        return 0
    from graphmend_codemod.trace.join import join

    before, known = _before(args), _known(args)
    settings = options.settings_from(args, Path())
    trace, code = _trace(args, settings)
    output = _keep(args, trace, code)  # before anything else can go wrong
    file = str(output or args.show or "")
    joined = join(trace, settings, jobs=options.workers(args), cache=not args.no_cache, file=file)
    new = _against_baseline(args, trace, settings.root, known)
    _show(args, joined, settings, new)
    told = sys.stdout if args.format == "text" else sys.stderr
    if before is not None:
        from graphmend_codemod.trace.compare import Comparison

        for line in Comparison(before, trace).lines():
            say(line, told)
    if output is not None:
        say(f"Trace: {output}", told)
    _page(args, joined, output, told)
    return code or (1 if new else 0)


def _before(args: argparse.Namespace) -> Trace | None:
    """The trace to compare with; read before a run of hours, and before a trace of the same name is written."""
    if args.compare is None:
        return None
    from graphmend_codemod.trace import document

    return document.read(args.compare)


def _known(args: argparse.Namespace) -> frozenset[str] | None:
    """What the baseline has, read before the run as well; None where it is to be written, or is not asked for."""
    if args.baseline is None or args.update_baseline or not args.baseline.exists():
        return None
    from graphmend_codemod.trace import baseline

    return baseline.read(args.baseline)


def _check(args: argparse.Namespace) -> None:
    asked = {
        "a command": args.program,
        "-m": args.module,
        "--model": args.model,
        "--from-tests": args.from_tests,
        "--import": args.logs,
        "--show": args.show,
    }
    given = [name for name, value in asked.items() if value not in (None, [], ["--"])]
    if not given:
        raise options.CommandError("nothing to trace; write `graphmend trace -- python your_script.py`")
    if len(given) > 1:
        raise options.CommandError(f"{' and '.join(given)} cannot be traced together; run graphmend twice")
    if args.update_baseline and args.baseline is None:
        raise options.CommandError("--update-baseline needs --baseline FILE")
    for path in (args.output, args.html, args.baseline):  # told before a run of hours, whose trace would be lost
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise options.CommandError(
                f"{path}: is a folder; name a file" if path.is_dir() else f"{path}: there is no folder {path.parent}"
            )
    if args.open or args.html is not None:
        from importlib.util import find_spec

        if find_spec("jinja2") is None:  # of the extra `eval`, whose torch the page can do without
            raise options.CommandError("the page needs jinja2; run `pip install jinja2` where graphmend is installed")


def _trace(args: argparse.Namespace, settings: Settings) -> tuple[Trace, int]:
    from graphmend_codemod.trace import document
    from graphmend_codemod.trace import run as running

    if args.show is not None:
        return document.read(args.show), 0
    source = not args.no_source
    if args.logs is not None:
        return running.imported(args.logs, settings.root, source=source), 0
    command = running.command_of(args.program, args.module or (), args.from_tests, args.model)
    progress = None if args.quiet else _progress
    if args.keep_command and args.compile:
        raise options.CommandError("--keep-command does not go with --compile: the run would be another one")
    outcome = running.run(command, settings.root, compile_auto=args.compile == "auto", source=source, progress=progress)
    options.print_notes(_notes(outcome, args.compile == "auto"))
    trace = outcome.trace
    if args.calls and trace.sites:
        options.print_notes(["running the command once more, without torch.compile"])
        trace = running.with_calls(trace, command, settings.root)
    if args.keep_command:
        trace = running.with_command(trace, command, settings.root)
    return trace, outcome.exit_code


def _notes(outcome: Outcome, compiled: bool) -> Iterator[str]:
    """What a user must know of a run that ended early or left nothing."""
    if outcome.exit_code:
        yield f"the program ended with exit code {outcome.exit_code}; the trace up to that point follows"
    if not outcome.heard:
        yield (
            "nothing was recorded: no Python of this program started the recorder, which it finds through PYTHONPATH. "
            "Leave out `-S`, `-E` and `-I` of python, and keep PYTHONPATH where the program sets it; or record in the "
            "code, `with graphmend_evaluation.trace(FILE):`"
        )
    elif not outcome.exit_code and not outcome.trace.totals.compilations:
        hint = "" if compiled else "; `--compile auto` compiles the modules that the program calls"
        yield f"nothing was compiled: no torch.compile was called{hint}"


def _progress(words: str) -> None:
    options.print_notes([words])


def _against_baseline(
    args: argparse.Namespace, trace: Trace, root: Path, known: frozenset[str] | None
) -> frozenset[str] | None:
    """The ids of sites that are new; None without a baseline."""
    if args.baseline is None:
        return None
    from graphmend_codemod.trace import baseline

    if known is None:
        baseline.write(args.baseline, trace)
        options.print_notes([f"{args.baseline}: baseline of {len(trace.sites)} break sites written"])
        return frozenset()
    compared = baseline.compare(known, trace)
    _explain(compared, args.baseline, root)
    return compared.new


def _explain(compared: Compared, baseline: Path, root: Path) -> None:
    """Print what is new and what is gone, and for the first new sites what changed since the baseline was written."""
    from graphmend_codemod.core.terminal import printable
    from graphmend_codemod.repository import changes

    for number, note in enumerate(compared.notes(str(baseline))):
        options.print_notes([note])
        site = compared.sites[number] if number < min(_EXPLAINED, len(compared.sites)) else None
        if site is not None and site.own is not None:
            for line in changes.since(baseline.resolve(), root / site.own.path, site.own.line):
                say(f"    {printable(line)}", sys.stderr)


def _show(args: argparse.Namespace, joined: Joined, settings: Settings, new: frozenset[str] | None) -> None:
    from graphmend_codemod.trace import documents, text

    if args.format == "json":
        say(documents.as_json(joined))
    elif args.format == "sarif":
        say(documents.sarif(joined, settings.root))
    elif args.format == "gitlab":
        say(documents.code_quality(joined, settings.root))
    elif args.format == "markdown":
        say(documents.markdown(joined))
    elif args.format == "badge":
        from graphmend_codemod.trace.badge import badge

        say(badge(len(joined.trace.sites)))
    elif args.format == "github":
        for line in documents.github_commands(joined, settings.root, new):
            say(line)
    else:
        from graphmend_codemod.core.colour import paint_for

        top = text.TOP if args.top is None else args.top
        for line in text.full(joined, paint_for(sys.stdout, os.environ), new=new, top=top):
            say(line)


def _keep(args: argparse.Namespace, trace: Trace, code: int) -> Path | None:
    """Write the trace; its file, None where an old one is shown and no other was asked for.

    A program that failed before it compiled anything leaves the trace of an earlier run alone.
    """
    from graphmend_codemod.trace import document

    output: Path | None = args.output or (None if args.show is not None else Path(DEFAULT_OUTPUT))
    if output is not None and code and not trace.totals.compilations and output.exists():
        options.print_notes([f"{output} is left as it was: this run compiled nothing"])
        return None
    if output is not None:
        output.write_text(document.as_json(trace), encoding="utf-8", errors="backslashreplace")
    return output


def _page(args: argparse.Namespace, joined: Joined, output: Path | None, told: TextIO) -> None:
    page: Path | None = args.html or ((output or args.show).with_suffix(".html") if args.open else None)
    if page is None:
        return
    from graphmend_evaluation.tracing.page import html

    page.write_text(html(joined), encoding="utf-8", errors="backslashreplace")
    say(f"Page: {page}", told)
    if args.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
