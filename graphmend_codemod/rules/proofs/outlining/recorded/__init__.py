"""Statements as one operator, by what a recorded run tells of them."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import names_bound
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.core.settings import SeenCalls
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.recorded.facts import KeptObject
from graphmend_codemod.rules.proofs.outlining.recorded.moments import is_another, lines_of, seen
from graphmend_codemod.rules.proofs.outlining.recorded.region import Region
from graphmend_codemod.rules.proofs.outlining.recorded.text import edit as edit_of
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import rows_of
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.calls import FINDS

_FURTHER = 12


class Operator(NamedTuple):
    """Statements as one operator: the edit, the number of recorded calls, and where they start in their block.

    `is_sized` says that what went in tells the sizes of all results.
    """

    edit: Edit
    calls: int
    start: int
    is_sized: bool


def broke(site: Site, known: SeenCalls, statement: ast.stmt) -> bool:
    """True for a statement in which a graph broke in the recorded run, or in what it called."""
    lines = lines_of(site, known, statement)
    return lines is not None and any(lines[0] <= line <= lines[1] for line in (*known.broken, *known.called))


def edit(site: Site, statement: ast.stmt) -> Operator | None:
    """The statement as one operator, with as many neighbours as it takes.

    None where the run tells nothing of the statement, or where one inside of it is enough. NotProven otherwise.
    """
    known = seen(site)
    if known is not None and is_another(site, known, statement):
        raise NotProven("the function is another one than in the recorded run; record it again")
    if known is None or not broke(site, known, statement):
        return None
    return taking_in(site) or _of(site, known, statement)


def taking_in(site: Site) -> Operator | None:
    """The operator of a statement behind the site's that takes it in, for a size that this one makes of the data."""
    known = seen(site)
    if known is None or not site.place.blocks:
        return None
    body, position = site.place.blocks[-1]
    for later in body[position + 1 : position + _FURTHER]:
        there = site.at(later) if broke(site, known, later) else None
        made = _of_later(there, known, later) if there is not None else None
        if made is not None and made.start <= position:
            return made
    return None


def _of_later(site: Site, known: SeenCalls, statement: ast.stmt) -> Operator | None:
    def look() -> Operator | None:
        try:
            return _of(site, known, statement)
        except NotProven:
            return None

    return site.remembered(f"recorded operator {site.without_gradients}", statement, look, anywhere=True)


def _of(site: Site, known: SeenCalls, statement: ast.stmt) -> Operator | None:
    try:
        return _outermost(site, known, statement)
    except NotProven as why:
        if not any(_grows(site.at(each), known) for each in _around(site, statement)):
            with contextlib.suppress(NotProven):
                return _outermost(site, known, statement, alike=True)
        raise why.anew() from None


def _outermost(site: Site, known: SeenCalls, statement: ast.stmt, *, alike: bool = False) -> Operator | None:
    """The same from all calls, or from those that are `alike`; other calls break the graph as before then."""
    for each in _inside(statement):
        there = site.at(each) if broke(site, known, each) else None
        if there is not None and _succeeds(there, known, each, alike=alike):
            return None
    return _grown(site, known, alike=alike)


def _succeeds(site: Site, known: SeenCalls, statement: ast.stmt, *, alike: bool) -> bool:
    return _grows(site, known, alike=alike) or any(
        (there := site.at(each)) is not None and _succeeds(there, known, each, alike=alike)
        for each in _inside(statement)
        if broke(site, known, each)
    )


def _grows(site: Site | None, known: SeenCalls, *, alike: bool = False) -> bool:
    try:
        return site is not None and bool(_grown(site, known, alike=alike))
    except NotProven:
        return False


