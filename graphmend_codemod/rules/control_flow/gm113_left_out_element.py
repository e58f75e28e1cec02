"""left-out-element (GM113): a loop that leaves elements out of a list where a tensor says so.

A loss for each class skips those that do not occur, and takes the mean of the others:

```python
for c in classes:
    foreground = (labels == c).float()
    if foreground.sum() == 0:
        continue
    ...
    losses.append(loss)
return torch.stack(losses).mean()
```

The graph breaks at each class. The compile path computes an element for every round, keeps a flag beside it, and takes
the mean of those that eager mode has. What stands behind the test may only compute, followed into the functions that it
calls: it becomes an inner function, word for word, whose gradient is cut off where its element is left out. So where it
raises for shapes, dtypes or Python values, it raises for a round that eager mode leaves out as well. Each element has
to be one number of the same dtype, which is asked while tracing; the header asks that the function is given tensors
with elements, numbers, texts and None.

Means are `torch.stack(losses).mean()` and the `mean` that losses of Lovász come with. Where every element is left out,
the first raises an error, as in eager mode; the second gives a tensor that is 0 in place of the integer.

That is the work of every round, where eager mode does that of the classes which occur: a Lovász loss of 21 classes, 5
of which occur in 8,192 pixels, took twice as long, forward and backward, and its cold start 19 s in place of 4. Where
nearly all occur it is one graph for the same work. So it is an unsafe fix: `graphmend fix --unsafe-fixes` applies it.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.select import left_out

rule = Rule(
    __name__,
    __doc__,
    title="take the mean of the elements that a loop does not leave out",
    safety=Safety.UNSAFE,
    contract=Contract(
        cost=Cost.MULTIPLIED,
        cost_note="elements that are left out are computed as well: twice the time where 5 of 21 are kept",
        compiled_exceptions="those of rounds that are left out are raised while tracing; an empty list: RuntimeError",
    ),
)


@rule.on(ast.For, words=("append",), candidate="test")
def leaves_out(site: Site, node: ast.For) -> Diagnostic | None:
    """`for c in classes: if fg.sum() == 0: continue; ...; losses.append(loss)`."""
    found = left_out.loop_of(node)
    if found is None:
        return None
    where = site.at(found.branch)
    condition = split(where, found.branch.test) if where is not None else None
    if where is None or condition is None:
        return None
    message = f"leaves an element out of a list: `{speculation.short(found.branch.test)}`"
    return judged(message, lambda: left_out.edit(site, where, found, condition))._replace(node=found.branch.test)
