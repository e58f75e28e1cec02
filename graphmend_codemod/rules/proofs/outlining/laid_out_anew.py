"""Rows that a mask chooses, or as many as a number says, laid out with another width: `x[mask].view(-1, 16)`.

Inductor of torch 2.13 takes a width for the number of rows there, and computes something else, without a word: for
`[rows, 64]` as `[4 * rows, 16]`, with torch's own `nonzero` as well. Where the width stays, or all becomes one
dimension, it is right.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from graphmend_codemod.analysis.patterns import elements_of, last_name, written_integer
from graphmend_codemod.analysis.scope import dotted, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.unknown_counts import Rows, rows_of
from graphmend_codemod.rules.proofs.untraced.evidence import assigned

_LAYS_OUT = frozenset({"reshape", "view"})
_ROWS_AND_WIDTH = 2


def widths_kept(site: Site, nodes: Collection[ast.expr], numbers: Collection[ast.expr]) -> tuple[str | None, list[str]]:
    """Why rows that these expressions choose, or cut, are laid out anew, or what has to hold so that they are not.

    Of what is cut to a number only itself is looked at, and not all that is computed of it.
    """
    scope, conditions = site.evaluator.scope.node, []
    chosen, cut = rows_of(scope, nodes), rows_of(scope, (), numbers)
    picked = next(
        (part for part in walk_scope(scope) if isinstance(part, ast.Subscript) and _picks(part, chosen)), None
    )
    if picked is not None:
        return f"`{short(picked)}` picks one of so many, which Inductor cannot compile", []
    for call, laid_out, sizes in (*_calls(scope, chosen), *_calls(scope, cut)):
        held = _held(site, laid_out)
        if not _may_change(sizes) or not (chosen.reach(laid_out) or cut.is_cut(held)) or _counts_up(site, held):
            continue
        condition = _same_width(site, held, sizes, nodes)
        if condition is None:
            return _why(call), []
        conditions.append(condition)
    return None, conditions


def _picks(node: ast.Subscript, rows: Rows) -> bool:
    """True for `rows.view(batch, -1, width)[:, -1]`: how far apart they lie is asked for."""
    call, parts = node.value, elements_of(node.slice)
    if not isinstance(call, ast.Call) or last_name(call.func) not in _LAYS_OUT or not rows.reach(call):
        return False
    made = [number for number, each in enumerate(call.args) if written_integer(each) == -1]
    return made not in ([], [0]) and len(parts) > made[0] and not isinstance(parts[made[0]], ast.Slice)


def why_laid_out(function: ast.AST, rows: Rows) -> str | None:
    """Why rows that a function is given are laid out anew there, where nobody can ask for their width."""
    return next((_why(call) for call, _, sizes in _calls(function, rows) if _may_change(sizes)), None)


def _why(call: ast.Call) -> str:
    return f"`{short(call)}` may give the rows another width, which Inductor computes wrongly"


def _calls(scope: ast.AST, rows: Rows) -> Iterator[tuple[ast.Call, ast.expr, Sequence[ast.expr]]]:
    """`rows.view(-1, 4)` and `torch.reshape(rows, (-1, 4))`: the call, what it lays out and the sizes."""
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        if last_name(call.func) not in _LAYS_OUT or not isinstance(call.func, ast.Attribute):
            continue
        given = [call.func.value, *call.args]
        first = next((number for number, each in enumerate(given[:2]) if rows.reach(each)), None)
        if first is None:
            continue
        sizes = given[first + 1 :]
        whole = sizes[0] if len(sizes) == 1 else None
        yield call, given[first], whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else sizes


def _may_change(sizes: Sequence[ast.expr]) -> bool:
    """True where the first size is made of the others, `-1` or a product, and the width is not that of a tensor."""
    if len(sizes) < _ROWS_AND_WIDTH or any(isinstance(each, ast.Starred) for each in sizes):
        return False
    made = written_integer(sizes[0]) == -1 or isinstance(sizes[0], ast.BinOp)
    return made and not (len(sizes) == _ROWS_AND_WIDTH and _is_size(sizes[1], -1))


def _counts_up(site: Site, laid_out: ast.expr) -> bool:
    """True for `torch.arange(n)`, which has one dimension."""
    return isinstance(laid_out, ast.Call) and site.resolve(laid_out.func) == "torch.arange"


def _is_size(node: ast.expr, dim: int) -> bool:
    """True for `x.shape[dim]` and `x.size(dim)`."""
    if isinstance(node, ast.Subscript):
        return (
            isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and written_integer(node.slice) == dim
        )
    of_size = isinstance(node, ast.Call) and last_name(node.func) == "size" and len(node.args) == 1
    return of_size and written_integer(node.args[0]) == dim  # type: ignore[attr-defined]


def _held(site: Site, node: ast.expr) -> ast.expr:
    """The value of a name that is assigned once; any other expression unchanged."""
    values = assigned(site, node.id) if isinstance(node, ast.Name) else []
    return values[0] if len(values) == 1 else node


def _same_width(site: Site, laid_out: ast.expr, sizes: Sequence[ast.expr], nodes: Collection[ast.expr]) -> str | None:
    """`x.shape[-1] == 16` for `x[mask].view(-1, 16)`; None where that cannot be asked in front of the statement."""
    if not any(laid_out is each for each in nodes) or not isinstance(laid_out, ast.Subscript):
        return None
    base, width = laid_out.value, sizes[-1]
    spelled = dotted(width) or ""
    plain = isinstance(width, ast.Constant) or (bool(spelled) and not assigned(site, spelled.partition(".")[0]))
    if len(sizes) != _ROWS_AND_WIDTH or not plain or dotted(base) is None or not site.value(base).is_tensor:
        return None
    same = f"{site.text(base)}.shape[-1] == {site.text(width)}"
    mask = laid_out.slice
    if dotted(mask) is None or not site.value(mask).is_tensor:
        return same
    return f"({site.text(base)}.dim() == {site.text(mask)}.dim() or {same})"
