"""A replacement as changes to the text: in a block, on a shared line, after `elif`, with the comments it must keep."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

from graphmend_codemod.core.findings import Original, Replacement, Span
from graphmend_codemod.core.source import SourceError, parse_text
from graphmend_codemod.rewriting.blocks import CodeBlocks, StatementRange
from graphmend_codemod.rewriting.render import Rendered, offsets, render
from graphmend_codemod.rewriting.text import Change, Moved, RewriteError, TextLayout

_ELIF = re.compile(r"elif(?!\w)")
_TAIL_COMMENT = re.compile(r"[ \t\f]*#[^\r\n]*")
_SEMICOLON = re.compile(r"[ \t\f]*;")
_PRAGMA = re.compile(
    r"#+\s*(?:type:|noqa|nosec|pragma|pylint|pyright|mypy:|fmt:|yapf|isort|ruff:|graphmend:)", re.IGNORECASE
)
_Parts = tuple[str | Original, ...]


def changes(blocks: CodeBlocks, replacement: Replacement, elsewhere: str = "") -> list[Change]:
    """What a replacement changes. RewriteError if it cannot be placed.

    `elsewhere` is text of the same edit for another place: comments that stand there need not stay here.
    """
    layout = blocks.layout
    start, end = offsets(layout, replacement.span)
    place, parts = blocks.find(start, end), replacement.parts
    if not place.whole or start == end:
        if sys.version_info < (3, 12) and blocks.in_f_string(place, start, end):
            raise RewriteError("it is inside an f-string")
        rendered = render(layout, parts, layout.indentation(start))
        return [*_rescued(blocks, place, parts, start, end), _change(start, end, rendered)]
    node = place.block[place.first]
    if start != blocks.start(node):
        raise RewriteError("its range leaves out the decorators")
    parts, end = _with_tail(blocks, place, parts, end)
    if _ELIF.match(layout.source.text, start):
        return [_after_elif(layout, parts, start, end)]
    if blocks.line_mates(place) == (place.first, place.last) and layout.first_on_line(start):
        comments = _dropped(layout, (*parts, elsewhere), start, end)
        rendered = render(layout, (*comments, *parts), layout.indentation(start))
        return [_change(start, _after_semicolon(layout, end), rendered)]
    return _on_shared_line(blocks, place, parts, start, end)


def _change(start: int, end: int, rendered: Rendered) -> Change:
    return Change(start, end, rendered.text, rendered.moved)


def _with_tail(blocks: CodeBlocks, place: StatementRange, parts: _Parts, end: int) -> tuple[_Parts, int]:
    """The parts and the end of the replaced text, with the comments behind it where the original at its end goes.

    They are the one that ends the line, and those below that are indented as the end of a block is. If no original
    ends there, the latter move to the left with the block gone.
    """
    layout = blocks.layout
    comment = _TAIL_COMMENT.match(layout.source.text, end)
    line_end = comment.end() if comment else end
    tail = _end_of_block_comments(blocks, place, line_end)
    here = [i for i, part in enumerate(parts) if isinstance(part, Original) and offsets(layout, part.span)[1] == end]
    if not here:
        rest = () if tail is None else (Original(Span(*layout.position(end), *layout.position(tail)), -1),)
        return (*parts, *rest), tail or end
    last = here[-1]
    following = "".join(part for part in parts[last + 1 : last + 2] if isinstance(part, str))
    if last + 1 < len(parts):
        tail = (tail or line_end) if following.startswith("\n") else None
    original = parts[last]
    if tail is None or not isinstance(original, Original):
        return parts, end
    line, column = layout.position(tail)
    stretched = original._replace(span=original.span._replace(end_line=line, end_column=column))
    return (*parts[:last], stretched, *parts[last + 1 :]), tail


def _end_of_block_comments(blocks: CodeBlocks, place: StatementRange, end: int) -> int | None:
    """Offset after the comments that follow a compound statement on lines of their own, deeper than its first line."""
    layout = blocks.layout
    if not hasattr(place.block[place.last], "body") or layout.line_end(end) != end:
        return None
    base = layout.indentation(blocks.start(place.block[place.last]))
    found, at = None, layout.next_line(end)
    while at < len(layout.source.text):
        line = layout.source.text[at : layout.line_end(at)]
        if line.strip() and not (line.lstrip().startswith("#") and len(layout.indentation(at)) > len(base)):
            break
        found = layout.line_end(at) if line.strip() else found
        at = layout.next_line(at)
    return found


def _dropped(layout: TextLayout, parts: Sequence[str | Original], start: int, end: int) -> list[str]:
    """Lines with the comments between two offsets that no part repeats; those for tools go with what they are about."""
    kept = [offsets(layout, part.span) for part in parts if isinstance(part, Original)]
    ours = "\n".join(part for part in parts if isinstance(part, str))
    return [
        f"{comment.text}\n"
        for comment in layout.comments(start, end)
        if not any(a <= comment.start and comment.end <= b for a, b in kept)
        and comment.text not in ours
        and not _PRAGMA.match(comment.text)
    ]


def _rescued(
    blocks: CodeBlocks, place: StatementRange, parts: Sequence[str | Original], start: int, end: int
) -> list[Change]:
    """Comments inside a replaced expression, put above its statement."""
    layout = blocks.layout
    comments = _dropped(layout, parts, start, end)
    if not comments:
        return []
    above = blocks.start(place.block[place.first])
    if not layout.first_on_line(above) or _ELIF.match(layout.source.text, above):
        raise RewriteError("a comment inside it would be lost")
    return [_change(above, above, render(layout, comments, layout.indentation(above)))]


def _after_elif(layout: TextLayout, parts: _Parts, start: int, end: int) -> Change:
    """An `elif` becomes another `elif` if what replaces it is that or one `if`, else an `else` that holds it."""
    base = layout.indentation(start)
    comments = _dropped(layout, parts, start, end)
    rendered = render(layout, parts, base)
    if _ELIF.match(rendered.text):
        if comments:
            raise RewriteError("a comment inside it would be lost")
        return _change(start, end, rendered)
    statements = _statements(rendered.text, base)
    if not comments and len(statements) == 1 and isinstance(statements[0], ast.If) and rendered.text.startswith("if"):
        return Change(start, end, f"el{rendered.text}", tuple(piece.later(2) for piece in rendered.moved))
    inner = base + layout.source.indent
    opening = f"else:{layout.source.newline}{inner}"
    rendered = render(layout, (*comments, *parts), inner)
    return Change(start, end, opening + rendered.text, tuple(piece.later(len(opening)) for piece in rendered.moved))


def _statements(text: str, base: str) -> list[ast.stmt]:
    """The statements of a rendered text; RewriteError if it does not parse."""
    try:
        body = parse_text(f"if 1:\n{base}{text}" if base else text).body
    except SourceError as error:
        raise RewriteError(f"its replacement {error}") from error
    return body[0].body if base and isinstance(body[0], ast.If) else body


def _on_shared_line(blocks: CodeBlocks, place: StatementRange, parts: _Parts, start: int, end: int) -> list[Change]:
    """One of several statements on a line: replaced where it stands if it stays simple, else one line a statement."""
    layout = blocks.layout
    base, newline = layout.indentation(start), layout.source.newline
    rendered = render(layout, parts, base)
    comments = _dropped(layout, parts, start, end)
    simple = not any(hasattr(node, "body") for node in _statements(rendered.text, base))
    if simple and newline not in rendered.text and not comments:
        return [_change(start, end, rendered)]
    first, last = blocks.line_mates(place)
    region_start, text = blocks.start(place.block[first]), ""
    base = layout.indentation(region_start)
    if not layout.first_on_line(region_start):
        region_start, base = blocks.header_end(place, first)
        base += layout.source.indent
        text = newline + base
    moved: list[Moved] = []
    rendered = render(layout, (*comments, *parts), base)
    for index in (*range(first, place.first + 1), *range(place.last + 1, last + 1)):
        if index == place.first:
            moved.extend(piece.later(len(text)) for piece in rendered.moved)
            text += rendered.text
        else:
            a, b = blocks.start(place.block[index]), blocks.end(place.block[index])
            moved.append(Moved(a, b, len(text), len(text) + b - a))
            text += layout.source.text[a:b]
        text += newline + base
    text = text.removesuffix(newline + base)
    region_end = _after_semicolon(layout, max(end, blocks.end(place.block[last])))
    return [Change(region_start, region_end, text, tuple(moved))]


def _after_semicolon(layout: TextLayout, end: int) -> int:
    """Offset after a `;` that ends the line: Python counts it to a block that ends with it."""
    semicolon = _SEMICOLON.match(layout.source.text, end)
    return semicolon.end() if semicolon else end
