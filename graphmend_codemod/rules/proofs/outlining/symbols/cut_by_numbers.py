"""Slices whose bounds are numbers that only the data tells: `x[:n]`.

Inductor of torch 2.13 compiles them, but not their gradient: it asks whether the number is below 0, and ends
compilation with an error. Where `n` is a size as well, `torch.arange(n)`, it knows that it is not. A slice from such a
number on it does not compile at all, then.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    elements_of,
    is_target,
    last_name,
    listed,
    same,
    stores_name,
    written_integer,
)
from graphmend_codemod.analysis.scope import FunctionNode, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import Rows

_SIZES = torch_api.name_set("arange empty full narrow new_empty new_full new_ones new_zeros ones rand randn zeros")
"""What raises where a number that it gets for a size is below 0."""
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.FunctionDef, ast.AsyncFunctionDef)


def unanswered_cut(site: Site, rows: Rows, counts: Collection[ast.expr]) -> tuple[str | None, list[str]]:
    """Why what is cut at numbers cannot be compiled, or what has to hold for it. `counts` are never below 0."""
    scope = site.evaluator.scope.node
    known = {id(each) for each in counts}
    found: list[str] = []
    for part, bound, is_start in _bounds(scope, rows):
        plain = not isinstance(bound, (ast.BinOp, ast.UnaryOp))
        above_0 = plain and (id(bound) in known or _is_size(scope, bound))
        if is_start and above_0:
            return f"Inductor cannot compile `{short(part)}`, which begins at a number that only the data tells", []
        if above_0 or (not is_start and _is_sum_of_size(scope, bound)):
            continue
        if not (site.no_grad or _holds_integers(site, part.value)):
            found += _without_gradient(site, part)
    return None, [site.gradients_off] if site.gradients_off in found else list(dict.fromkeys(found))


def _without_gradient(site: Site, part: ast.Subscript) -> list[str]:
    """What has to hold for a slice to have no gradient, asked at the site: of a name that holds the same there."""
    scope, cut = site.evaluator.scope.node, part.value
    if not isinstance(cut, ast.Name) or site.place.in_loop:
        return [site.gradients_off]
    stores = [each.lineno for each in walk_scope(scope) if stores_name(each, cut.id)]
    first = site.place.statement.lineno
    made = (each for each in scope.body if isinstance(each, ast.Assign) and each.lineno < first)
    is_bound = cut.id in parameter_names(scope) or any(is_target(each, cut.id) for each in made)
    if not is_bound or any(first <= line < part.lineno for line in stores):
        return [site.gradients_off]
    value = site.value(cut)
    sure = value.is_tensor and not value.hint
    asked = [] if sure else [f"isinstance({cut.id}, {site.torch}.Tensor)"]
    return [*asked, f"not ({site.torch}.is_grad_enabled() and {cut.id}.requires_grad)"]


def _bounds(scope: FunctionNode, rows: Rows) -> Iterator[tuple[ast.Subscript, ast.expr, bool]]:
    """The slices in a function that numbers bound, those bounds, and whether a slice begins there."""
    for part in (node for node in walk_scope(scope) if isinstance(node, ast.Subscript)):
        for each in (index for index in elements_of(part.slice) if isinstance(index, ast.Slice)):
            for bound, is_start in ((each.lower, True), (each.upper, False)):
                if bound is not None and rows.is_number(bound):
                    yield part, bound, is_start


def _is_size(scope: FunctionNode, number: ast.expr) -> bool:
    """True where a statement that always runs makes a tensor of that size."""
    sure = (part for each in scope.body if not isinstance(each, _BLOCKS) for part in walk(each))
    calls = (part for part in sure if isinstance(part, ast.Call) and last_name(part.func) in _SIZES)
    given = (each for call in calls for each in call.args)
    sizes = (part for each in given for part in listed(each))
    return any(same(each, number) for each in sizes)


def _is_sum_of_size(scope: FunctionNode, bound: ast.expr) -> bool:
    """True for `n + 1` of a size `n`."""
    plus = isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Add)
    if not plus or not isinstance(bound.right, ast.Constant):  # type: ignore[attr-defined]
        return False
    return _is_size(scope, bound.left)  # type: ignore[attr-defined]


def _holds_integers(site: Site, node: ast.expr) -> bool:
    """True for what no gradient flows through: `ids`, `torch.arange(99)[None]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    value = site.value(node)
    if isinstance(node, ast.Call) and site.resolve(node.func) == "torch.arange":
        return all(written_integer(each) is not None for each in node.args)
    return value.is_python or (value.dtype or "").startswith(("torch.int", "torch.uint", "torch.bool", "bool:"))
