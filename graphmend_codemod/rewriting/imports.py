"""Where a new `import` goes so that it reads as if its author had sorted it in."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from itertools import pairwise

from graphmend_codemod.rewriting.blocks import Blocks
from graphmend_codemod.rewriting.blocks import blocks as nested
from graphmend_codemod.rewriting.names import has_definition, type_checking
from graphmend_codemod.rewriting.text import NEWLINE, Change, Layout, RewriteError


@dataclass(frozen=True, eq=False)
class _Entry:
    """A top-level import. `group` counts the runs of imports that blank lines or other code separate."""

    node: ast.Import | ast.ImportFrom
    group: int
    module: str

    @property
    def plain(self) -> bool:
        return isinstance(self.node, ast.Import)

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


def new_import(blocks: Blocks, dotted: str) -> Change:
    """The insertion of `import dotted` beside the imports of its kind.

    Where the module imports from that package only under a condition, the new import stands under it as well.
    """
    line, root = f"import {dotted}", dotted.partition(".")[0]
    entries = _entries(blocks)
    if (found := under_condition(blocks, root)) is not None:
        at = blocks.start(found[1])
        if not blocks.layout.first_on_line(at):
            raise RewriteError(f"`{root}` is imported on the line of another statement")
        return Change(at, at, line + blocks.layout.source.newline + blocks.layout.indentation(at))
    own = [entry for entry in entries if _kind(blocks, entry) == "third"]
    related = [entry for entry in own if entry.root == root] or own
    if related:
        return _sorted_in([entry for entry in own if entry.group == related[0].group], blocks, dotted, line)
    before = [entry for entry in entries if _kind(blocks, entry) in ("future", "stdlib")]
    if before:
        return insert_lines(blocks.layout, blocks.layout.next_line(blocks.end(before[-1].node)), line, 1, 1)
    if entries:
        return insert_lines(blocks.layout, above(blocks, entries[0].node), line, 1, 1)
    return _first_import(blocks, line)


def under_condition(blocks: Blocks, root: str) -> tuple[int, ast.stmt] | None:
    """The first import from package `root` and the index of the top-level statement whose block it is in.

    None if the package is also imported at the top level itself, or not at all.
    """
    if any(entry.root == root for entry in _entries(blocks)):
        return None
    found = ((index, _inside(node, root)) for index, node in enumerate(blocks.tree.body))
    return next(((index, node) for index, node in found if node is not None), None)


def _inside(node: ast.AST, root: str) -> ast.stmt | None:
    if type_checking(node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return None
    for _, block in nested(node):
        for inner in block:
            module = inner.module if isinstance(inner, ast.ImportFrom) and not inner.level else None
            modules = [alias.name for alias in inner.names] if isinstance(inner, ast.Import) else [module or ""]
            if any(name.partition(".")[0] == root for name in modules):
                return inner
            if (found := _inside(inner, root)) is not None:
                return found
    return None


def _entries(blocks: Blocks) -> list[_Entry]:
    found: list[_Entry] = []
    group, last = 0, None
    for node in blocks.tree.body:
        if has_definition(node) and found:
            break
        if not isinstance(node, ast.Import | ast.ImportFrom):
            last = None
            continue
        if last is None or _blank_between(blocks, last, node):
            group += 1
        last = node
        module = node.names[0].name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
        found.append(_Entry(node, group, module))
    return found


def _blank_between(blocks: Blocks, before: ast.stmt, after: ast.stmt) -> bool:
    gap = blocks.layout.source.text[blocks.end(before) : blocks.start(after)]
    return any(not line.strip() for line in NEWLINE.split(gap)[1:-1])


def _kind(blocks: Blocks, entry: _Entry) -> str:
    if entry.module == "__future__":
        return "future"
    if entry.root in sys.stdlib_module_names:
        return "stdlib"
    folders = blocks.layout.source.path.split("/")[:-1]
    return "own" if not entry.root or entry.root in folders else "third"


def _sorted_in(group: list[_Entry], blocks: Blocks, dotted: str, line: str) -> Change:
    """In a group of third-party imports: by name if they are sorted, `import` before `from` unless they mix."""
    plain = [entry for entry in group if entry.plain]
    mixed = any(entry.plain and not before.plain for before, entry in pairwise(group))
    peers = group if mixed else plain
    names = [entry.module.lower() for entry in peers]
    if names == sorted(names):
        previous = [entry for entry in peers if entry.module.lower() < dotted.lower()]
    else:
        previous = peers if not mixed else []
    if previous:
        return insert_lines(blocks.layout, blocks.layout.next_line(blocks.end(previous[-1].node)), line, 0, 0)
    start = blocks.start((peers or group)[0].node)
    if not blocks.layout.first_on_line(start):
        return insert_lines(blocks.layout, blocks.layout.next_line(start), line, 0, 0)
    return insert_lines(blocks.layout, blocks.layout.line_start(start), line, 0, 0)


def _first_import(blocks: Blocks, line: str) -> Change:
    body = blocks.tree.body
    if ast.get_docstring(blocks.tree, clean=False) is not None:
        after = 2 if len(body) > 1 and has_definition(body[1]) else 1
        return insert_lines(blocks.layout, blocks.layout.next_line(blocks.end(body[0])), line, 1, after)
    return insert_lines(blocks.layout, above(blocks, body[0]), line, 1, 2 if has_definition(body[0]) else 1)


def above(blocks: Blocks, node: ast.stmt) -> int:
    """Offset of the line where a top-level statement begins with the comments that touch it.

    Comments from the file's first line on are its header and stay above.
    """
    layout = blocks.layout
    lines = layout.source.line_starts
    first = number = layout.source.line_at(blocks.start(node))
    while number > 1 and layout.source.text[lines[number - 2] : lines[number - 1]].lstrip().startswith("#"):
        number -= 1
    return lines[(first if number == 1 else number) - 1]


def insert_lines(layout: Layout, at: int, block: str, before: int, after: int) -> Change:
    """Insert lines at the beginning of a line, with at least so many blank lines around, except at the file's ends."""
    text, newline = layout.source.text, layout.source.newline
    if at == len(text):
        missing = max(0, before - _blank(_lines(text)[::-1]))
        closed = not text or text.endswith(("\n", "\r"))
        return Change(at, at, (newline * missing + block + newline) if closed else newline * (missing + 1) + block)
    head = newline * max(0, before - _blank(_lines(text[:at])[::-1])) if at and text[:at].strip() else ""
    return Change(at, at, head + block + newline + newline * max(0, after - _blank(_lines(text[at:]))))


def _lines(text: str) -> list[str]:
    lines = NEWLINE.split(text)
    return lines if lines[-1] else lines[:-1]


def _blank(lines: list[str]) -> int:
    """How many lines are blank before the first that is not."""
    return next((number for number, line in enumerate(lines) if line.strip()), len(lines))
