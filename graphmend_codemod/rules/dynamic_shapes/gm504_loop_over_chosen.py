"""loop-over-chosen (GM504): a loop with a data-dependent number of iterations or slices.

`for i in range(idxs.shape[0])` with `idxs = torch.nonzero(mask)` runs as often as the data says, and `torch.arange(n)`
with a tensor `n` is as long as the data says, so neither can be traced. torch.compile can call such a loop as a whole:
as a custom operator (`torch.library.custom_op`). The operator runs the loop's own text, so compiled results are those
of eager mode, to the last bit.

A function that takes only tensors and returns new tensors whose shapes do not depend on the data becomes an
operator itself. Its fake is the part of the function that makes the results, without the loop that
fills them in.

A loop that fills tensors in place, `places[row, :n] = ...`, moves into a function of its own, which is an operator that
changes these tensors. Eager mode calls the function, where the same text computes the same: the loop reads names that
are certainly bound, no name that it binds is read elsewhere, and it ends at its own end. The tensors have to be made
just before the loop, so that nothing else shares their memory; they and whatever the loop reads are arguments. What the
text of a module does not tell of these, such as that `self.step` is an integer that the instance itself holds, is asked
for while tracing.

No gradient goes through an operator, so trace-time conditions ask that no argument takes one, and that autocast does
nothing to it, but for what was just made of numbers: where one does, the loop breaks the graph as before. A loop that
changes anything else, draws random numbers, or calls more than torch, builtins and functions that only compute is left
alone. An operator hides its inside from the compiler: it is not fused with its surroundings, and waits for the device
as eager mode does. CUDA graphs are recorded around it, where torch is 2.9 or newer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import loop_functions, loop_outlining

rule = Rule(
    __name__,
    __doc__,
    title="run a data-dependent loop as one custom operator under torch.compile",
    contract=Contract(cost=Cost.OUTLINED, cost_note="the loop runs as it does in eager mode"),
)


@rule.on(ast.For)
def loop_over_chosen(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i in range(chosen.shape[0])` in a function outside of classes."""
    scope = site.evaluator.scope
    if scope.class_qualified is not None or "." in site.function or site.place.in_loop:
        return None
    if not loop_functions.depends_on_data(site, node.iter):
        return None
    message = f"data-dependent number of loop iterations: `{speculation.short(node.iter)}`"
    return _verdict(site, message, lambda: loop_functions.edit(site, scope.node))


@rule.on(ast.For, lines=loop_outlining.writes_of_elements)
def filling_loop(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, row in enumerate(mask): found[i, : row.sum()] = 1`."""
    filling = None if site.place.in_loop else loop_outlining.found(site, node)
    if filling is None:
        return None
    message = f"data-dependent loop that fills `{filling.filled[0]}`: `{speculation.short(filling.cause.node)}`"
    return _verdict(site, message, lambda: loop_outlining.edit(site, filling))


def _verdict(site: Site, message: str, edit: Callable[[], Edit]) -> Diagnostic:
    return judged(message, edit, AS_OPERATOR)
