"""masked-copy (GM509): elements selected by a mask are copied to positions selected by the same mask.

`y[mask] = x[mask]` makes a tensor of as many elements as the data says, and the graph breaks. Under `torch.compile` all
elements are looked at and the mask selects: `y.copy_(torch.where(mask, x, y))`. The same goes for rows that are looked
up, `y[mask] = table[ids[mask]]`, where the number 0 stands for the ids that the mask leaves out. The mask may be a
view, `y[mask.view(n, -1)] = x[mask.view(n, -1)]`. Eager mode runs the original statement, word for word.

Nothing is computed with what is copied, so that what the mask leaves out can do no harm, forward or backward. Shapes
and dtypes have to be those for which eager mode copies element by element, which Dynamo knows while it traces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.outline import INDEXED
from graphmend_codemod.analysis.patterns import elements_of, is_whole, same
from graphmend_codemod.analysis.scope import parameter_names, walk_in_layers
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.devices import on_one_device
from graphmend_codemod.rules.proofs.rowwise.selectors import is_view_of_name, viewed_name
from graphmend_codemod.rules.proofs.untraced.evidence import is_array
from graphmend_codemod.rules.proofs.untraced.subscripts import chosen, chosen_anywhere

rule = Rule(
    __name__,
    __doc__,
    title="select with torch.where instead of boolean-mask indexing",
    contract=Contract(cost=Cost.BOTH_ARMS, cost_note="all elements are read, and the mask selects", saves_masks=True),
)

_COMMENT = "# All elements: those that the mask chooses would be as many as the data says."


class _Copied(NamedTuple):
    """`table[indices[0][mask], ...]`, or `table[mask]` without indices."""

    table: ast.Name
    indices: tuple[ast.Name, ...]


def _mask(node: ast.Assign) -> ast.expr | None:
    """What indexes the one target: a name, or `mask.view(n, -1)`."""
    target = node.targets[0]
    plain = len(node.targets) == 1 and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
    index = target.slice if plain and isinstance(target, ast.Subscript) else None
    return index if isinstance(index, ast.Name) or (index is not None and is_view_of_name(index)) else None


def _chosen_by(node: ast.expr, mask: ast.expr) -> Iterator[ast.Subscript]:
    for part in walk_in_layers(node):
        if isinstance(part, ast.Subscript) and type(part.slice) is type(mask) and same(part.slice, mask):
            yield part


def _copies(node: ast.Assign) -> bool:
    mask = _mask(node) if isinstance(node.value, ast.Subscript) else None
    return mask is not None and next(_chosen_by(node.value, mask), None) is not None


@rule.on(ast.Assign, words={INDEXED}, here=True, when=_copies)
def masked_copy(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`y[mask] = x[mask]`."""
    mask, target = _mask(node), node.targets[0]
    if mask is None or not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    if all(chosen(site, part) is None and chosen_anywhere(site, part) is None for part in _chosen_by(node.value, mask)):
        return None
    message = f"copies through boolean-mask indexing (data-dependent shape): `{speculation.short(node.value)}`"
    copied = _copied(node.value, mask)
    if copied is None:
        return Diagnostic(
            message, declined=f"`{speculation.short(node.value)}` does more than copy elements or index rows"
        )
    arrays = [each.id for each in (target.value, copied.table, *copied.indices) if is_array(site, each.id)]
    if arrays:
        return Diagnostic(message, declined=f"`{arrays[0]}` is an array of NumPy, not a tensor")
    return Diagnostic(message, edit=_edit(site, node, target, copied))


def _copied(node: ast.expr, mask: ast.expr) -> _Copied | None:
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    if isinstance(node.slice, ast.Name) or same(node.slice, mask):
        return _Copied(node.value, ()) if same(node.slice, mask) else None
    parts = elements_of(node.slice)
    while parts and is_whole(parts[-1]):
        parts = parts[:-1]
    indices = []
    for part in parts:
        by_mask = isinstance(part, ast.Subscript) and same(part.slice, mask)
        if not by_mask or not isinstance(part, ast.Subscript) or not isinstance(part.value, ast.Name):
            return None
        indices.append(part.value)
    return _Copied(node.value, tuple(indices)) if indices else None


def _edit(site: Site, node: ast.Assign, target: ast.Subscript, copied: _Copied) -> Edit:
    assert isinstance(target.value, ast.Name)
    named = viewed_name(target.slice)
    assert isinstance(named, ast.Name)
    mask, out, table, torch = site.text(target.slice), target.value.id, copied.table.id, site.torch
    conditions = [site.compiling, *_tensors(site, [target.value, named, copied.table, *copied.indices])]
    if not site.sole_owner(out):
        conditions.append(f"0 not in {out}.stride()")
    given = parameter_names(site.evaluator.scope.node)
    if site.value(target.slice).dtype != BOOL or (site.value(target.slice).hint and named.id in given):
        conditions.append(f"{mask}.dtype == {torch}.bool")
    alike = site.value(target.slice).shape
    rows, read, lines = mask, table, []
    if copied.indices or alike is None or alike != site.value(copied.table).shape:
        rows = site.free_name("rows", f"rows_of_{out}")
        lines += [] if mask == named.id else [f"{rows} = {mask}"]
        first = mask if mask == named.id else rows
        lines.append(f"{rows} = {first}[(...,) + (None,) * ({out}.dim() - {first}.dim())]")
    if copied.indices:
        names, count = [each.id for each in copied.indices], len(copied.indices)
        conditions.append(" == ".join([*dict.fromkeys([f"{name}.shape" for name in names]), f"{mask}.shape"]))
        conditions.append(f"{out}.shape == {mask}.shape + {table}.shape[{count}:]")
        conditions.append(f"0 not in {table}.shape[:{count}]")
        conditions += dict.fromkeys(f"{name}.dtype == {torch}.int64" for name in names)
        read = site.free_name("found", f"found_in_{table}")
        looked_up = [f"{torch}.where({mask}, {name}, 0)" for name in names]
        lines += site.call(f"{read} = {table}[", looked_up, deeper=1, after="]").split("\n")
    else:
        conditions += [f"{mask}.shape == {out}.shape[: {mask}.dim()]"] if rows != mask else []
        conditions += _alike(site, copied.table, target.value, "shape")
    conditions += _alike(site, copied.table, target.value, "dtype")
    # What is read and what is written lie on one device in eager mode, too.
    apart = [on_one_device(site, target.slice, each) for each in (copied.table, target.value)]
    conditions += apart[1] if all(apart) else []
    lines.append(f"{out}.copy_({torch}.where({rows}, {read}, {out}))")
    return two_paths(site, node, conditions, [_COMMENT, *lines])._replace(repeats=True)


def _alike(site: Site, first: ast.Name, second: ast.Name, what: str) -> list[str]:
    """What has to be asked for two tensors to have one shape, or dtype."""
    known = getattr(site.value(first), what)
    same = known is not None and known == getattr(site.value(second), what)
    return [] if same else [f"{first.id}.{what} == {second.id}.{what}"]


def _tensors(site: Site, names: list[ast.Name]) -> list[str]:
    """What has to be asked of names that are not known to hold tensors, or that only a hint says to."""
    known = {name.id for name in names if site.value(name).is_tensor and not site.value(name).hint}
    return list(dict.fromkeys(f"isinstance({name.id}, {site.torch}.Tensor)" for name in names if name.id not in known))
