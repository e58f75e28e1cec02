"""Verify that an edit changes the syntax tree only where intended."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.text import Moved, Region, RewriteError, TextLayout

_Positioned = ast.stmt | ast.expr


def parsed(source: SourceFile) -> CodeBlocks:
    """The statements of a text that an edit made; RewriteError if it does not parse."""
    try:
        return CodeBlocks(TextLayout(source), source.parse())
    except SourceError as error:
        raise RewriteError(f"the result {error}") from error


def verify(old: CodeBlocks, new: CodeBlocks, regions: Sequence[Region], moved: Sequence[Moved] = ()) -> None:
    """RewriteError unless both trees are equal outside `regions`, block by block, and in every moved piece.

    The texts must be equal outside the regions. So a node that keeps its type and its place, which no region touches,
    is the same node, and only nodes with a region inside need a look at their parts.
    """
    comparison = _Comparison(old, new, regions)
    comparison.nodes(old.tree, new.tree)
    for piece in moved:
        before = _outermost(old, piece.old_start, piece.old_end)
        after = _outermost(new, _with_elif(new, piece.new_start), piece.new_end)
        if [ast.dump(node) for node in before] != [ast.dump(node) for node in after]:
            raise RewriteError(f"moving line {old.layout.source.line_at(piece.old_start)} would change its meaning")


def _with_elif(blocks: CodeBlocks, start: int) -> int:
    """Where the node begins that an edit turned from `if` into `elif`: two letters earlier."""
    return start - 2 if blocks.layout.source.text[max(0, start - 2) : start + 2] == "elif" else start


def _positioned(node: ast.AST) -> _Positioned | None:
    return cast(_Positioned, node) if hasattr(node, "end_col_offset") else None


def _outermost(blocks: CodeBlocks, start: int, end: int) -> list[ast.AST]:
    """The outermost nodes inside a range, in order."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [blocks.tree]
    while waiting:
        node = waiting.pop()
        place = _positioned(node)
        if place is not None:
            a, b = blocks.start(place), blocks.end(place)
            if start <= a and b <= end:
                found.append(node)
                continue
            if b <= start or end <= a or isinstance(node, ast.JoinedStr):
                continue
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


@dataclass
class _Comparison:
    old: CodeBlocks
    new: CodeBlocks
    regions: Sequence[Region]
    _line: int = field(default=1, init=False)

    def nodes(self, before: ast.AST, after: ast.AST) -> None:
        place = _positioned(before)
        if place is not None:
            self._line = place.lineno
            start, end = self.old.start(place), self.old.end(place)
            if (region := self._region(before, self.old, new=False)) is not None:
                self._demand(self._region(after, self.new, new=True) == region)
                return
            if not any(_touches(region, start, end) for region in self.regions):
                self._demand(type(before) is type(after) and self._kept(start, end, after))
                return
        self._demand(type(before) is type(after))
        if isinstance(before, ast.arguments) and isinstance(after, ast.arguments):
            # A parameter that is added with its default stands in the region of the one before it.
            edited = {self._region(each, self.old, new=False) for each in before.args}
            kept = [each for each in after.defaults if self._region(each, self.new, new=True) not in edited - {None}]
            after = ast.arguments(**{**dict(ast.iter_fields(after)), "defaults": kept})
        for name in before._fields:
            self._values(getattr(before, name, None), getattr(after, name, None))

    def _values(self, before: object, after: object) -> None:
        if isinstance(before, ast.AST) and isinstance(after, ast.AST):
            self.nodes(before, after)
        elif isinstance(before, list) and isinstance(after, list):
            self._lists(before, after)
        else:
            self._demand(type(before) is type(after) and before == after)

    def _lists(self, before: list[object], after: list[object]) -> None:
        old = [(item, self._region(item, self.old, new=False)) for item in before]
        new = [(item, self._region(item, self.new, new=True)) for item in after]
        edited = {region for _, region in old if region is not None}
        appeared = {region for _, region in new if region is not None} - edited
        self._demand(all(self._inserts_here(region, before) for region in appeared))
        kept_before = [item for item, region in old if region is None]
        kept_after = [item for item, region in new if region is None]
        self._demand(len(kept_before) == len(kept_after))
        for left, right in zip(kept_before, kept_after, strict=True):
            self._values(left, right)

    def _region(self, item: object, blocks: CodeBlocks, *, new: bool) -> Region | None:
        """The region that wholly holds a node."""
        place = _positioned(item) if isinstance(item, ast.AST) else None
        if place is None:
            return None
        start, end = blocks.start(place), blocks.end(place)
        for region in self.regions:
            a, b = (region.new_start, region.new_end) if new else (region.old_start, region.old_end)
            if a <= start and end <= b:
                return region
        return None

    def _inserts_here(self, region: Region, block: list[object]) -> bool:
        """True for an insertion before or after a statement of this block, or between statements of the module."""
        if region.old_start != region.old_end:
            return False
        if block is self.old.tree.body:
            return True
        text, at = self.old.layout.source.text, region.old_start
        return any(
            at == self.old.end(node) or (at <= self.old.start(node) and not text[at : self.old.start(node)].strip())
            for node in block
            if isinstance(node, ast.stmt)
        )

    def _kept(self, start: int, end: int, after: ast.AST) -> bool:
        place = _positioned(after)
        if place is None:
            return False
        shift = sum(
            (region.new_end - region.new_start) - (region.old_end - region.old_start)
            for region in self.regions
            if region.old_end <= start
        )
        return (self.new.start(place), self.new.end(place)) == (start + shift, end + shift)

    def _demand(self, holds: bool) -> None:
        if not holds:
            raise RewriteError(f"the edit would also change other code near line {self._line}")


def _touches(region: Region, start: int, end: int) -> bool:
    if region.old_start == region.old_end:
        return start < region.old_start < end
    return region.old_start < end and start < region.old_end
