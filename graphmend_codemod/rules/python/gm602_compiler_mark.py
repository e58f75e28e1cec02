"""compiler-mark (GM602): a `torch._dynamo.mark_*` call inside compiled code.

`torch._dynamo.mark_static_address(t)` and its relatives tell the compiler something about a tensor that is given to a
compiled function later. Dynamo cannot trace them: it breaks the graph. Eager mode keeps the call, word for word. A
tensor that is made while Dynamo traces is no input of the graph, so under `torch.compile` the call is left out. A mark
never changes what is computed, only how it is compiled.

`torch._dynamo.mark_static` is traced by Dynamo and left alone. `torch._dynamo.graph_break()` is a break that somebody
asked for: it is named, and stays.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.core.findings import Original
from graphmend_codemod.rules.framework.edits import beside
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_in

rule = Rule(
    __name__,
    __doc__,
    title="mark tensors for the compiler in eager mode only",
    contract=Contract(
        cost=Cost.NONE,
        compiled_state="the mark is not set on tensors that are made while Dynamo traces",
        may_raise=False,
    ),
)

_MARKS = frozenset({"mark_static_address", "mark_dynamic", "maybe_mark_dynamic", "mark_unbacked"})
_MODULES = frozenset({"torch._dynamo", "torch._dynamo.decorators"})


@rule.on(ast.Expr, words=(*_MARKS, "graph_break"))
def mark(site: Site, node: ast.Expr) -> Diagnostic | None:
    """`torch._dynamo.mark_static_address(t)`, and the marks that follow it at once."""
    called = _called(site, node)
    if called == "graph_break":
        return Diagnostic("`torch._dynamo.graph_break()` breaks the graph", declined="it requests a graph break")
    body, position = site.place.blocks[-1]
    if called not in _MARKS or (position and _called(site, body[position - 1]) in _MARKS):
        return None
    message = f"`{called}` breaks the graph"
    last: ast.stmt = node
    for statement in [node, *site.following()]:
        if _called(site, statement) not in _MARKS:
            break
        effect = effect_in(site, statement.value)  # type: ignore[attr-defined]
        if effect is not None:
            return Diagnostic(message, declined=f"`{effect}` in its arguments would not run under torch.compile")
        last = statement
    end = site.span(last)
    span = site.span(node).through(end)
    parts = (f"if not {site.compiling}:\n    ", Original(span, 1))
    return Diagnostic(message, edit=beside(site, span, parts))


def _called(site: Site, node: ast.stmt) -> str:
    """`mark_dynamic` for a statement that is nothing but `torch._dynamo.mark_dynamic(...)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return ""
    spelled = last_name(call.func)
    if spelled not in _MARKS and spelled != "graph_break":
        return ""
    module, _, name = (site.resolve(call.func) or "").rpartition(".")
    return name if module in _MODULES else ""
