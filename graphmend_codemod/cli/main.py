"""The `graphmend` command: finds the command's module, runs it, and turns what went wrong into one line."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import NoReturn

from graphmend_codemod import __version__
from graphmend_codemod.cli.options import HelpFormatter
from graphmend_codemod.core.errors import GraphmendError

COMMANDS = {
    "check": "graphmend_codemod.cli.check",
    "completion": "graphmend_codemod.cli.completion",
    "evaluate": "graphmend_codemod.cli.evaluate",
    "fix": "graphmend_codemod.cli.fix",
    "fleet": "graphmend_codemod.cli.fleet",
    "init": "graphmend_codemod.cli.init",
    "lsp": "graphmend_codemod.cli.lsp",
    "migrate": "graphmend_codemod.cli.migrate",
    "pr": "graphmend_codemod.cli.pr",
    "rule": "graphmend_codemod.cli.rules",
    "rules": "graphmend_codemod.cli.rules",
    "trace": "graphmend_codemod.cli.trace",
}
_ONE_READING = frozenset({"check", "fix"})
_LONGEST = 2000
TRACEBACK = "--traceback"
_TRACEBACK_HELP = "show where an unexpected error happened"
CANNOT = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

_EPILOG = """\
exit codes:
  0    done, and nothing is wrong
  1    findings can be fixed (check), files were changed (fix),
       or a model behaves differently (evaluate)
  2    an error occurred; see standard error
  130  interrupted

examples:
  graphmend init                   write settings and a commit hook for this repository
  graphmend check                  list the break sites below the current folder
  graphmend fix src/models         fix them in place
  graphmend fix --diff             show what would change
  graphmend rule GM101             explain a rule
  graphmend help check             explain a command
  graphmend migrate                put all fixes on a branch, one commit per rule
  graphmend pr --dry-run           show the pull request that would be opened
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a usage error exits with 2, as argparse does."""
    # Imports and syntax trees leave little garbage; looking for it less often makes the commit hook 8% faster.
    gc.set_threshold(100_000, 20, 20)
    arguments = _without_help_command(sys.argv[1:] if argv is None else list(argv))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a strange file name must not end the run
    try:
        parser = _parser(arguments)
        args = parser.parse_args([each for each in arguments if each != TRACEBACK])  # it may be anywhere
        if args.command is None:
            parser.print_help(sys.stderr)
            parser.exit(CANNOT)
        with _keeping_everything() if args.command in _ONE_READING else nullcontext():
            code = int(import_module(COMMANDS[args.command]).run(args))
        sys.stdout.flush()
    except GraphmendError as error:
        return _complain(f"error: {error}")
    except KeyboardInterrupt as error:
        return _complain("interrupted", getattr(error, "exit_code", INTERRUPTED))
    except BrokenPipeError:
        _let_go_of_output()
        return PIPE_CLOSED
    except OSError as error:
        _trace(arguments)
        if error.filename is None:
            _let_go_of_output()
        return _complain(f"error: {error.filename or 'output'}: {error.strerror or error}")
    except MemoryError:
        _trace(arguments)
        return _complain("error: out of memory; try --jobs 1, or exclude large files")
    except Exception as error:  # a mistake of graphmend's own, which nobody should take for findings
        _trace(arguments)
        return _complain(f"error: {_internal(error)}")
    return code


def _without_help_command(arguments: list[str]) -> list[str]:
    """`help check` as `check --help`, `help` as `--help`."""
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


def _trace(arguments: Sequence[str]) -> None:
    """Show where it happened to those who asked for it."""
    if TRACEBACK in arguments:
        import traceback

        traceback.print_exc()


def _internal(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" in {frame.tb_frame.f_globals.get('__name__')}, line {frame.tb_lineno}"
    return (
        f"internal error ({type(error).__name__}: {error}{where}); "
        f"please report it with what the same command prints with {TRACEBACK}"
    )


@contextmanager
def _keeping_everything() -> Iterator[None]:
    """No search for cyclic garbage while a command runs, nor on the way out: nearly all that it makes is needed."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        from graphmend_codemod.cli.suggestions import with_suggestion
        from graphmend_codemod.core.terminal import printable

        super().error(printable(with_suggestion(message, self)))


def whole_parser() -> argparse.ArgumentParser:
    """The parser with the options of every command."""
    return _parser(())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the wanted command alone: the others need not be imported."""
    parser = _Parser(
        prog="graphmend",
        description="Find and remove TorchDynamo graph breaks in PyTorch code. Eager behaviour does not change.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", "-V", action="version", version=f"graphmend {__version__}")
    parser.add_argument(TRACEBACK, action="store_true", help=_TRACEBACK_HELP)
    subparsers = parser.add_subparsers(prog="graphmend", dest="command", metavar="command")
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    modules = [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(COMMANDS.values())
    for module in modules:
        import_module(module).add_parser(subparsers)
    for command in subparsers.choices.values():
        command.add_argument(TRACEBACK, action="store_true", default=argparse.SUPPRESS, help=_TRACEBACK_HELP)
    return parser


def _complain(message: str, code: int = CANNOT) -> int:
    from graphmend_codemod.core.terminal import printable

    print(f"graphmend: {_shortened(printable(message))}", file=sys.stderr)
    return code


def _shortened(message: str) -> str:
    """A line that fits into a log, whatever somebody wrote into a settings file."""
    half = _LONGEST // 2
    return message if len(message) <= _LONGEST else f"{message[:half]} [...] {message[-half:]}"


def _let_go_of_output() -> None:
    """Nobody can read it. Python would complain once more when it flushes at exit, so give it somewhere to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
