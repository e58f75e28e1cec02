"""Writes under a mask of what does no harm on any row: `x[mask] += 1`, `y[mask] = 1 - x[mask]`.

A sum or difference of tensors and numbers has a value for each element, and its gradient is zero where the mask does
not hold, whatever stands there. So it is computed of all elements as they are, and nothing has to stand in. The same
goes for a written factor, `x[mask] *= 2`; with any other, a gradient of zero times infinity would be nan.
"""

from __future__ import annotations

import ast
import math

from graphmend_codemod.analysis.patterns import same
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.rules.proofs.rowwise.chosen_elements import ChosenElements

_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def plain_write(reads: ChosenElements, node: ast.stmt) -> list[str]:
    """The lines that do for all elements what a statement does under the mask; none where it does more than add.

    `reads` has looked at the statement, and found that it writes rows and numbers alone.
    """
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AugAssign) and _is_harmless(node.op, node.target, node.value):
        target = node.target
    else:
        return []
    if not isinstance(target, ast.Subscript) or not reads.is_mask(target) or not _only_adds(reads, node.value):
        return []
    site, name = reads.site, reads.site.text(target.value)
    whole = {id(each): (each, site.text(each.value)) for each in _chosen(reads, node.value)}
    value = site.but(written={**site.written, **whole}).text(node.value)
    if isinstance(node, ast.AugAssign):
        value = f"({value})" if isinstance(node.value, (ast.BinOp, ast.UnaryOp)) else value
        value = f"{name} {_SIGNS[type(node.op)]} {value}"
    rows, lines = reads.choice, []
    if not compares_itself(reads, target.value):
        rows, first = site.free_name("rows", f"rows_of_{name}"), reads.choice
        if not isinstance(reads.mask, ast.Name):
            lines, first = [f"{rows} = {reads.choice}"], rows
        lines.append(f"{rows} = {first}[(...,) + (None,) * ({name}.dim() - {first}.dim())]")
    return [*lines, f"{name}.copy_({site.torch}.where({rows}, {value}, {name}))"]


def compares_itself(reads: ChosenElements, base: ast.expr) -> bool:
    """True for a mask `x > t` of `x`, which has as many dimensions, at least."""
    mask = reads.mask
    compared = isinstance(mask, ast.Compare) and len(mask.ops) == 1 and isinstance(mask.ops[0], _COMPARED)
    return compared and isinstance(mask, ast.Compare) and same(mask.left, base)


def _only_adds(reads: ChosenElements, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and any(map(reads.chooses, walk_in_layers(node))):
        sides = _only_adds(reads, node.left) and _only_adds(reads, node.right)
        return sides and _is_harmless(node.op, node.left, node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _only_adds(reads, node.operand)
    chosen = isinstance(node, ast.Subscript) and reads.is_mask(node) and reads.site.text(node.value) in reads.tensors
    return chosen or not any(map(reads.chooses, walk_in_layers(node)))


def _chosen(reads: ChosenElements, node: ast.expr) -> list[ast.Subscript]:
    return [part for part in walk_in_layers(node) if isinstance(part, ast.Subscript) and reads.is_mask(part)]


def _is_harmless(sign: ast.operator, left: ast.expr, right: ast.expr) -> bool:
    """True for sums, and for products with a written number."""
    if isinstance(sign, ast.Div):
        return _is_factor(right) and ast.literal_eval(right) != 0
    return isinstance(sign, (ast.Add, ast.Sub)) or (isinstance(sign, ast.Mult) and any(map(_is_factor, (left, right))))


def _is_factor(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and math.isfinite(node.value)
