"""Short ways to say an edit: which node, what goes there."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from graphmend_codemod.core.findings import Edit, EditForm, Helper, Original, Replacement, Span
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rewriting import Applied, apply

NodeT = TypeVar("NodeT", bound=ast.stmt | ast.expr)
Part = str | ast.stmt | ast.expr | Original


def from_text(text: str | bytes, path: str = "package/module.py") -> SourceFile:
    raw = text if isinstance(text, bytes) else text.encode()
    return SourceFile.from_bytes(raw, Path("/project") / path, Path("/project"))


def block(text: str) -> str:
    """A dedented text without the newline that begins it."""
    return textwrap.dedent(text).removeprefix("\n")


def span_of(node: ast.stmt | ast.expr) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def node_at(source: SourceFile, text: str, kind: type[NodeT]) -> NodeT:
    """The first node of a type whose source begins with `text`."""
    for node in ast.walk(source.parse()):
        if isinstance(node, kind) and source.segment(span_of(node)).startswith(text):
            return node
    raise AssertionError(f"no {kind.__name__} begins with {text!r}")


def statement(source: SourceFile, text: str) -> ast.stmt:
    return node_at(source, text, ast.stmt)


def original(node: ast.stmt | ast.expr, deeper: int = 0) -> Original:
    return Original(span_of(node), deeper)


def edit(
    target: ast.stmt | ast.expr | Span,
    *parts: str | Original,
    imports: Sequence[str] = (),
    helpers: Sequence[Helper] = (),
    form: EditForm = EditForm.ONE_PATH,
) -> Edit:
    """An edit that says by default that it may change what eager mode runs: most tests are about places alone."""
    span = target if isinstance(target, Span) else span_of(target)
    return Edit((Replacement(span, parts),), tuple(imports), tuple(helpers), form)


def two_paths(node: ast.stmt, **more: Sequence[str]) -> Edit:
    """The statement behind an `else`, as most rules write it."""
    return edit(node, "if compiling():\n    fast()\nelse:\n    ", original(node, 1), imports=more.get("imports", ()))


def made(source: SourceFile, *edits: Edit) -> str:
    """The text with all of these edits made."""
    applied = apply(source, edits)
    assert applied.skipped == ()
    assert applied.applied == tuple(range(len(edits)))
    ast.parse(applied.text)
    return applied.text


def refused(source: SourceFile, *edits: Edit) -> str:
    """The reason why the only edit that is not made is not made."""
    applied: Applied = apply(source, edits)
    ((_, reason),) = applied.skipped
    if not applied.applied:
        assert applied.text == source.text
    return reason