def _around(site: Site, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements around one, in the function."""
    parents = (each for each in site.place.parents if isinstance(each, ast.stmt) and each is not statement)
    yield from (each for each in parents if each is not site.evaluator.scope.node)


def _grown(site: Site, known: SeenCalls, *, alike: bool = False) -> Operator:
    """The statement with as many neighbours as it takes, and with those that make what it asks a size of."""
    body, position = site.place.blocks[-1]
    start, end = position, position + 1
    found: Operator | None = None
    while True:
        try:
            region = Region(site, known, body[start:end], alike=alike)
            if not _broke_here(site, known, body[start:end]) and region.runs_layers():
                raise NotProven("it calls what broke the graph, and runs layers")
            edit, spelled, is_sized = edit_of(region)
            made = Operator(edit, len(region.seen), start, is_sized)
            if not is_sized:
                _demand_carried(site, region.statements)
            if not reads_lengths(site, spelled, _of_unknown_length(site, known, body[:start])):
                return made
            found = found or made  # what makes the length may be out of reach, or break the graph itself
            if start == 0 or position - start >= _FURTHER:
                return found
            start -= 1
        except KeptObject as why:
            if why.before and start > 0 and position - start < _FURTHER:
                start -= 1
            elif not why.before and end < len(body) and end - position < _FURTHER:
                end += 1
            elif found is not None:
                return found
            else:
                raise
        except NotProven:
            if found is None:
                raise
            return found


def _demand_carried(site: Site, statements: Sequence[ast.stmt]) -> None:
    """NotProven where a graph cannot carry the size that statements read: that of an operator is such a symbol, too."""
    from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import captured  # it asks which operators there are

    for each in statements:
        there = site.at(each) if isinstance(each, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)) else None
        found = captured(there, each) if there is not None else None
        if found is not None and found.reason is not None:
            raise NotProven(f"the size of what it gives depends on data: {found.reason}")


def _of_unknown_length(site: Site, known: SeenCalls, above: Sequence[ast.stmt]) -> set[str]:
    """What statements above bind that broke the graph as well, and that are no operator which gives known sizes."""
    found: set[str] = set()
    for each in above:
        there = site.at(each) if broke(site, known, each) else None
        made = _of_later(there, known, each) if there is not None else None
        if there is not None and (made is None or not made.is_sized):
            found |= names_bound(each)
    return found


def _broke_here(site: Site, known: SeenCalls, statements: Sequence[ast.stmt]) -> bool:
    ends = lines_of(site, known, statements[0]), lines_of(site, known, statements[-1])
    return any(ends[0][0] <= line <= ends[1][1] for line in known.broken) if ends[0] and ends[1] else False


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements in the blocks of a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, ())
    for handler in getattr(statement, "handlers", ()):
        yield from handler.body


# Lengths that the data decides, of what earlier statements of the function make: `places = mask.nonzero()`


def reads_lengths(site: Site, spelled: Iterable[str], unknown: Collection[str]) -> bool:
    """True where one of these expressions reads a length that depends on data, or the length of something `unknown`."""
    read = {name for each in spelled for name in _lengths_in(each)}
    return bool(read) and not read.isdisjoint(_of_data(site) | {*unknown})


def _lengths_in(text: str) -> Iterable[str]:
    """`x` for `x.shape[0] == 3`."""
    for part in ast.walk(ast.parse(text, mode="eval")):
        match part:
            case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(0)):
                yield name


def _of_data(site: Site) -> set[str]:
    """The names of the function that hold as many rows as a search finds."""
    scope = site.evaluator.scope.node

    def look() -> set[str]:
        searches = [each for each in untraced.suspects(site).nodes if _is_search(site, each)]
        return rows_of(scope, searches).names if searches else set()

    return site.remembered("rows of searches", scope, look, anywhere=True)


def _is_search(site: Site, node: ast.expr) -> bool:
    """True for `mask.nonzero()` and `torch.unique(x)`."""
    if not isinstance(node, ast.Call):
        return False
    qualified = site.resolve_global(node.func)
    method = node.func.attr if qualified is None and isinstance(node.func, ast.Attribute) else ""
    return (torch_api.torch_function(qualified) or method) in FINDS
