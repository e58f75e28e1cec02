"""tensor-while (GM107): a `while` loop with a data-dependent condition.

Every round reads the test back to Python, so the graph breaks in each of them. torch has a loop for graphs, but not yet
under a public name, and it needs a body without side effects whose values keep their shapes. By hand: bound the number
of rounds and select with `torch.where`, or keep the loop outside of what is compiled and compile its body.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split

rule = Rule(
    __name__,
    __doc__,
    title="bound the iterations of a data-dependent loop",
    safety=Safety.ADVICE,
    contract=Contract(cost=Cost.NONE),
)


@rule.on(ast.While, candidate="test")
def loop_on_tensor(site: Site, node: ast.While) -> Diagnostic | None:
    """`while t:`."""
    if split(site, node.test) is None:
        return None
    return Diagnostic(
        f"data-dependent `while` loop: `{speculation.short(node.test)}`",
        declined=(
            "no rewrite for data-dependent loops; "
            "manually bound the number of iterations and select with `torch.where`, or compile only the loop body"
        ),
    )
