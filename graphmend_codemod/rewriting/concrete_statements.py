"""Compares lists of concrete statements: which are the same, which an edit replaced, and which are new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import libcst as cst
from libcst.helpers import get_full_name_for_node

from graphmend_codemod.rewriting.concrete_nodes import (
    PARTS,
    Clause,
    Lines,
    children_of,
    comments_at_end,
    header_text,
    holds,
    is_one_line,
    last_statement,
    leading,
    same,
    words,
)


class Differs(Exception):
    """Two trees that differ where no edit is, with the line of the old text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Touched(NamedTuple):
    """Lines of the old text that an edit replaces; `empty` if it inserts before the first. `beside`: see `EditForm`."""

    first: int
    last: int
    empty: bool
    beside: bool


class Group(NamedTuple):
    """Text that was replaced, and what stands there now; nothing was there before where a definition is new."""

    old: str
    new: str
    beside: bool = False


class _Item:
    """A statement with its lines, those of the comments above it left out. Text and lines are made when asked for."""

    def __init__(self, lines: Lines, node: Clause, line: int) -> None:
        self.lines = lines
        self.node = node
        self.line = line
        self.first = line + len(leading(node))

    @cached_property
    def text(self) -> str:
        """The statement with the comments above it, at no indentation."""
        return self.lines.module.code_for_node(self.node)

    @property
    def count(self) -> int:
        """How many lines it has, those of the comments above it included."""
        return self.lines.of(self.node)

    @property
    def last(self) -> int:
        """The last line of code: comments may follow at the end of a block."""
        return self.line + self.count - 1 - comments_at_end(self.node)

    def below(self, other: _Item) -> _Item:
        """This statement with what stands above another one in place of its own comments and blank lines."""
        if not hasattr(self.node, "leading_lines"):
            return self
        node = self.node.with_changes(leading_lines=leading(other.node))
        return _Item(self.lines, node, self.first - len(leading(node)))


