"""tensor-log (GM202): a log, warning or print call with a tensor among its arguments.

To show the tensor the graph has to end: its values are needed in Python. Eager mode keeps the statement as it is; under
`torch.compile` the call is left out of the compiled code. So is a test of a tensor's values that decides about messages
alone, as in `if torch.isnan(x).any(): print("nan")`: the test itself breaks the graph.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_of
from graphmend_codemod.rules.proofs.logging.log_calls import LogCall, find_log_call, judge_arguments
from graphmend_codemod.rules.proofs.logging.log_guard import effect, guard_calls, guard_test, why_not

rule = Rule(
    __name__,
    __doc__,
    title="keep calls that print tensors out of the graph",
    contract=Contract(
        cost=Cost.NONE,
        compiled_logs="dropped",
        compiled_exceptions="an exception that its arguments or its test would raise is not raised",
        may_raise=False,
    ),
    for_own=True,
)


@rule.on(ast.If, candidate="log", when=lambda node: isinstance(node.body[0], ast.Expr) and not node.orelse)
def asked_for_a_message(site: Site, node: ast.If) -> Diagnostic | None:
    """`if torch.isnan(x).any(): print(...)`: a test of a tensor that decides about messages and nothing else."""
    condition = split(site, node.test) if not node.orelse else None
    calls = [find_log_call(site, part.value) if isinstance(part, ast.Expr) else None for part in node.body]
    if condition is None or not all(calls):
        return None
    message = f"data-dependent branch around a log call: `{speculation.short(node.test)}`"
    reason = _why_not(site, node, [call for call in calls if call is not None])
    if reason is not None:
        return Diagnostic(message, declined=reason)
    return Diagnostic(message, edit=guard_test(site, node))


def _why_not(site: Site, node: ast.If, calls: list[LogCall]) -> str | None:
    acting = effect_of(site, node.test)
    if acting is not None:
        return f"`{acting}` in the test would not run under torch.compile"
    reasons = (why_not(site, call) or effect(site, call) for call in calls)
    return next((reason for reason in reasons if reason is not None), None)


@rule.on(ast.Expr, candidate="log")
def tensor_log(site: Site, node: ast.Expr) -> Diagnostic | None:
    """A statement that is nothing but a log call, with a tensor in it."""
    call = find_log_call(site, node.value)
    if call is None or judge_arguments(site, call.call).tensor is None:
        return None
    message = f"`{call.what}` with a tensor breaks the graph"
    reason = why_not(site, call) or effect(site, call)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    return Diagnostic(message, edit=guard_calls(site, node))
