"""Placement of a new `import` in the file's own order."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.blocks import blocks as nested
from graphmend_codemod.rewriting.insertions import Insertion, above, below
from graphmend_codemod.rewriting.names import has_definition, type_checking
from graphmend_codemod.rewriting.text import NEWLINE, RewriteError


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


def new_imports(blocks: CodeBlocks, wanted: Iterable[str]) -> list[Insertion]:
    """The insertions of `import NAME` for each wanted name, beside the imports of its kind.

    Where the module imports from that package only under a condition, the new import stands under it as well.
    """
    places: dict[int, Insertion] = {}
    for dotted in sorted(set(wanted)):
        new = _new_import(blocks, dotted)
        old = places.get(new.at)
        lines = new.text if old is None else f"{old.text}{blocks.layout.source.newline}{new.text}"
        binds = (*(old.binds if old else ()), dotted.partition(".")[0])
        places[new.at] = replace(new, text=lines, binds=binds)
    return list(places.values())


def _new_import(blocks: CodeBlocks, dotted: str) -> Insertion:
    line, root = f"import {dotted}", dotted.partition(".")[0]
    entries = _entries(blocks)
    if (found := under_condition(blocks, root)) is not None:
        start = blocks.start(found[1])
        if not blocks.layout.first_on_line(start):
            raise RewriteError(f"`{root}` is imported on the line of another statement")
        return Insertion(blocks.layout.line_start(start), blocks.layout.indentation(start) + line)
    if root in sys.stdlib_module_names and (peers := [e for e in entries if _kind(blocks, e) == "stdlib"]):
        return _sorted_in([entry for entry in peers if entry.group == peers[0].group], blocks, dotted, line)
    own = [entry for entry in entries if _kind(blocks, entry) == "third"]
    related = [entry for entry in own if entry.root == root] or own
    if related and root in sys.stdlib_module_names:
        return Insertion(above(blocks, related[0].node), line, 0, 1)
    if related:
        return _sorted_in([entry for entry in own if entry.group == related[0].group], blocks, dotted, line)
    before = [entry for entry in entries if _kind(blocks, entry) in ("future", "stdlib")]
    if before:
        return Insertion(below(blocks, before[-1].node), line, 1, 1)
    if entries:
        return Insertion(above(blocks, entries[0].node), line, 1, 1)
    return _first_import(blocks, line)


def own_imports(blocks: CodeBlocks, package: str) -> list[tuple[int, str]]:
    """The imports at the top of a file from its own package: how many dots each has, and the module."""
    return [(_level(entry), entry.module) for entry in _entries(blocks) if _is_own(entry, package)]


def sorted_in_own(blocks: CodeBlocks, module: str, text: str, binds: Iterable[str]) -> Insertion:
    """The insertion of a `from` import of a module of the file's own package, beside its imports of that kind."""
    entries = _entries(blocks)
    package = module.partition(".")[0]
    own = [entry for entry in entries if isinstance(entry.node, ast.ImportFrom) and _is_own(entry, package)]
    peers = [entry for entry in own if bool(_level(entry)) is module.startswith(".")]
    if not peers:
        new = Insertion(below(blocks, entries[-1].node), text, 1, 1) if entries else _first_import(blocks, text)
        return replace(new, binds=tuple(binds))
    peers = [entry for entry in peers if entry.group == peers[0].group]
    keys = [_order(entry.module) for entry in peers]
    before = [entry for entry in peers if keys != sorted(keys) or _order(entry.module) <= _order(module)]
    if before:
        return Insertion(below(blocks, before[-1].node), text, binds=tuple(binds))
    return Insertion(above(blocks, peers[0].node), text, binds=tuple(binds))


def _level(entry: _Entry) -> int:
    return len(entry.module) - len(entry.module.lstrip("."))


def _is_own(entry: _Entry, package: str) -> bool:
    return _level(entry) > 0 or (bool(package) and entry.root == package)


def _order(module: str) -> tuple[int, str]:
    """As import sorters do by default: first those with the most dots."""
    name = module.lstrip(".")
    return len(name) - len(module), name.lower()


def under_condition(blocks: CodeBlocks, root: str) -> tuple[int, ast.stmt] | None:
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


def _entries(blocks: CodeBlocks) -> list[_Entry]:
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


def _blank_between(blocks: CodeBlocks, before: ast.stmt, after: ast.stmt) -> bool:
    gap = blocks.layout.source.text[blocks.end(before) : blocks.start(after)]
    return any(not line.strip() for line in NEWLINE.split(gap)[1:-1])


def _kind(blocks: CodeBlocks, entry: _Entry) -> str:
    if entry.module == "__future__":
        return "future"
    if entry.root in sys.stdlib_module_names:
        return "stdlib"
    folders = blocks.layout.source.path.split("/")[:-1]
    return "own" if not entry.root or entry.root in folders else "third"


def _sorted_in(group: list[_Entry], blocks: CodeBlocks, dotted: str, line: str) -> Insertion:
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
        return Insertion(below(blocks, previous[-1].node), line)
    start = blocks.start((peers or group)[0].node)
    beginning = blocks.layout.line_start if blocks.layout.first_on_line(start) else blocks.layout.next_line
    return Insertion(beginning(start), line)


def _first_import(blocks: CodeBlocks, line: str) -> Insertion:
    body = blocks.tree.body
    if ast.get_docstring(blocks.tree, clean=False) is not None:
        after = 2 if len(body) > 1 and has_definition(body[1]) else 1
        return Insertion(below(blocks, body[0]), line, 1, after)
    return Insertion(above(blocks, body[0]), line, 1, 2 if has_definition(body[0]) else 1)
