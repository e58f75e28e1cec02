"""expert-loop (GM502): a mixture-of-experts loop that routes rows to experts (data-dependent shapes).

`for i in range(n): slot, row = torch.where(mask[i]); y.index_add_(0, row, expert(x[row]) * w[row, slot, None])` has
shapes that depend on the routing, so every round breaks the graph. The loop, from the first value whose size the
routing decides, moves word for word into a function. Eager mode calls it; torch.compile calls it as one operator
(made with `torch.library`), so there is one graph with an opaque operator in it, whatever experts do to their rows.

The operator runs the loop as eager mode does: same numbers, one wait for the device each time, nothing fused. Its
gradient runs the loop once more, by `torch.func.vjp`, with the random numbers and the buffers that the first run had.
Measured on seven expert blocks of transformers with Inductor on one thread (`docs/cost.md`): 0.9 to 1.0 times the time
at 512 rows, 0.9 to 1.1 times at one, 1.1 to 1.5 times with backward. Start-up takes 0.5 to 1.0 times as long; at one
row up to 1.8 times, where a break in a loop kept Dynamo from compiling the router, too.
A loop that goes through the chosen experts alone (Switch Transformers) does so little with one row that the operator's
call shows: 1.3 times by itself, 1.0 with a feed-forward layer behind it; 1.0 at 512 rows, as for NLLB-MoE.

Experts without rows get a gradient of zeros where eager mode leaves them without one. The operator knows its module by
a number that torch.compile guards, so compile a model as a whole: layers that are compiled one by one are compiled once
each, up to `torch._dynamo.config.recompile_limit`. Without gradients the operator finds the experts' parameters itself,
so that no call guards or passes them; `torch.func.functional_call` inside of compiled code is noticed then if it
replaces the first or the last of them. With gradients, a layer of an expert that is replaced after compiling by one of
the same class with more or fewer parameters needs `torch.compiler.reset()`.

The loop has to change one tensor that nothing else refers to, and nothing else; experts are of classes in the same file
whose methods write no attributes. They may be looked up in an `nn.ModuleList` or an `nn.ModuleDict` (`.values()`,
`getattr(self.experts, f"expert_{i}")`), or in the instance, where its class extends one (`self[f"expert_{i}"]`). Where
the constructor gets their class as an argument, the operator is for its default. A function outside of classes may hold
the loop, too.

What the operator cannot take is asked for while tracing, and then the loop breaks the graph as before: subclasses of
tensors (DTensor), numbers that are no integers, experts that another file put in, with backward hooks or, where
gradients are on, with any hook or a `forward` of their own, `torch.export`. Autocast holds inside the operator as it
does around it.

Running every expert on all rows, masked, would need no operator, and multiply the work of the experts: never a fix.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import region_outlining
from graphmend_codemod.rules.proofs.rowwise.expert_loops import chooses_rows, segment_statements, statements_before

_ABOUT = "Add to `{}` what each expert makes of its own rows."

rule = Rule(
    __name__,
    __doc__,
    title="run experts as one custom operator under torch.compile",
    contract=Contract(
        cost=Cost.OUTLINED,
        cost_note="experts run as in eager mode, once more for a gradient",
        compiled_state="kept; torch.compile notes a number for each module among the globals of the file",
    ),
)


@rule.on(ast.For)
def expert_loop(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, expert in enumerate(self.experts): ... expert(x[rows]) ...`, or `... expert(x[start:end]) ...`."""
    chooses = chooses_rows(site, node)
    statements = [*statements_before(site, node), node] if chooses else segment_statements(site, node)
    if statements is None:
        return None
    message = f"loop over selected rows (data-dependent shapes): `{speculation.short(node.iter)}`"
    return judged(message, lambda: region_outlining.edit(site, statements, _ABOUT), AS_OPERATOR)
