"""masked-write-guard (GM104): a data-dependent `if mask.any()` around a write under the same mask.

Without a true element the masked write changes nothing, so the test decides nothing and costs a break and a sync.
Several writes under one mask are taken as well, with what they compute for themselves, `x[m] = y[m]`, `done |= m`, and
tests such as `m.sum() > 0` and `not m.all()` for `~m`. The compile path writes without asking; the original stays
behind it, and eager mode runs that. Where all is known, the test only gets `torch.compiler.is_compiling() or` in front.
Else the compile path asks while tracing whether the mask is a bool tensor that leaves the shape of the target as it is,
and whether the target's dtype holds what is written.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Original
from graphmend_codemod.rules.framework.edits import beside, in_front
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import WRITES_ANYWAY, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.masks.masked_writes import asked_mask, neutral

rule = Rule(
    __name__,
    __doc__,
    title="write under the mask without testing it first",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="the write is always done",
        compiled_exceptions=f"kept; {WRITES_ANYWAY}",
        saves_masks=True,
    ),
)


@rule.on(ast.If, candidate="test")
def guard_around_masked_write(site: Site, node: ast.If) -> Diagnostic | None:
    """`if m.any(): x = x.masked_fill(m, v)`, its in-place forms, and several of them."""
    if node.orelse or (condition := split(site, node.test)) is None:
        return None
    mask = asked_mask(site, condition.tensors[0]) if len(condition.tensors) == 1 else None
    if mask is None:
        return None
    message = f"data-dependent branch around a masked write: `{speculation.short(node.test)}`"
    try:
        facts = neutral(site, node.body, mask)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))
    if facts is None:
        return None
    if facts and condition.again is not None:
        return Diagnostic(message, declined=condition.again)
    if facts:
        static = [site.operand_of_and(operand) for operand in condition.static]
        body = Original(site.span(node.body[0]).through(site.span(node.body[-1])))
        return Diagnostic(message, edit=in_front(site, node, [*static, *facts], [body]))
    test = condition.tensors[0]
    opening, closing = ("(", ")") if condition.static else ("", "")
    parts = (f"{opening}{site.compiling} or ", site.original(test), closing)
    return Diagnostic(message, edit=beside(site, site.span(test), parts, scriptable=True))
