"""One place that Dynamo cannot trace: what is said of it, and what those who look for such places are given."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.rules.framework.site import Site


class Untraced(NamedTuple):
    """One break site: the part of the statement, what it does, and a way out."""

    node: ast.expr
    does: str
    advice: str

    @property
    def message(self) -> str:
        return f"{self.does}: `{speculation.short(self.node)}`"


Ask = Callable[[Site, ast.Call, "str | None"], Untraced | None]
"""Asks for one kind of break at a call, given the qualified name of what is called."""

CAPTURE = "`torch._dynamo.config.capture_dynamic_output_shape_ops`"
"""The setting that makes Dynamo trace some operators whose output shape depends on the data."""
