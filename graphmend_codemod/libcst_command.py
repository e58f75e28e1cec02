"""graphmend as a command of libcst's codemod tool, for pipelines that are built on it.

    python -m libcst.tool codemod -x --no-format graphmend_codemod.libcst_command.GraphmendCommand path/to/package

Each file is fixed as `graphmend fix FILE` fixes it: the same engine, settings and proofs, the concrete trees' included.
libcst chooses the files, writes them, and reports what was left alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from graphmend_codemod.core.discovery import discover
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings import Overrides, overridden_settings
from graphmend_codemod.engine import api
from graphmend_codemod.rewriting.concrete import verify_concrete
from graphmend_codemod.rules.framework.retired import known_codes


class GraphmendCommand(CodemodCommand):
    """Fixes the graph breaks of one file; options are those of `graphmend fix`."""

    DESCRIPTION = "Remove TorchDynamo graph breaks; eager mode stays as it is. Settings come from [tool.graphmend]."

    def __init__(
        self,
        context: CodemodContext,
        *,
        select: str | None = None,
        ignore: str | None = None,
        unsafe_fixes: bool = False,
        opaque: bool = False,
    ) -> None:
        super().__init__(context)
        self._overrides = Overrides(
            select=(select,) if select else (),
            ignore=(ignore,) if ignore else (),
            unsafe_fixes=True if unsafe_fixes else None,
            opaque=True if opaque else None,
        )

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Add the options to the parser of libcst's tool."""
        arg_parser.add_argument("--select", metavar="CODES", help="rule codes or prefixes, with commas between")
        arg_parser.add_argument("--ignore", metavar="CODES", help="leave these out")
        arg_parser.add_argument(
            "--unsafe-fixes", action="store_true", help="also apply unsafe fixes, which need review"
        )
        arg_parser.add_argument("--opaque", action="store_true", help="also outline code as opaque operators")

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The fixed module, or `tree` itself. SkipFile, with one line, for a file that has to be left alone."""
        path = Path(self.context.filename or "module.py")
        try:
            settings = overridden_settings(self._overrides, known_codes, path)
        except SettingsError as error:
            raise SkipFile(str(error)) from error
        if path.exists() and not discover([path], settings).files:
            return tree
        result = api.fix_text(tree.bytes, path, settings, proof=verify_concrete)
        for problem in result.problems:
            if not problem.aside:
                raise SkipFile(str(problem))
        if not result.fixes:
            return tree
        return cst.parse_module(result.fixes[0].after)
