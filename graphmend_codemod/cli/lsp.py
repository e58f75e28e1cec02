"""`graphmend lsp`: the language server on standard input and output, which editors start."""

from __future__ import annotations

import argparse

from graphmend_codemod.cli import options


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    options.command(
        subparsers,
        "lsp",
        "run the language server for editors",
        (
            "Speak the Language Server Protocol on standard input and output: findings while one types,\n"
            "quick fixes, and the rule's page on hover. Needs the extra `lsp`."
        ),
        "examples:\n  graphmend lsp        what an editor starts; docs/editors.md has settings for some\n",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the editor says to end."""
    from graphmend_codemod.core.extras import require

    require("lsp", "graphmend lsp")
    from graphmend_codemod.lsp.server import make_server

    make_server().start_io()
    return 0
