"""What takes the place of a call that Dynamo does not trace while torch.compile traces, and how it is written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from graphmend_codemod.core.findings import CompilePath, Helper, Original, Replacement
from graphmend_codemod.rules.framework.site import Site


class Twin(NamedTuple):
    """What takes the place of `replaced`, a call or what is called in it, where all `conditions` hold.

    A `test` is written with `and` and `or`: TorchScript learns types from these, and from no conditional expression.
    Calls `without` which the twin does are left out together with `replaced`. `raises` is False for one that cannot.
    """

    call: ast.expr
    replaced: ast.expr
    text: str
    conditions: tuple[str, ...]
    helpers: tuple[Helper, ...] = ()
    test: bool = False
    without: tuple[ast.Call, ...] = ()
    raises: bool = True

    @property
    def condition(self) -> str:
        """The conditions as one expression."""
        return " and ".join(self.conditions)


def is_choice(statement: ast.stmt, twin: Twin) -> bool:
    """True where `replacement` writes a conditional expression."""
    alone = isinstance(statement, ast.Expr) and statement.value is twin.replaced
    return bool(twin.text) and not alone and not twin.test


def replacement(site: Site, statement: ast.stmt, twin: Twin) -> Replacement:
    """`(twin if condition else original)`, or two branches where that is all there is to the statement."""
    if site.without_gradients:
        twin = twin._replace(conditions=(twin.conditions[0], site.gradients_off, *twin.conditions[1:]))
    node = twin.replaced
    if not twin.text:
        return Replacement(
            site.span(node),
            (CompilePath(f"if not {twin.condition}:\n    ", twin.conditions, negated=True), site.original(node, 1)),
        )
    if isinstance(statement, ast.Assign) and statement.value is node and node.lineno < (node.end_lineno or 0):
        target = " = ".join(map(site.text, statement.targets))
        path = CompilePath(f"if {twin.condition}:\n    {target} = {twin.text}\nelse:\n    ", twin.conditions)
        return Replacement(site.span(statement), (path, site.original(statement, 1)))
    if isinstance(statement, ast.Expr) and statement.value is node:
        parts: tuple[str | Original, ...] = (
            CompilePath(f"if {twin.condition}:\n    {twin.text}\nelse:\n    ", twin.conditions),
            site.original(node, 1),
        )
        return Replacement(site.span(node), parts)
    if twin.test:
        taken, left = f"({twin.condition} and {twin.text})", f"(not {twin.condition} and "
        if site.is_too_long(len(site.source.line(node.lineno)) + len(taken) + len(left) + len(" or ())")):
            return Replacement(site.span(node), (f"(\n    {taken}\n    or {left}", site.original(node), ")\n)"))
        return Replacement(site.span(node), (f"({taken} or {left}", site.original(node), "))"))
    choice = CompilePath(f"{twin.text} if {twin.condition} else ", twin.conditions)
    if isinstance(statement, ast.Assign) and statement.value is node and node.lineno == statement.lineno:
        line = site.source.line(node.lineno)
        if node.lineno == node.end_lineno and not site.is_too_long(len(line) + len(choice)):
            return Replacement(site.span(node), (choice, site.original(node)))
    if not site.is_too_long(len(site.source.line(node.lineno)) + len(choice) + len("()")):
        parts = ("(" + choice, site.original(node), ")")
    elif not site.is_too_long(site.indentation(1) + len(choice) + len(site.text(node))):
        parts = ("(\n    " + choice, site.original(node), "\n)")
    else:
        lines = f"(\n    {twin.text}\n    if {twin.condition}\n    else "
        parts = (CompilePath(lines, twin.conditions), site.original(node), "\n)")
    return Replacement(site.span(node), parts)


Make = Callable[[Site, ast.stmt, ast.Call], "Twin | None"]
"""Makes the twin of a call in a statement; None where the call is none of its kind, NotProven where none is right."""


def called(name: str, text: str, since: str = "") -> Make:
    """What is called becomes a helper of the module."""

    def make(site: Site, statement: ast.stmt, call: ast.Call) -> Twin:
        source = text.format(torch=site.torch).strip("\n")
        return either(site, statement, call, name, (Helper(name, source, shared=True, since=since),))

    return make


def either(site: Site, statement: ast.stmt, call: ast.Call, name: str, helpers: tuple[Helper, ...] = ()) -> Twin:
    """`(name if torch.compiler.is_compiling() else called)` in the place of `called`."""
    return Twin(call, call.func, name, (site.compiling,), helpers)
