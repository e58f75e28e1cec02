"""Changes to a text by offset, and the lines of a text as an author sees them."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from graphmend_codemod.core.source import SourceFile

NEWLINE = re.compile(r"\r\n?|\n")
_MAY_SPAN_LINES = re.compile(r"\"\"\"|\'\'\'|\\[\r\n]|[fFtT][rR]?[\"\']|[rR][fFtT][\"\']")
_LEAD = re.compile(r"[ \t\f]*")
_STRING_BEGINS = {getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name)}
_STRING_ENDS = {getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)}


class RewriteError(Exception):
    """An edit that cannot be placed. The text says why, as a condition that failed, without a full stop."""


@dataclass(frozen=True)
class Moved:
    """Source text that goes into a change as it is: offsets into the old text, and into `Change.new`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    def later(self, offset: int) -> Moved:
        """The same with the new text `offset` characters further on."""
        return Moved(self.old_start, self.old_end, self.new_start + offset, self.new_end + offset)


@dataclass(frozen=True)
class Change:
    """The text from offset `start` to `end` becomes `new`; equal offsets insert."""

    start: int
    end: int
    new: str
    moved: tuple[Moved, ...] = ()

    def conflicts(self, other: Change) -> bool:
        """True if the two cannot both be made: they overlap, or insert at one place."""
        if self.start == self.end and other.start == other.end:
            return self.start == other.start
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Region:
    """Where a change stands in the old and in the new text."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def splice(text: str, changes: Iterable[Change]) -> tuple[str, tuple[Region, ...], tuple[Moved, ...]]:
    """The text with all changes made; where they went; and the moved pieces with offsets into the whole new text.

    RewriteError if two changes overlap.
    """
    pieces: list[str] = []
    regions: list[Region] = []
    moved: list[Moved] = []
    done = length = 0
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        if change.start < done:
            raise RewriteError("two of its changes overlap")
        length += change.start - done
        pieces += (text[done : change.start], change.new)
        regions.append(Region(change.start, change.end, length, length + len(change.new)))
        moved.extend(piece.later(length) for piece in change.moved)
        length += len(change.new)
        done = change.end
    return "".join((*pieces, text[done:])), tuple(regions), tuple(moved)


@dataclass(frozen=True)
class Comment:
    """A comment's text and its offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class _Scan:
    inside_string: frozenset[int]
    comments: tuple[Comment, ...]


@dataclass(frozen=True, eq=False)
class TextLayout:
    """A source file's lines: indentation, comments, and which lines begin inside a string literal."""

    source: SourceFile

    @cached_property
    def _scan(self) -> _Scan:
        inside: set[int] = set()
        comments: list[Comment] = []
        starts = self.source.line_starts
        open_strings: list[int] = []
        for token in self.source.tokens():
            if token.type == tokenize.COMMENT:
                start = starts[token.start[0] - 1] + token.start[1]
                comments.append(Comment(start, start + len(token.string), token.string))
            elif token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif token.type in _STRING_BEGINS:
                open_strings.append(token.start[0])
            elif token.type in _STRING_ENDS:
                inside.update(range(open_strings.pop() + 1, token.end[0] + 1))
        return _Scan(frozenset(inside), tuple(comments))

    def inside_string(self, line: int) -> bool:
        """True if the line begins inside a string literal, f-strings with all that their braces hold included."""
        return line in self._scan.inside_string

    def comments(self, start: int, end: int) -> list[Comment]:
        """Comments that lie between two offsets."""
        if "#" not in self.source.text[start:end]:
            return []
        return [comment for comment in self._scan.comments if start <= comment.start and comment.end <= end]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and UTF-8 column of an offset, as `ast` counts them."""
        return self.source.line_at(offset), len(self.source.text[self.line_start(offset) : offset].encode())

    def line_start(self, offset: int) -> int:
        """Offset at which the line with `offset` begins."""
        return self.source.line_starts[self.source.line_at(offset) - 1]

    def line_end(self, offset: int) -> int:
        """Offset at which the line with `offset` ends, before its newline."""
        end = NEWLINE.search(self.source.text, offset)
        return end.start() if end else len(self.source.text)

    def next_line(self, offset: int) -> int:
        """Offset of the line after the one with `offset`; the text's length if it is the last."""
        end = NEWLINE.search(self.source.text, offset)
        return end.end() if end else len(self.source.text)

    def indentation(self, offset: int) -> str:
        """The white space that the line with `offset` begins with; a form feed starts a line's indentation anew."""
        lead = _LEAD.match(self.source.text, self.line_start(offset))
        return lead.group().rpartition("\f")[2] if lead else ""

    def first_on_line(self, offset: int) -> bool:
        """True if only white space stands before `offset` in its line."""
        return not self.source.text[self.line_start(offset) : offset].strip(" \t\f")

    def moved(self, start: int, end: int, old: str, new: str) -> str:
        """The text between two offsets with the indentation `old` of its lines exchanged for `new`.

        The first line, blank lines and lines that begin inside a string literal stay as they are.
        """
        # Line by line, not through libcst: libcst leaves continuation lines and comments that stand left of the block
        # behind, drops a form feed before code, and needs ten times the time of `ast` to parse the whole file first.
        # Here every byte that is not leading white space is copied, so only the tree is left to prove, and `verify`
        # compares that for every edit.
        text = self.source.text
        strings = _MAY_SPAN_LINES.search(text, start, end) is not None
        lines = [text[start : min(end, self.next_line(start))]]
        at = start + len(lines[0])
        while at < end:
            stop = min(end, self.next_line(at))
            line = text[at:stop]
            unmoved = old == new or not line.strip() or (strings and self.inside_string(self.source.line_at(at)))
            lines.append(line if unmoved else _reindented(line, old, new))
            at = stop
        return "".join(lines)


def _reindented(line: str, old: str, new: str) -> str:
    code = line.lstrip(" \t\f")
    feed, form_feed, lead = line[: len(line) - len(code)].rpartition("\f")
    if lead.startswith(old):
        lead = new + lead[len(old) :]
    elif new.startswith(old):  # a comment or a continuation line left of its block
        lead = new[len(old) :] + lead
    elif old.startswith(new):
        lead = lead[min(len(lead), len(old) - len(new)) :]
    return feed + form_feed + lead + code