class Comparison:
    """Two modules of which edits touched some lines of the old one."""

    def __init__(
        self, old: cst.Module, new: cst.Module, touched: Sequence[Touched], imports: Sequence[str], names: Sequence[str]
    ) -> None:
        self._old = old
        self._new = new
        self._lines = Lines(old)
        self._new_lines = Lines(new)
        self._touched = touched
        self._imports = frozenset(imports)
        self._names = tuple(names)
        self._line = 1

    def modules(self) -> list[Group]:
        """What was replaced and what is new. Differs where anything else is not as it was."""
        groups = self._statements(self._old.body, self._new.body, 1, definitions=True)
        if groups is None:
            raise Differs("the concrete syntax tree changes", self._line)
        return groups

    def fail(self, line: int) -> list[Group] | None:
        """None, with the line remembered: the furthest one is the likely cause."""
        self._line = max(self._line, line)
        return None

    def _touches(self, first: int, last: int) -> list[Touched]:
        return [each for each in self._touched if not each.empty and each.first <= last and first <= each.last]

    def touches_end(self, node: cst.CSTNode, line: int) -> bool:
        """True if an edit is in the last statement of what begins at a line: what follows may have moved with it."""
        end = line + self._lines.of(node) - 1 - comments_at_end(node)
        last = last_statement(node)
        return bool(self._touches(end - self._lines.of(last) + len(leading(last)) + 1, end))

    def inserts(self, first: int, last: int) -> bool:
        """True if an edit inserts something at one of these lines."""
        return any(each.empty and first <= each.first <= last for each in self._touched)

    def _statements(
        self, old: Sequence[cst.CSTNode], new: Sequence[cst.CSTNode], line: int, *, definitions: bool
    ) -> list[Group] | None:
        """What became of a block whose first line this is; None if more changed than edits did."""
        before, after = _items(self._lines, old, line), _items(self._new_lines, new, 1, counted=False)
        start = 0
        while start < min(len(before), len(after)) and self._is_kept(before[start], after[start]):
            start += 1
        stop = 0
        while stop < min(len(before), len(after)) - start and self._is_kept(before[-1 - stop], after[-1 - stop]):
            stop += 1
        end = before[-1].line + before[-1].count if before else line
        walk = _Walk(
            self, before[start : len(before) - stop], after[start : len(after) - stop], definitions=definitions, end=end
        )
        return walk.groups()

    def _is_kept(self, old: _Item, new: _Item) -> bool:
        return not self._touches(old.first, old.last) and same(old.node, new.node)

    def is_expected(self, item: _Item) -> bool:
        """True for an import or a definition that edits bring along; a number may be added to a definition's name."""
        node = item.node
        if isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Import):
            (name,) = node.body[0].names
            return len(node.body) == 1 and name.asname is None and name.evaluated_name in self._imports
        return bool(self._names) and any(word.startswith(self._names) for word in words(item.text))

    def imports_more(self, old: cst.CSTNode, new: cst.CSTNode) -> bool:
        """True if an import is the old one with names of what edits bring along."""
        before, after = _imported(old), _imported(new)
        if before is None or after is None or before[0] != after[0]:
            return False
        more = [name for name in after[1] if name not in before[1]]
        kept = [name for name in after[1] if name in before[1]]
        return kept == before[1] and bool(self._names) and all(name.startswith(self._names) for name in more)

    def covers(self, item: _Item) -> list[Touched]:
        """The edits that replace a statement: whole, or a part of one without blocks."""
        found = self._touches(item.first, item.last)
        if any(each.first <= item.first and item.last <= each.last for each in found):
            return found
        return [] if children_of(item.node) and not is_one_line(item.node) else found

    def inside(self, old: _Item, new: _Item) -> list[Group] | None:
        """What became of a statement with blocks in which edits lie; None if more changed than edits did."""
        if type(old.node) is not type(new.node) or not self._touches(old.first, old.last):
            return None
        return self._clause(old.node, new.node, old.line)

    def _clause(self, old: Clause, new: Clause, line: int) -> list[Group] | None:
        was, now = children_of(old), children_of(new)
        if type(old) is not type(new) or [name for name, _ in was] != [name for name, _ in now]:
            return self.fail(line)
        header = self._lines.of_header(old)
        groups: list[Group] | None = []
        if not self._same_apart_from(old, new):
            groups = self._header(old, new, line, line + header)
        if groups is None:
            return self.fail(line)
        at = line + header
        for (_, before), (_, after) in zip(was, now, strict=True):
            found = self._part(before, after, at)
            if found is None:
                return None
            groups += found
            at += self._lines.of(before)
        return groups

    def _part(self, old: cst.BaseSuite | Clause, new: cst.BaseSuite | Clause, line: int) -> list[Group] | None:
        count = self._lines.of(old)
        if isinstance(old, cst.IndentedBlock) and isinstance(new, cst.IndentedBlock):
            alike = same(old.header, new.header) and old.indent == new.indent
            footer = [self._old.code_for_node(each) for each in old.footer]
            kept = footer == [self._new.code_for_node(each) for each in new.footer]
            if not alike or not (kept or self.touches_end(old, line)):
                return self.fail(line)
            groups = self._statements(old.body, new.body, line + 1, definitions=False)
            ends = Group("".join(footer), "".join(self._new.code_for_node(each) for each in new.footer))
            return groups if groups is None or kept else [*groups, ends]
        if not self._touches(line, line + count - 1):
            return [] if same(old, new) else self.fail(line)
        if isinstance(old, cst.BaseSuite) or isinstance(new, cst.BaseSuite):
            return [Group(self._old.code_for_node(old), self._new.code_for_node(new))]
        if isinstance(old, cst.If) and (covering := self.covers(_Item(self._lines, old, line))):  # an `elif`
            beside = all(each.beside for each in covering)
            return [Group(self._old.code_for_node(old), self._new.code_for_node(new), beside)]
        return self._clause(old, new, line)

    def _same_apart_from(self, old: Clause, new: Clause) -> bool:
        """True if all but the blocks is deeply equal."""
        return all(
            same(getattr(old, name), getattr(new, name))
            for name in old.__dataclass_fields__
            if name not in PARTS and name != "__slots__"
        )

    def _header(self, old: Clause, new: Clause, first: int, last: int) -> list[Group] | None:
        """The header as replaced text, where an edit touches it."""
        touching = self._touches(first + len(leading(old)), last)
        if not touching:
            return self.fail(first)
        beside = any(each.beside for each in touching)
        return [Group(header_text(self._old, old), header_text(self._new, new), beside)]


