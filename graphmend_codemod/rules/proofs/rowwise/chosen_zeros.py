"""Whether a mask would choose a row of zeros, which stands in where it chooses none.

A function may look up what it computes of its rows (`gather`). Where an index is out of range it raises, and only its
author knows for which rows that is. A row that the mask would choose is one that the function has to take.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.rowwise.masked_reads import MaskedReads
from graphmend_codemod.rules.proofs.rowwise.row_values import UNKNOWN, NotRowwise, at_zero

_PLAIN = (ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
_SIGNS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def zero_is_chosen(reads: MaskedReads) -> list[str]:
    """Trace-time conditions under which the mask would choose a row of zeros; NotRowwise where nobody can ask."""
    asked = _at_zero(reads, _definition(reads.site, reads.mask))
    if asked is None:
        text = short(reads.ranged[0])
        raise NotRowwise(f"`{text}` may raise where no row is selected: its index may be out of range then")
    return [*(f"{each}.is_floating_point()" for each in reads.sources), *asked]


def _definition(site: Site, mask: ast.expr) -> ast.expr:
    """What the mask was computed by, where that still gives the same."""
    if not isinstance(mask, ast.Name):
        return mask
    function = site.evaluator.scope.node
    blocks = site.remembered("blocks", function, lambda: Blocks(function), anywhere=True)
    bound, here = blocks.binding_before(site.place.statement, mask.id), site.place.statement
    if bound is None or not isinstance(bound.targets[0], ast.Name):
        return mask
    for name in all_names(bound.value):
        if blocks.binding_before(bound, name) is not blocks.binding_before(here, name):
            return mask
    return bound.value


def _at_zero(reads: MaskedReads, node: ast.expr) -> list[str] | None:
    """When the mask holds for zeros: `0 >= -bound` and `0 <= bound` for `(x >= -bound) & (x <= bound)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        left, right = _at_zero(reads, node.left), _at_zero(reads, node.right)
        return None if left is None or right is None else [*left, *right]
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], _SIGNS):
        return None
    site, number = reads.site, node.comparators[0]
    plain = all(isinstance(part, _PLAIN) for part in ast.walk(number))
    if site.text(node.left) not in reads.sources or not plain:
        return None
    known = _number(number)
    found = at_zero(type(node.ops[0]), known, site.text(number))
    names = [name for name in sorted(all_names(number)) if name not in reads.numbers]
    asked = [f"isinstance({name}, (int, float))" for name in names]
    return None if found is None else [*asked, *found]


def _number(node: ast.expr) -> object:
    """What is written out; `UNKNOWN` for what has to be asked."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return UNKNOWN
