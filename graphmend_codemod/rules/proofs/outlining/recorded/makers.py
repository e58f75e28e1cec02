"""Lengths that the data decides, of what earlier statements of the function make: `places = mask.nonzero()`.

In the graph such a length is a symbol. A header that asks whether it is that of the recorded calls breaks the graph,
and what an operator gives of that length is a symbol, too. Where it makes the places as well, sizes are known.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import rows_of
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.calls import FINDS


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
