"""tensor-if-assign (GM101): a data-dependent `if` whose branches only assign variables.

Dynamo cannot know the branch while it traces, so it ends the graph, waits for the device, and starts another graph
behind the test. `torch.where` computes both values and selects on the device.

The select goes in front, under `torch.compiler.is_compiling()`; the original branch stays behind it, word for word,
and eager mode runs it. The value that eager mode skips must have no effect, cost little and be unable to raise; a
tensor that a branch leaves alone must not be written in place later. Facts about tensors that the source does not
prove (that a value is a tensor, its dtype, its shape) become conditions next to `is_compiling()`: Dynamo folds them
while it traces, and where one does not hold, the original branch runs and breaks the graph as before. Where a skipped
derivative may be infinite, its arguments are selected as well, so that the gradient stays finite. Where the two values
lead to different parameters, the compile path is for `torch.no_grad()` alone: eager mode leaves the gradient of a
parameter that was not used None, and a select would make it zero. A test of more than one element raises another type
of exception when compiled. Tensors of 8-bit floats, for which torch lacks most operations, raise when compiled where
eager mode skips the operation.

Where a value's dtype or shape is known only once it is computed (`K.transpose(-1, -2) + K`), the compile path computes
the values under names of their own, compares them while tracing, and selects; where they differ, nothing was written,
and the branch runs as before. Operands that may not broadcast are asked for their shapes first.

A branch that writes elements (`x[i] = v`, `x[i] += v`) still writes in place when compiled, so that whoever shares the
memory sees it: elements get the values that they have where eager mode skips the write, and `x[mask] = v` writes under
`mask & test`. The test is computed before the first write. Indices have to be in range, and what is written has to fit,
where eager mode skips it. The tensor must not require gradients: an operation before may have saved it for its own.

A number that the test chooses (`scale = 1.0 if x.max() <= 1.0 else 255.0`) becomes a 0-dim tensor where it only meets
tensors of one floating dtype in arithmetic, on the device of the test. It gets their dtype, so theirs stays what it is;
what half precision does not hold exactly is for float32 and float64 alone.

Messages in a branch (`warnings.warn("cut off")`, also under `if self.verbose:`) are left out of the compile path, as
GM201 leaves them out elsewhere.

With the setting `one-path = true`, a select that eager mode cannot tell from the branch takes its place (an unsafe
fix). That saves a device sync in eager mode as well. It assumes that annotations and the layers that a constructor
makes are right, that no hook or subclass changes them, and that the sign of a zero gradient does not matter.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import CompilePath, Safety, Span
from graphmend_codemod.rules.framework.edits import beside, one_path, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import BRANCH_MESSAGES, EIGHT_BITS, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, known_flag, reads_tensor, split
from graphmend_codemod.rules.proofs.numbers.kept.chosen_numbers import chosen, kept_choice
from graphmend_codemod.rules.proofs.select import element_writes
from graphmend_codemod.rules.proofs.select.computed_select import computed_verdict, judge_computed
from graphmend_codemod.rules.proofs.select.select_proof import judge
from graphmend_codemod.rules.proofs.select.select_text import values_of, where
from graphmend_codemod.rules.proofs.select.selection import expression_selection, selection_of

rule = Rule(
    __name__,
    __doc__,
    title="select with torch.where instead of branching",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="both values are computed, and one is selected",
        compiled_logs=BRANCH_MESSAGES,
        compiled_exceptions=EIGHT_BITS,
        saves_masks=True,
    ),
)


@rule.on(ast.If, candidate="test")
def branch(site: Site, node: ast.If) -> Diagnostic | None:
    """An `if` statement on a tensor."""
    if (condition := split(site, node.test)) is None:
        return None
    message = f"data-dependent branch: `{speculation.short(node.test)}`"
    try:
        if (choice := chosen(site, node)) is not None:
            return Diagnostic(message, edit=kept_choice(site, node, condition, choice))
        if element_writes.writes_elements(node):
            return element_writes.diagnose(message, site, node)
        selection = selection_of(site, node)
        return computed_verdict(message, selection, judge_computed(selection))
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


@rule.on(ast.IfExp, candidate="test")
def conditional_expression(site: Site, node: ast.IfExp) -> Diagnostic | None:
    """`A if t else B`."""
    if not reads_tensor(site, node.test) or (condition := split(site, node.test)) is None:
        return None
    message = f"data-dependent conditional expression: `{speculation.short(node)}`"
    try:
        if (choice := chosen(site, node)) is not None:
            return Diagnostic(message, edit=kept_choice(site, node, condition, choice))
        return _expression_verdict(message, site, node, condition)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


def _expression_verdict(message: str, site: Site, node: ast.IfExp, condition: Condition) -> Diagnostic:
    for operand in condition.static:
        if known_flag(site, operand) is False:
            raise NotProven(f"`{site.text(operand)}` decides the test alone, as the class sets it")
    selection = expression_selection(site, node, condition)
    facts = judge(selection)
    values = values_of(selection, facts, selection.names[0], [condition.choice])
    select = where(site, "", [condition.choice], values, 0)
    if site.settings.one_path and facts.one_path and not condition.static:
        return Diagnostic(message, edit=one_path(site, site.span(node), (select,)), safety=Safety.UNSAFE)
    static = [site.operand_of_and(operand) for operand in condition.static]
    conditions = [site.compiling, *static, *facts.conditions]
    statement = site.place.statement
    if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is node:
        start = Span(statement.lineno, statement.col_offset, node.lineno, node.col_offset)
        before = site.source.segment(start)
        if statement.lineno == node.lineno and not before.rstrip().endswith("("):
            inner = where(site, before, [condition.choice], values, 1)
            return Diagnostic(message, edit=two_paths(site, statement, conditions, [inner], scriptable=True))
    header = " and ".join(conditions)
    line = site.source.line(node.lineno)
    if node.lineno != node.end_lineno or "\n" in select or len(line) + len(select) + len(header) > site.line_limit:
        raise NotProven("the rewritten line would be too long; assign the value to a variable first")
    parts = (CompilePath(f"({select} if {header} else (", conditions), site.original(node), "))")
    return Diagnostic(message, edit=beside(site, site.span(node), parts, scriptable=True))
