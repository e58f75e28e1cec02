"""What a round of a loop over experts looks like, for GM502: its mask, its rows, and whom it calls."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.rowwise import Rewriter
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import NotRowwise, bound_in, where_of

_MIXES_ROWS = frozenset(
    {"BatchNorm1d", "BatchNorm2d", "SyncBatchNorm", "InstanceNorm1d", "LSTM", "GRU", "RNN", "MultiheadAttention"}
)
_ADDS = frozenset({"index_add_", "index_add"})


def chooses_rows(site: Site, node: ast.For) -> bool:
    """True when a round takes rows by a mask, hands them on, and writes rows."""
    if not _may_write_rows(site, node):
        return False
    parts = list(walk(node))
    if not any(map(_writes_rows, parts)):
        return False
    names = variables_of(node)
    local = names | bound_in(node)
    chooses = calls = False
    for part in parts:
        if isinstance(part, ast.Call):
            chooses = chooses or where_of(site, part) is not None
            calls = calls or _may_be_expert(part.func, local) or any(_of_expert(each, names) for each in part.args)
        elif isinstance(part, ast.Subscript):
            elements = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            chooses = chooses or any(is_mask_of_round(site, element, names) for element in elements)
        elif isinstance(part, ast.Assign):
            chooses = chooses or is_mask_of_round(site, part.value, names)
    return chooses and calls


def _may_write_rows(site: Site, node: ast.For) -> bool:
    """What the outline of the function tells of that; it does not tell what stands in functions inside."""
    inside = site.evaluator.scope.outline
    if inside.nested or not inside.words.keys().isdisjoint(_ADDS):
        return True
    stores = (part.lineno for part in inside.subscripts if isinstance(part.ctx, ast.Store))
    return any(node.lineno <= line <= (node.end_lineno or line) for line in stores)


def variables_of(node: ast.For) -> frozenset[str]:
    """The names that a round gets from the loop's header."""
    return frozenset(part.id for part in walk_in_layers(node.target) if isinstance(part, ast.Name))


def is_mask_of_round(site: Site, node: ast.expr, names: frozenset[str]) -> bool:
    """True for a mask of the rows of one round: `m[:, i]` of a bool tensor, or `chosen == i`."""
    cast = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "bool"
    if cast and isinstance(node.func.value, ast.Subscript):  # type: ignore[attr-defined]
        return _of_round(node.func.value, names)  # type: ignore[attr-defined]
    if not isinstance(node, (ast.Subscript, ast.Compare)) or not _of_round(node, names):
        return False
    if isinstance(node, ast.Compare):
        plain = len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)
        index = node.comparators[0]
        return plain and isinstance(index, ast.Name) and index.id in names and not site.value(node.left).is_python
    return site.value(node).dtype == BOOL or _cast_to_bool(site, node.value)


def _of_round(node: ast.expr, names: frozenset[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in walk_in_layers(node))


def _cast_to_bool(site: Site, node: ast.expr) -> bool:
    """True for a name that was last assigned a `.bool()`."""
    if not isinstance(node, ast.Name):
        return False
    for body, position in reversed(site.place.blocks):
        for statement in reversed(body[:position]):
            if node.id in set(bound_in(statement)):
                call = statement.value if isinstance(statement, ast.Assign) else None
                return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "bool"
    return False


def _writes_rows(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Attribute) and node.attr in _ADDS


def _of_expert(node: ast.expr, names: frozenset[str]) -> bool:
    """True for `self.weight[i]` with the number of this round."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and _of_round(node.slice, names)


def _may_be_expert(function: ast.expr, names: frozenset[str] | set[str]) -> bool:
    """True for `expert(...)` with a name of this loop, `self.experts[i](...)`, `self.mlp(...)`, `getattr(...)(...)`."""
    if isinstance(function, ast.Name):
        return function.id in names
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "self"
    return isinstance(function, (ast.Subscript, ast.Call))


def check_experts(site: Site, rewriter: Rewriter) -> None:
    """Raise NotRowwise where no rows are written, or an expert is known to mix them."""
    if not rewriter.writes:
        raise NotRowwise("no rows are written")
    if not rewriter.calls:
        raise NotRowwise("no expert is called with the selected rows")
    for callee in rewriter.calls:
        for part in walk_in_layers(callee):
            if isinstance(part, ast.Attribute) and (mixing := _mixing(site, part.attr)):
                raise NotRowwise(
                    f"`self.{part.attr}` holds a `{mixing}`, which does not process each row independently"
                )


def _mixing(site: Site, name: str) -> str | None:
    fact = site.evaluator.scope.attribute(name)
    if fact is None:
        return None
    for word in (fact.callee or "", fact.text):
        for layer in _MIXES_ROWS:
            if layer in word:
                return layer
    return None