class _Walk:
    """Finds for each statement of a block what became of it."""

    def __init__(
        self, comparison: Comparison, old: Sequence[_Item], new: Sequence[_Item], *, definitions: bool, end: int
    ) -> None:
        self._comparison = comparison
        self._old = old
        self._new = new
        self._definitions = definitions
        self._end = end
        self._hopeless: set[tuple[int, int, bool]] = set()

    def groups(self) -> list[Group] | None:
        """What was replaced and what is new; None if there is no way to read the new block as the old one, edited."""
        return self._from(0, 0, False)

    def _from(self, i: int, j: int, after_new: bool) -> list[Group] | None:
        """The groups from these statements on. `after_new`: what stands directly before the second is new."""
        if i == len(self._old) and j == len(self._new):
            return []
        if (i, j, after_new) in self._hopeless:
            return None
        for found, next_i, next_j, new in self._steps(i, j, after_new):
            rest = self._from(next_i, next_j, new)
            if rest is not None:
                return [*found, *rest]
        self._hopeless.add((i, j, after_new))
        self._comparison.fail(self._old[i].first if i < len(self._old) else self._end)
        return None

    def _steps(self, i: int, j: int, after_new: bool) -> Iterator[tuple[list[Group], int, int, bool]]:
        old = self._old[i] if i < len(self._old) else None
        new = self._new[j] if j < len(self._new) else None
        if old is not None and new is not None:
            covering = self._comparison.covers(old)
            if not covering:
                moved: list[Group] = []
                if after_new:  # what stood above this statement may stand above the new one
                    moved, new = [Group(_above(old), _above(new))], new.below(old)
                if same(old.node, new.node):
                    yield moved, i + 1, j + 1, False
                elif self._definitions and self._comparison.imports_more(old.node, new.node):
                    yield [*moved, Group(old.text, new.text)], i + 1, j + 1, False
                elif (found := self._comparison.inside(old, new)) is not None:
                    yield [*moved, *found], i + 1, j + 1, self._comparison.touches_end(old.node, old.line)
                new = self._new[j]
            else:
                yield from self._replaced(i, j, covering)
        if new is not None and self._may_appear(i, new):
            yield [Group("", new.text)], i, j + 1, True

    def _replaced(self, i: int, j: int, covering: Sequence[Touched]) -> Iterator[tuple[list[Group], int, int, bool]]:
        """All that one edit replaces becomes one or more statements; first the fewest that hold all words it had.

        What the next edit wrote could otherwise be taken for a part of this one.
        """
        stop = i + 1
        last = max(each.last for each in covering)
        while stop < len(self._old) and self._old[stop].first <= last and self._comparison.covers(self._old[stop]):
            last = max(last, *(each.last for each in self._comparison.covers(self._old[stop])))
            stop += 1
        text = "".join(each.text for each in self._old[i:stop])
        beside = all(each.beside for each in covering)
        written = {end: "".join(each.text for each in self._new[j:end]) for end in range(len(self._new), j, -1)}
        kept = [end for end in reversed(written) if beside and holds(words(written[end]), words(text))]
        for end in dict.fromkeys([*kept, *written]):
            yield [Group(text, written[end], beside)], stop, end, True

    def _may_appear(self, i: int, new: _Item) -> bool:
        """True for a new import or definition at the top, and where an edit inserts."""
        first = self._old[i - 1].last if i else 0
        last = self._old[i].first if i < len(self._old) else self._end
        if self._comparison.inserts(first, last):
            return True
        return self._definitions and self._comparison.is_expected(new)


def _imported(node: cst.CSTNode) -> tuple[str, list[str]] | None:
    """The module and the names of one `from` import on a line of its own, None for anything else."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return None
    found = node.body[0]
    if not isinstance(found, cst.ImportFrom) or isinstance(found.names, cst.ImportStar):
        return None
    names = [each.evaluated_name + (f" as {each.evaluated_alias}" if each.asname else "") for each in found.names]
    return "." * len(found.relative) + (get_full_name_for_node(found.module or "") or ""), names


def _items(lines: Lines, nodes: Sequence[cst.CSTNode], line: int, *, counted: bool = True) -> list[_Item]:
    found = []
    for node in nodes:
        found.append(_Item(lines, cast(Clause, node), line))
        line += found[-1].count if counted else 0
    return found


def _above(item: _Item) -> str:
    return "".join(item.lines.module.code_for_node(each) for each in leading(item.node))
