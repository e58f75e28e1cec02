"""Edits that read a builtin by a name that means something else in the function, or in the whole file."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from graphmend_codemod.analysis.scope import Scope
from graphmend_codemod.core.findings import Edit, Span
from graphmend_codemod.core.source import SourceFile, parse_text
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.site import Site

_BUILTINS = tuple(name for name in vars(builtins) if not name.startswith("_"))


def why_not(edit: Edit, site: Site) -> str | None:
    """The reason where what the edit writes beside the author's text reads another `isinstance`."""
    scope = site.evaluator.scope
    spelled = _spelled(edit)
    local = {name for name in spelled if scope.is_local(name)}
    hidden = {name for name in spelled if scope.resolve_global(name) not in (None, f"builtins.{name}")}
    if not local and not hidden:
        return None  # nearly always
    other = _other(site.source, edit, scope, local, hidden)
    return name_taken(other) if other is not None else None


def _spelled(edit: Edit) -> frozenset[str]:
    """The builtins that the edit may name: only where one means something else its text is parsed."""
    written = "\n".join(part for each in edit.replacements for part in each.parts if isinstance(part, str))
    return _builtins_in(written).union(*(_builtins_in(each.source) for each in edit.helpers))


@lru_cache(512)
def _builtins_in(text: str) -> frozenset[str]:
    """The builtins whose names stand in the text, maybe as parts of words. Cached: files share their helpers."""
    return frozenset(name for name in _BUILTINS if name in text)


def _other(source: SourceFile, edit: Edit, scope: Scope, local: Collection[str], hidden: Collection[str]) -> str | None:
    """A name that the edit makes the file read once more: `local` ones in the function, `hidden` ones anywhere."""
    from graphmend_codemod.rewriting.edits import apply

    made = apply(source, [edit])
    if not made.applied:
        return None  # it is not written either way
    old, new = source.parse(), parse_text(made.text)
    inside = [_around(old, scope.node.lineno), _same(old, new, _around(old, scope.node.lineno))]
    before, after = (_reads([each] if each is not None else []) for each in inside)
    more = {name for name in {*local, *hidden} if after[name] > before[name]}
    own = _reads(part for part in ast.walk(scope.node) if _is_in(part, edit))  # the author's words, written once more
    helpers = _reads(parse_text(each.source) for each in edit.helpers)
    named = {name for name in hidden if helpers[name]}
    return next(iter(sorted({name for name in more if not own[name]} | named)), None)


def _around(tree: ast.Module, line: int) -> ast.stmt | None:
    """The statement of the file around a line."""
    return next((each for each in tree.body if each.lineno <= line <= (each.end_lineno or each.lineno)), None)


def _same(old: ast.Module, new: ast.Module, statement: ast.stmt | None) -> ast.stmt | None:
    """The statement in the new file: what an edit adds there has a name that no other has."""
    if statement is None:
        return None
    kinds = [[each for each in tree.body if _kind(each) == _kind(statement)] for tree in (old, new)]
    place = next(place for place, each in enumerate(kinds[0]) if each is statement)
    return kinds[1][place] if place < len(kinds[1]) else None


def _kind(statement: ast.stmt) -> tuple[type, str]:
    return type(statement), getattr(statement, "name", "")


def _reads(parts: Iterable[ast.AST]) -> Counter[str]:
    names = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name))
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Load))


def _is_in(node: ast.AST, edit: Edit) -> bool:
    """True for a name in one of the statements that the edit replaces."""
    return isinstance(node, ast.Name) and any(_covers(each.span, node) for each in edit.replacements)


def _covers(span: Span, node: ast.Name) -> bool:
    start, end = (span.start_line, span.start_column), (span.end_line, span.end_column)
    return start <= (node.lineno, node.col_offset) < end
