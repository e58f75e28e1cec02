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

from graphmend_codemod import GraphmendError, __version__
from graphmend_codemod.cli.options import HelpFormatter

COMMANDS = {
    "check": "graphmend_codemod.cli.check",
    "evaluate": "graphmend_codemod.cli.evaluate",
    "fix": "graphmend_codemod.cli.fix",
    "fleet": "graphmend_codemod.cli.fleet",
    "migrate": "graphmend_codemod.cli.migrate",
    "pr": "graphmend_codemod.cli.pr",
    "rule": "graphmend_codemod.cli.rules",
    "rules": "graphmend_codemod.cli.rules",
}
_ONE_READING = frozenset({"check", "fix"})
CANNOT = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

_EPILOG = """\
exit codes:
  0    nothing to do
  1    there are findings that can be fixed (check), or files were changed (fix)
  2    something could not be done; standard error says what
  130  interrupted

examples:
  graphmend check                  list the break sites below the current folder
  graphmend fix src/models         fix them in place
  graphmend fix --diff             show what would change
  graphmend rule GM101             explain a rule
  graphmend migrate                put all fixes on a branch, one commit a rule
  graphmend pr --dry-run           show the pull request that would be opened
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a usage error exits with 2, as argparse does."""
    # Imports and syntax trees leave little garbage; looking for it less often makes the commit hook 8% faster.
    gc.set_threshold(100_000, 20, 20)
    arguments = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a strange file name must not end the run
    try:
        args = _parser(arguments).parse_args(arguments)
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
        if error.filename is None:
            _let_go_of_output()
        return _complain(f"error: {error.filename or 'output'}: {error.strerror or error}")
    return code


@contextmanager
def _keeping_everything() -> Iterator[None]:
    """No search for cyclic garbage while a command runs, nor on the way out: nearly all that it makes is needed."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the wanted command alone: the others need not be imported."""
    parser = argparse.ArgumentParser(
        prog="graphmend",
        description="Find and remove TorchDynamo graph breaks in PyTorch code. Eager behaviour stays as it is.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"graphmend {__version__}")
    subparsers = parser.add_subparsers(prog="graphmend", dest="command", metavar="command", required=True)
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    modules = [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(COMMANDS.values())
    for module in modules:
        import_module(module).add_parser(subparsers)
    return parser


def _complain(message: str, code: int = CANNOT) -> int:
    print(f"graphmend: {message}", file=sys.stderr)
    return code


def _let_go_of_output() -> None:
    """Nobody can read it. Python would complain once more when it flushes at exit, so give it somewhere to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
