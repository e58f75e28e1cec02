"""A replacement's parts as text of one file: its newline, its indentation, its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from graphmend_codemod.core.findings import Original, Span
from graphmend_codemod.rewriting.text import Moved, RewriteError, TextLayout

_OUR_LEVEL = 4
_ELIF = re.compile(r"elif(?!\w)")


@dataclass(frozen=True)
class Rendered:
    """Text for one change and the pieces of source in it."""

    text: str
    moved: tuple[Moved, ...] = ()


def offsets(layout: TextLayout, span: Span) -> tuple[int, int]:
    """A span as offsets into the text. RewriteError if the file has no such place."""
    source = layout.source
    try:
        start = source.offset(span.start_line, span.start_column)
        end = source.offset(span.end_line, span.end_column)
    except ValueError as error:
        raise RewriteError(f"its position is not in the file: {error}") from error
    if start > end:
        raise RewriteError(f"its range ends before it starts, at line {span.start_line}")
    return start, end


def render(layout: TextLayout, parts: Sequence[str | Original], base: str) -> Rendered:
    """The parts joined, their lines indented from `base`; the first line begins where the change begins."""
    out = ""
    moved: list[Moved] = []
    for ours, run in groupby(parts, key=lambda part: isinstance(part, str)):
        if ours:
            out += _translated(layout, "".join(part for part in run if isinstance(part, str)), base)
            continue
        for part in run:
            if isinstance(part, Original):
                piece, start, end = _original(layout, part, _open_line(out, base))
                moved.append(Moved(start, end, len(out), len(out) + len(piece)))
                out += piece
    return Rendered(out, tuple(moved))


def _translated(layout: TextLayout, text: str, base: str) -> str:
    first, *others = text.split("\n")
    lines = [first]
    for number, line in enumerate(others, 1):
        code = line.lstrip(" ")
        levels, rest = divmod(len(line) - len(code), _OUR_LEVEL)
        blank = not code and number < len(others)
        lines.append("" if blank else base + layout.source.indent * levels + " " * rest + code)
    return layout.source.newline.join(lines)


def _open_line(out: str, base: str) -> str | None:
    """The indentation of the last line of `out` if nothing else stands in it."""
    if not out:
        return base
    last = re.split(r"[\r\n]", out)[-1]
    return last if not last.strip(" \t") and len(last) < len(out) else None


def _original(layout: TextLayout, part: Original, here: str | None) -> tuple[str, int, int]:
    start, end = offsets(layout, part.span)
    old, unit = layout.indentation(start), layout.source.indent
    if here is not None and layout.first_on_line(start):
        # What counts is where the text lands: a block whose own unit is not the file's is moved exactly, too.
        new = here
    elif part.deeper >= 0:
        new = old + unit * part.deeper
    else:
        new = old[: max(0, len(old) + len(unit) * part.deeper)]
    text = layout.moved(start, end, old, new)
    return (text[2:] if _ELIF.match(text) else text), start, end
