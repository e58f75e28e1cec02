"""overflow-guard (GM103): a data-dependent branch that clamps a tensor only if it contains inf or nan.

Half precision models test `torch.isinf(x).any()` after a block and clamp when it is true: a data-dependent branch,
and a device sync, in every layer. The static part of the test (the dtype) stays an `if`, which Dynamo folds; the
clamped or untouched values are selected on the device.

The select goes in front of the original text under `torch.compiler.is_compiling()`, so that eager mode runs what was
there. Conditions and the setting `one-path = true` are those of GM101.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.select.select_proof import judge
from graphmend_codemod.rules.proofs.select.select_text import select_verdict
from graphmend_codemod.rules.proofs.select.selection import selection_of

_TESTS = frozenset({"isinf", "isnan", "isfinite", "isposinf", "isneginf"})

rule = Rule(
    __name__,
    __doc__,
    title="select clamped values instead of branching on overflow",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="the clamped values are always computed, in one kernel with the select",
        saves_masks=True,
    ),
)


def is_overflow_test(site: Site, condition: Condition) -> bool:
    """True when every tensor that decides is a test for inf or nan."""
    calls = [node for tensor in condition.tensors for node in walk_in_layers(tensor) if isinstance(node, ast.Call)]
    names = {torch_function(site.resolve(call.func)) or getattr(call.func, "attr", None) for call in calls}
    return bool(names & _TESTS) and names <= _TESTS | {"any", "all", "item", "bool", None}


@rule.on(ast.If, candidate="test")
def overflow_guard(site: Site, node: ast.If) -> Diagnostic | None:
    """`if static and isinf(x).any(): x = clamp(x)`."""
    if node.orelse or (condition := split(site, node.test)) is None or not is_overflow_test(site, condition):
        return None
    if not all(isinstance(statement, ast.Assign) for statement in node.body):
        return None
    message = f"data-dependent branch around an overflow clamp: `{speculation.short(node.test)}`"
    try:
        selection = selection_of(site, node)
        return select_verdict(message, selection, judge(selection))
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))
