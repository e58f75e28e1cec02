"""length-mask (GM508): a loop that fills each row up to a length read from a tensor.

`for i, length in enumerate(lengths): mask[i, :length] = 1` reads every length back to Python. The compile path compares
the numbers of the columns with all lengths at once. Eager mode runs the loop, word for word. The path is taken where
there is one integer for each row, which Dynamo knows while it traces; a negative length counts from the end in both.
What a parameter without an annotation holds is asked for as well: where it is a list, the loop runs as before.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import counted, is_name, only_target
from graphmend_codemod.analysis.scope import dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.values import INT64, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read, plain_number

rule = Rule(
    __name__,
    __doc__,
    title="fill rows up to their lengths without a loop",
    contract=Contract(cost=Cost.NONE, saves_masks=True),
)

_COMMENT = "# All rows at once: the loop would read each number back to Python."


@dataclass(frozen=True)
class _Fill:
    """`target[row, :bound] = value`; with `tail`, `target[row, bound:] = value`."""

    target: ast.Name
    lengths: ast.Name
    tail: bool
    value: ast.expr
    count: ast.expr | None = None
    """The number of rows, where it is not that of the lengths or of the target."""


@rule.on(ast.For, candidate="rows")
def rows_filled(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, length in enumerate(lengths): mask[i, :length] = 1`."""
    if len(node.body) != 1 or node.orelse:
        return None
    fill = _fill(site, node, node.body[0])
    if fill is None or not _may_be_tensor(site, fill.lengths):
        return None
    message = f"loop over lengths read from a tensor (device sync): `{speculation.short(node.body[0])}`"
    return judged(message, lambda: _edit(site, node, fill))


def _fill(site: Site, node: ast.For, statement: ast.stmt) -> _Fill | None:
    target = only_target(statement)
    if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
        return None
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
    if len(index) != 2 or not isinstance(index[0], ast.Name) or not isinstance(index[1], ast.Slice):
        return None
    part = index[1]
    bound = part.upper if part.lower is None else part.lower
    if bound is None or part.step is not None or (part.lower is not None and part.upper is not None):
        return None
    found = _lengths(site, node, index[0].id, number_read(site, bound, INTEGER_CAST) or bound, target.value.id)
    if found is None:
        return None
    value = statement.value  # type: ignore[attr-defined]
    return _Fill(target.value, found[0], part.lower is not None, value, found[1])


def _may_be_tensor(site: Site, lengths: ast.Name) -> bool:
    """True for a tensor, and for a parameter without an annotation: the compile path asks."""
    value = site.value(lengths)
    return value.is_tensor or (value.kind is ValueKind.UNKNOWN and _is_argument(site, lengths.id))


def _lengths(
    site: Site, node: ast.For, row: str, bound: ast.expr, filled: str
) -> tuple[ast.Name, ast.expr | None] | None:
    """The tensor whose elements are the bounds, one a row, where the loop runs over all of it, and what counts them."""
    call = node.iter
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    called, over = site.resolve(call.func), call.args[0]
    if called == "builtins.enumerate" and isinstance(node.target, ast.Tuple) and isinstance(over, ast.Name):
        names = [part.id if isinstance(part, ast.Name) else "" for part in node.target.elts]
        same = isinstance(bound, ast.Name) and names == [row, bound.id] and row != bound.id
        return (over, None) if same else None
    if called != "builtins.range" or not is_name(node.target, row):
        return None
    if not (isinstance(bound, ast.Subscript) and isinstance(bound.value, ast.Name)):
        return None
    tensor = bound.value
    if not is_name(bound.slice, row):
        return None
    if counted(over) in (tensor.id, filled):
        return tensor, None
    return (tensor, over) if dotted(over) is not None or counted(over) is not None else None


def _edit(site: Site, node: ast.For, fill: _Fill) -> Edit:
    target, lengths = fill.target.id, fill.lengths.id
    filled, given = site.value(fill.target), site.value(fill.lengths)
    if not filled.is_tensor and not _is_argument(site, target):
        raise NotProven(cannot_infer_tensor(site, fill.target))
    number = plain_number(site, fill.value)
    if number is None:
        raise NotProven(f"`{speculation.short(fill.value)}` is not a Python number")
    both = target != lengths and _is_argument(site, target) and _is_argument(site, lengths)
    if not both and (not site.is_fresh(filled) or not (site.is_fresh(given) or _is_argument(site, lengths))):
        raise NotProven(f"`{target}` may share storage with `{lengths}`")
    for name in (part.id for part in walk(node.target) if isinstance(part, ast.Name)):
        if name in (target, lengths) or site.live_after(name):
            raise NotProven(f"`{name}` is used after the loop; manually compute it anew there")
    hinted = [f"isinstance({lengths}, {site.torch}.Tensor)"] if given.hint or not given.is_tensor else []
    if filled.hint or not filled.is_tensor:
        hinted.append(f"isinstance({target}, {site.torch}.Tensor)")
    conditions = [site.compiling, *hinted, f"{target}.shape[:1] == {lengths}.shape"]
    if fill.count is not None:
        conditions.append(f"{site.text(fill.count)} == {lengths}.shape[0]")
    if given.is_floating:
        raise NotProven(f"`{lengths}` is floating")
    if given.dtype != INT64 or given.hint:
        # In a smaller dtype, a length that counts from the end may leave its range with the size added.
        conditions.append(f"{lengths}.dtype in ({site.torch}.int32, {site.torch}.int64)")
    # Two tensors that are given may be one, but not where one holds fractions and the other whole numbers.
    if both or (number is float and not filled.is_floating):
        conditions.append(f"{target}.is_floating_point()")
    if both:
        # Rows of an expanded tensor are one row: the loop writes it again and again.
        conditions.append(f"{target}.is_contiguous()")
    torch, name = (
        site.torch,
        site.free_name("starts", "row_starts") if fill.tail else site.free_name("ends", "row_ends"),
    )
    lines = [
        _COMMENT,
        f"{name} = {lengths}.to({target}.device)",
        f"{name} = {torch}.where({name} < 0, {name} + {target}.shape[1], {name})[:, None]",
        f"{target}[{torch}.arange({target}.shape[1], device={target}.device) {'>=' if fill.tail else '<'} {name}]"
        f" = {site.text(fill.value)}",
    ]
    return two_paths(site, node, conditions, lines)


def _is_argument(site: Site, name: str) -> bool:
    """True for a parameter that keeps what it was given."""
    function = site.evaluator.scope.node
    stores = (each for each in walk_scope(function) if is_name(each, name))
    return name in parameter_names(function) and all(isinstance(e.ctx, ast.Load) for e in stores)
