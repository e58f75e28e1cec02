"""A replacement as changes to the text: in a block, on a shared line, after `elif`, with the comments it must keep."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence

from graphmend_codemod.findings import Original, Replacement
from graphmend_codemod.rewriting.blocks import Blocks, Place
from graphmend_codemod.rewriting.render import Rendered, offsets, render
from graphmend_codemod.rewriting.text import Change, Layout, Moved, RewriteError

_ELIF = re.compile(r"elif(?!\w)")
_TAIL_COMMENT = re.compile(r"[ \t\f]*#[^\r\n]*")
_PRAGMA = re.compile(
    r"#+\s*(?:type:|noqa|nosec|pragma|pylint|pyright|mypy:|fmt:|yapf|isort|ruff:|graphmend:)", re.IGNORECASE
)


def changes(blocks: Blocks, replacement: Replacement) -> list[Change]:
    """What a replacement changes. RewriteError if it cannot be placed."""
    layout = blocks.layout
    start, end = offsets(layout, replacement.span)
    if sys.version_info < (3, 12) and any(a < start and end < b for a, b in blocks.interpolated):
        raise RewriteError("it stands inside an f-string")
    place = blocks.find(start, end)
    parts, taken = _with_tail_comment(layout, replacement.parts, start, end)
    if not place.whole or start == end:
        rendered = render(layout, parts, layout.indentation(start))
        return [*_rescued(blocks, place, parts, start, end), _change(start, end + taken, rendered)]
    if _ELIF.match(layout.source.text, start):
        return [_after_elif(layout, parts, start, end + taken)]
    first, last = blocks.line_mates(place)
    if first == place.first and last == place.last and layout.first_on_line(start):
        comments = _dropped(layout, parts, start, end)
        rendered = render(layout, (*(f"{text}\n" for text in comments), *parts), layout.indentation(start))
        return [_change(start, end + taken, rendered)]
    return _on_shared_line(blocks, place, parts, start, end + taken)


def _change(start: int, end: int, rendered: Rendered) -> Change:
    return Change(start, end, rendered.text, rendered.moved)


def _with_tail_comment(
    layout: Layout, parts: tuple[str | Original, ...], start: int, end: int
) -> tuple[tuple[str | Original, ...], int]:
    """Parts with the comment behind the replaced text put behind the original it ends with, if more text follows that.

    Also returns how many characters of the line the comment took.
    """
    comment = _TAIL_COMMENT.match(layout.source.text, end)
    if comment is None or start == end:
        return parts, 0
    for number, part in enumerate(parts[:-1]):
        following = parts[number + 1]
        ends_here = isinstance(part, Original) and offsets(layout, part.span)[1] == end
        if ends_here and isinstance(following, str) and following.startswith("\n"):
            return (*parts[: number + 1], comment.group(), *parts[number + 1 :]), comment.end() - end
    return parts, 0


def _dropped(layout: Layout, parts: Sequence[str | Original], start: int, end: int) -> list[str]:
    """Comments between two offsets that no part repeats; those for tools go with the code they are about."""
    kept = [offsets(layout, part.span) for part in parts if isinstance(part, Original)]
    ours = "\n".join(part for part in parts if isinstance(part, str))
    return [
        comment.text
        for comment in layout.comments(start, end)
        if not any(a <= comment.start and comment.end <= b for a, b in kept)
        and comment.text not in ours
        and not _PRAGMA.match(comment.text)
    ]


def _rescued(blocks: Blocks, place: Place, parts: Sequence[str | Original], start: int, end: int) -> list[Change]:
    """Comments inside a replaced expression, put above its statement."""
    layout = blocks.layout
    comments = _dropped(layout, parts, start, end)
    if not comments:
        return []
    above = blocks.start(place.block[place.first])
    if not layout.first_on_line(above) or _ELIF.match(layout.source.text, above):
        raise RewriteError("a comment inside it would be lost")
    rendered = render(layout, [f"{text}\n" for text in comments], layout.indentation(above))
    return [_change(above, above, rendered)]


def _after_elif(layout: Layout, parts: tuple[str | Original, ...], start: int, end: int) -> Change:
    """An `elif` becomes another `elif` if what replaces it is one `if`, else an `else` with the replacement in it."""
    base = layout.indentation(start)
    comments = tuple(f"{text}\n" for text in _dropped(layout, parts, start, end))
    rendered = render(layout, parts, base)
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
        if not base:
            return ast.parse(text).body
        block = ast.parse(f"if 1:\n{base}{text}").body[0]
    except (SyntaxError, ValueError) as error:
        raise RewriteError(f"its replacement does not parse: {error}") from error
    return block.body if isinstance(block, ast.If) else []


def _on_shared_line(
    blocks: Blocks, place: Place, parts: tuple[str | Original, ...], start: int, end: int
) -> list[Change]:
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
    if not layout.first_on_line(region_start):
        region_start, base = blocks.header_end(place, first)
        base += layout.source.indent
        text = newline + base
    moved: list[Moved] = []
    rendered = render(layout, (*(f"{text}\n" for text in comments), *parts), base)
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
    return [Change(region_start, max(end, blocks.end(place.block[last])), text, tuple(moved))]
