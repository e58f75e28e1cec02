"""Which statements of which block a range of text covers, and how they share their line with others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.rewriting.text import RewriteError, TextLayout

_SEPARATOR = re.compile(r"[ \t\f]*;[ \t\f]*")
_HEADER_END = re.compile(r":[ \t\f]*\Z")
_CASE = re.compile(r"[ \t\f]*case\b")


def blocks(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The statement lists directly under a statement or module, each with the node that owns it."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield node, block
    for name in ("handlers", "cases"):
        for clause in getattr(node, name, ()):
            yield clause, clause.body


@dataclass(frozen=True, eq=False)
class StatementRange:
    """Statements `block[first]` to `block[last]` of `owner`; `whole` if a range covers exactly them."""

    owner: ast.AST
    block: list[ast.stmt]
    first: int
    last: int
    whole: bool


@dataclass(frozen=True, eq=False)
class CodeBlocks:
    """The statements of one file by offset."""

    layout: TextLayout
    tree: ast.Module

    def start(self, node: ast.stmt | ast.expr, *, decorators: bool = True) -> int:
        """Offset of a node's first character, by default that of its first decorator's `@`."""
        at = self.layout.source.offset(node.lineno, node.col_offset)
        first = next(iter(getattr(node, "decorator_list", ())), None) if decorators else None
        if first is None:
            return at
        return self.layout.source.text.rindex("@", 0, self.layout.source.offset(first.lineno, first.col_offset))

    def end(self, node: ast.stmt | ast.expr) -> int:
        """Offset after a node's last character."""
        if node.end_lineno is None or node.end_col_offset is None:
            raise RewriteError(f"Python does not tell where line {node.lineno} ends")
        return self.layout.source.offset(node.end_lineno, node.end_col_offset)

    def in_f_string(self, place: StatementRange, start: int, end: int) -> bool:
        """True if a range lies inside an f-string, where `ast` gives wrong positions before Python 3.12."""
        strings = (node for node in ast.walk(place.block[place.first]) if isinstance(node, ast.JoinedStr))
        return any(self.start(node) < start and end < self.end(node) for node in strings)

    def find(self, start: int, end: int) -> StatementRange:
        """The innermost place that holds a range. RewriteError if the range is outside of all statements."""
        found = self._find(self.tree, self.tree.body, start, end)
        if found is None:
            raise RewriteError(f"line {self.layout.source.line_at(start)} has no statement to edit")
        return found

    def _find(self, owner: ast.AST, block: list[ast.stmt], start: int, end: int) -> StatementRange | None:
        touched = [i for i, node in enumerate(block) if self.start(node) <= end and start <= self.end(node)]
        if start != end:
            touched = [i for i in touched if self.start(block[i]) < end and start < self.end(block[i])]
        if not touched:
            return None
        first, last = touched[0], touched[-1]
        if first == last:
            for inner_owner, inner in blocks(block[first]):
                if (place := self._find(inner_owner, inner, start, end)) is not None:
                    return place
        inside = self.start(block[first]) <= start and end <= self.end(block[last])
        plain = start == self.start(block[first], decorators=False)
        whole = end == self.end(block[last]) and (plain or start == self.start(block[first]))
        return StatementRange(owner, block, first, last, whole) if inside else None

    def line_mates(self, place: StatementRange) -> tuple[int, int]:
        """First and last index of the statements that share a logical line with the place by `;`."""
        first, last = place.first, place.last
        while first > 0 and self._joined(place.block[first - 1], place.block[first]):
            first -= 1
        while last + 1 < len(place.block) and self._joined(place.block[last], place.block[last + 1]):
            last += 1
        return first, last

    def _joined(self, before: ast.stmt, after: ast.stmt) -> bool:
        return _SEPARATOR.fullmatch(self.layout.source.text, self.end(before), self.start(after)) is not None

    def header_end(self, place: StatementRange, first: int) -> tuple[int, str]:
        """For a block that follows its header on one line: offset after the colon, and the header's indentation."""
        start = self.start(place.block[first])
        colon = _HEADER_END.search(self.layout.source.text[self.layout.line_start(start) : start])
        if colon is None or isinstance(place.owner, ast.Module):
            raise RewriteError("it shares its line with other code; put it on a line of its own")
        return self.layout.line_start(start) + colon.start() + 1, self._owner_indentation(place.owner)

    def _owner_indentation(self, owner: ast.AST) -> str:
        if isinstance(owner, ast.match_case):
            at = self.layout.source.offset(owner.pattern.lineno, owner.pattern.col_offset)
            if not _CASE.match(self.layout.source.text, self.layout.line_start(at)):
                raise RewriteError("its `case` pattern spans several lines")
            return self.layout.indentation(at)
        if isinstance(owner, ast.stmt | ast.ExceptHandler):
            return self.layout.indentation(self.layout.source.offset(owner.lineno, owner.col_offset))
        raise RewriteError("it shares its line with other code; put it on a line of its own")
