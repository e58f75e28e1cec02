"""New lines at the top level of a file: several at one place, with the blank lines that each wants."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise

from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.text import NEWLINE, Change, TextLayout


@dataclass(frozen=True)
class Insertion:
    """Lines to insert at offset `at`, the beginning of a line, with at least so many blank lines `before` and `after`.

    `text` has the file's newlines and none at its end; `binds` are names that its imports bind.
    """

    at: int
    text: str
    before: int = 0
    after: int = 0
    binds: tuple[str, ...] = ()


def placed(layout: TextLayout, insertions: Iterable[Insertion]) -> list[Change]:
    """The insertions as changes, those at one place in their order. No blank lines are added at the file's ends."""
    in_place = sorted(insertions, key=lambda insertion: insertion.at)
    return [_change(layout, at, list(group)) for at, group in groupby(in_place, key=lambda insertion: insertion.at)]


def _change(layout: TextLayout, at: int, group: list[Insertion]) -> Change:
    text, newline = layout.source.text, layout.source.newline
    lines = group[0].text
    for one, another in pairwise(group):
        lines += newline * (1 + max(one.after, another.before)) + another.text
    if text[:at].strip():
        lines = newline * max(0, group[0].before - _blank(_lines(text[:at])[::-1])) + lines
    if at == len(text) and text and not text.endswith(("\n", "\r")):
        return Change(at, at, newline + lines)
    missing = max(0, group[-1].after - _blank(_lines(text[at:]))) if at < len(text) else 0
    return Change(at, at, lines + newline * (1 + missing))


def _lines(text: str) -> list[str]:
    lines = NEWLINE.split(text)
    return lines if lines[-1] else lines[:-1]


def _blank(lines: list[str]) -> int:
    """How many lines are blank before the first that is not."""
    return next((number for number, line in enumerate(lines) if line.strip()), len(lines))


def below(blocks: CodeBlocks, node: ast.stmt) -> int:
    """Offset of the line after a statement's last."""
    return blocks.layout.next_line(blocks.end(node))


def above(blocks: CodeBlocks, node: ast.stmt) -> int:
    """Offset of the line where a top-level statement begins with the comments that touch it.

    Comments from the file's first line on are its header and stay above.
    """
    layout = blocks.layout
    lines = layout.source.line_starts
    first = number = layout.source.line_at(blocks.start(node))
    while number > 1 and layout.source.text[lines[number - 2] : lines[number - 1]].lstrip().startswith("#"):
        number -= 1
    return lines[(first if number == 1 else number) - 1]
