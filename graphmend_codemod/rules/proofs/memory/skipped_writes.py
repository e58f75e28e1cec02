"""What the branches of GM105 write, computed where eager mode skips them: when that cannot raise.

`self.low * self.momentum + low * (1 - self.momentum)` runs in compiled code also for the first batch, where eager mode
computes `self.low + low`. What both combine element by element fits in both or in none; for all else the header asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import shape_needs
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import SCALAR, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts
from graphmend_codemod.rules.proofs.memory.branch_writes import AttributeWrite

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_OF_TWO = frozenset({"min", "max", "minimum", "maximum"})


def asked_of(writes: Sequence[AttributeWrite]) -> Iterator[str]:
    """Conditions under which none of the values that one attribute may get raises. NotProven where there are none."""
    leaves = [_leaves(each.site, each.node) for each in writes]
    plain = [each for each in leaves if each is not None]
    common = set.intersection(*map(set, plain)) if len(plain) == len(leaves) else set()
    for write, found in zip(writes, leaves, strict=True):
        if write.value != write.site.text(write.node):
            continue  # what the branch computed before and keeps
        if found is None or len(found) == 1:
            yield from _asked(write.site, write.node)
            continue
        beside = next(
            (part for text, part in found.items() if text in common and write.site.value(part).is_tensor), None
        )
        for text, node in found.items():
            if text not in common:
                yield from _asked_of_other(write.site, node, beside)


def _leaves(site: Site, node: ast.expr) -> dict[str, ast.expr] | None:
    """The names and attributes that arithmetic combines, by their texts; None for any other expression."""
    if isinstance(node, ast.Constant):
        return {}
    if dotted(node) is not None:
        return {ast.unparse(node): node}
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        parts = [node.left, node.right]
        if isinstance(node.op, ast.Div) and not site.value(node).is_tensor:
            return None  # Python refuses to divide by zero
    elif isinstance(node, ast.Call) and not node.keywords and site.operation(node)[0] in _OF_TWO:
        parts = site.operation(node)[1]
    else:
        return None
    found = [_leaves(site, each) for each in parts]
    if len(parts) != 2 or any(each is None for each in found):
        return None
    return {text: part for each in found if each is not None for text, part in each.items()}


def _asked_of_other(site: Site, node: ast.expr, beside: ast.expr | None) -> Iterator[str]:
    """What is asked of an operand that only some of the branches have, `beside` a tensor that all of them have."""
    value, text = site.value(node), site.text(node)
    if value.kind is not ValueKind.TENSOR:
        yield f"isinstance({text}, (int, float))"
        return
    if beside is None:
        raise NotProven(f"`{text}` may not fit where eager mode skips it")
    yield from tensor_facts(site, node)
    if value.shape != SCALAR:
        yield from tensor_facts(site, beside)
        yield f"{text}.shape == {site.text(beside)}.shape"


def _asked(site: Site, node: ast.expr) -> Iterator[str]:
    hazards = site.judge(node)
    if hazards.raises is not None:
        raise NotProven(f"{hazards.raises} where eager mode skips it")
    yield from tensor_facts(site, node)
    parts = [part for part in walk_in_layers(node) if isinstance(part, ast.expr) and dotted(part) is not None]
    if hazards.needs_floating:
        yield from (f"{site.text(each)}.is_floating_point()" for each in parts if site.value(each).is_tensor)
    for need in shape_needs.in_order(hazards.needs_shapes):
        if (asked := shape_needs.asked(need, site.place.env, attributes=True)) is None:
            raise NotProven(f"`{short(node)}` may raise for some shapes where eager mode skips it")
        yield asked
