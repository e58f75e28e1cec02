"""The changes of a branch, each as small as it can be judged: hunks of a file, those of one site put together."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from graphmend_evaluation.evaluation import Change

_CONTEXT = 3
_DEFINITIONS = (b"import ", b"from ", b"def ", b"class ", b"@")


@dataclass(frozen=True)
class Mark:
    """A site that was found in the base: the lines of its statement, counted from 1, both included.

    `reason` says why it was left as it is, empty where a fix was made.
    """

    rule: str
    path: str
    start: int
    end: int
    function: str = ""
    reason: str = ""


@dataclass(frozen=True)
class _Region:
    """Lines `base[first:last]` that become `head[start:stop]`, counted from 0."""

    first: int
    last: int
    start: int
    stop: int


class FileChanges:
    """One file before and after. `changes` are in order; any of them can be taken alone."""

    def __init__(self, path: str, base: bytes, head: bytes, marks: Iterable[Mark]) -> None:
        self.path = path
        self._base = base.splitlines(keepends=True)
        self._head = head.splitlines(keepends=True)
        fixed = sorted((mark for mark in marks if not mark.reason), key=lambda mark: (mark.start, mark.end))
        groups = _grouped(list(self._fine_regions(base, head, fixed)), fixed)
        self._regions = {self._id(region): region for region, _ in groups}
        self.changes = tuple(self._change(region, found) for region, found in groups)

    def text(self, wanted: Set[str]) -> bytes:
        """The file with only those changes whose ids are `wanted`, and what they need.

        Imports and helpers come with any other change of the file.
        """
        taken = [change for change in self.changes if change.id in wanted or change.is_support]
        if not any(change.id in wanted for change in taken):
            return b"".join(self._base)
        lines: list[bytes] = []
        done = 0
        for change in taken:
            region = self._regions[change.id]
            lines += self._base[done : region.first]
            lines += self._head[region.start : region.stop]
            done = region.last
        return b"".join([*lines, *self._base[done:]])

    def at_head(self, line: int) -> Change | None:
        """The change that wrote this line of the head, counted from 1."""
        for change in self.changes:
            region = self._regions[change.id]
            if region.start < line <= region.stop:
                return change
        return None

    def base_line(self, line: int) -> int:
        """The line of the base that a line of the head was; for a written line the first of what it replaces."""
        moved = 0
        for change in self.changes:
            region = self._regions[change.id]
            if line <= region.start:
                break
            if line <= region.stop:
                return min(region.first + 1, max(len(self._base), 1))
            moved = region.last - region.stop
        return line + moved

    def _fine_regions(self, base: bytes, head: bytes, marks: Sequence[Mark]) -> Iterator[_Region]:
        """Regions, cut between statements where a site follows another change without a line between."""
        trees: tuple[ast.Module, ast.Module] | None = None
        for region in _regions(self._base, self._head):
            if not any(_touches(region, mark) for mark in marks):
                yield region
                continue
            if trees is None:
                trees = _tree(base), _tree(head)
            yield from _cut(region, *trees)

    def _id(self, region: _Region) -> str:
        return f"{self.path}@{region.first + 1}"

    def _change(self, region: _Region, marks: Sequence[Mark]) -> Change:
        return Change(
            id=self._id(region),
            path=self.path,
            rules=tuple(sorted({mark.rule for mark in marks})),
            function=next((mark.function for mark in marks if mark.function), ""),
            base_start=region.first + 1,
            base_lines=region.last - region.first,
            head_start=region.start + 1,
            head_lines=region.stop - region.start,
            diff=self._diff(region),
            is_support=not marks and self._is_support(region),
        )

    def _is_support(self, region: _Region) -> bool:
        """Whether nothing is replaced, and what is added defines or imports something at the top of the module."""
        added = [line for line in self._head[region.start : region.stop] if line.strip()]
        return region.first == region.last and bool(added) and added[0].startswith(_DEFINITIONS)

    def _diff(self, region: _Region) -> str:
        first, start = max(region.first - _CONTEXT, 0), max(region.start - _CONTEXT, 0)
        common = min(region.first - first, region.start - start)
        base = self._base[region.first - common : region.last + _CONTEXT]
        after = self._base[region.last : region.last + _CONTEXT]
        head = [*self._base[region.first - common : region.first], *self._head[region.start : region.stop], *after]
        lines = difflib.unified_diff(_shown(base), _shown(head), n=_CONTEXT, lineterm="")
        body = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        header = f"@@ -{region.first - common + 1},{len(base)} +{region.start - common + 1},{len(head)} @@"
        return "\n".join([header, *body])


def _shown(lines: Sequence[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]


def _regions(base: Sequence[bytes], head: Sequence[bytes]) -> Iterator[_Region]:
    matcher = difflib.SequenceMatcher(None, base, head)
    for kind, first, last, start, stop in matcher.get_opcodes():
        if kind != "equal":
            yield _Region(first, last, start, stop)


def _tree(text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _cut(region: _Region, base: ast.Module, head: ast.Module) -> Iterator[_Region]:
    """One region for each statement, if there are as many before as after; otherwise the region as it is."""
    before = _statements(base.body, region.first, region.last)
    after = _statements(head.body, region.start, region.stop)
    if len(before) < 2 or len(before) != len(after):
        yield region
        return
    firsts = [region.first, *(node.lineno - 1 for node in before[1:]), region.last]
    starts = [region.start, *(node.lineno - 1 for node in after[1:]), region.stop]
    for number in range(len(before)):
        yield _Region(firsts[number], firsts[number + 1], starts[number], starts[number + 1])


def _statements(body: Sequence[ast.stmt], first: int, last: int) -> list[ast.stmt]:
    """The statements of the innermost block that meet the lines `first` to `last`, counted from 0, end exclusive."""
    found = [node for node in body if node.lineno <= last and (node.end_lineno or node.lineno) > first]
    if len(found) != 1:
        return found
    inner = [
        statements
        for name in ("body", "orelse", "finalbody")
        if (statements := _statements(getattr(found[0], name, []), first, last))
    ]
    return inner[0] if len(inner) == 1 else found


def _grouped(regions: Sequence[_Region], marks: Sequence[Mark]) -> list[tuple[_Region, list[Mark]]]:
    """Regions with the marks that made them; those of one mark become one region, with what lies between them."""
    groups: list[tuple[_Region, list[Mark]]] = []
    for region in regions:
        own = [mark for mark in marks if _touches(region, mark)]
        if groups and own and any(mark in groups[-1][1] for mark in own):
            last, known = groups[-1]
            joined = _Region(last.first, region.last, last.start, region.stop)
            groups[-1] = (joined, [*known, *(mark for mark in own if mark not in known)])
        else:
            groups.append((region, own))
    return groups


def _touches(region: _Region, mark: Mark) -> bool:
    if region.first == region.last:
        return mark.start - 1 <= region.first < mark.end
    return region.first < mark.end and region.last > mark.start - 1
