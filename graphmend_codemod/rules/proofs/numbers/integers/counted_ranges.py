"""Positions that `torch.arange` counts, where nothing is asked but whether they are None and what one of them is.

A Python `range` says the same, in the function that counts and in those that it hands the positions to.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import only_target
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import INT64_NAMES
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.integers.number_uses import NumberUses

_COMMENT = "# Numbers of it decide branches, and would have to be read out of a tensor."


def range_for(site: Site, node: ast.Assign) -> Diagnostic | None:
    """A `range` in place of `torch.arange`, where numbers of it decide branches; None where none does."""
    target, call = only_target(node), node.value
    counts = isinstance(call, ast.Call) and site.resolve_global(call.func) == "torch.arange"
    own = calls_in(site.source.text).at(site.evaluator.scope.node.lineno) if counts else None
    if own is None or not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
        return None
    uses = NumberUses(sure_calls(site), site.resolve_global, outside=True).several(own, target.id)
    if not uses.tests:
        return None
    test = uses.tests[0].test  # type: ignore[attr-defined]
    message = f"data-dependent branch on a `torch.arange` element from `{own.qualname}`: `{short(test)}`"
    found = judged(message, lambda: _edit(site, node, call, target.id, uses))
    # Where something else decides as well, the rule for that (a mask, GM109) has the reason to give.
    alone = not isinstance(test, ast.BoolOp) or not any(isinstance(each, ast.Call) for each in ast.walk(test))
    return found if found.edit is not None or alone else None


def _edit(site: Site, node: ast.Assign, call: ast.Call, name: str, uses: NumberUses) -> Edit:
    taken = {"range", "int", "type"} & local_names(uses.function.node)
    if taken or site.torch is None:
        raise NotProven(name_taken(min(taken, default="torch")))
    asked = {word.arg: word.value for word in call.keywords}
    whole = "dtype" not in asked or site.resolve_global(asked["dtype"]) in INT64_NAMES
    if not whole or asked.keys() - {"dtype", "device"} or not 1 <= len(call.args) <= 2:
        raise NotProven(f"`{short(call)}` does not count in integers, one by one")
    numbers = dict.fromkeys(f"type({leaf}) is int" for argument in call.args for leaf in _numbers(argument))
    conditions = [site.compiling, *numbers, *uses.conditions(site), *(f"not ({each})" for each in uses.unless)]
    ends = ", ".join(site.text(argument) for argument in call.args)
    return two_paths(site, node, conditions, [_COMMENT, f"{name} = range({ends})"])


def _numbers(node: ast.expr) -> list[str]:
    """The attributes in a sum that have to hold integers.

    Sizes would be as good, but Dynamo takes the length of a range for a constant, and would compile for each anew.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_numbers(node.left), *_numbers(node.right)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return []
    if (dotted(node) or "").startswith("self."):
        return [ast.unparse(node)]
    raise NotProven(f"`{short(node)}` may be a size; torch.compile would recompile for every new value")
