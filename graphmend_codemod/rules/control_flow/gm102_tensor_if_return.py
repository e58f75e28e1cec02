"""tensor-if-return (GM102): a data-dependent early `return`.

The frame ends in two places and Dynamo cannot know which, so the graph breaks at the test. `torch.where` selects
between the two results on the device. The select goes in front of the original statements, under
`torch.compiler.is_compiling()` and the same conditions as for GM101, and without messages that the branch sends; eager
mode runs what was there.

Assignments between the branches and before the last `return` (`y = f(x)`, `a, b = x.max(dim=1)`), and those in front of
an early `return`, are computed in any case: what is returned has to depend on each of them, and they may have no
effects either. Where dtype or shape of a result are known only once it is computed, the compile path computes all
results under names of their own, compares them while tracing, and runs the author's statements where they differ.

Losses begin like this one, and what follows has branches, checks and calls of functions under decorators:

```python
if weight is not None and not torch.any(weight > 0):
    return (pred * weight).sum()
```

Where the branch and all that the function does behind it only compute, followed into the functions that they call, the
compile path holds both as inner functions, word for word, and selects. They may not change anything, draw random
numbers, or do what raises for some elements of a tensor (`gather`, `cross_entropy`, `x[mask]`). The compile path asks
that they are given tensors with elements, numbers, texts and None, and that no attribute which they read takes a
gradient; gradients are cut off at what they are given. What is returned is compared while tracing. So where the rest
of the function raises for shapes, dtypes or Python values, it raises while it is traced, although eager mode may return
before that; and a warning that it sends is sent then.
"""

from __future__ import annotations

import ast
import contextlib

from graphmend_codemod.analysis import speculation
from graphmend_codemod.rules.framework.conditions import names_in, renamed
from graphmend_codemod.rules.framework.edits import computed_in_front, in_front
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import BRANCH_MESSAGES, EIGHT_BITS, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.logging.log_guard import without_messages
from graphmend_codemod.rules.proofs.select import rest_of_function
from graphmend_codemod.rules.proofs.select.assumptions import Facts
from graphmend_codemod.rules.proofs.select.computed_select import alike, judge_computed
from graphmend_codemod.rules.proofs.select.early_returns import RESULT, EarlyReturns, Exit, bound_by
from graphmend_codemod.rules.proofs.select.gradient_sources import gradient_leaves
from graphmend_codemod.rules.proofs.select.select_proof import ResultsDiffer
from graphmend_codemod.rules.proofs.select.select_text import values_of, where, where_taken
from graphmend_codemod.rules.proofs.select.selection import Selection

rule = Rule(
    __name__,
    __doc__,
    title="select the returned value with torch.where",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="both results are computed, and one is selected",
        compiled_logs=BRANCH_MESSAGES,
        compiled_exceptions=f"{EIGHT_BITS}; those of a rest with branches or calls, for shapes, dtypes and "
        "Python values, while it is traced",
        saves_masks=True,
    ),
)


@rule.on(ast.If, candidate="test")
def early_return(site: Site, node: ast.If) -> Diagnostic | None:
    """`if t: return A` with `return B` in the `else` or behind it."""
    *before, end = without_messages(site, node.body) or [node.body[-1]]
    condition = split(site, node.test) if isinstance(end, ast.Return) else None
    if condition is None:
        return None
    message = f"data-dependent early return: `{speculation.short(node.test)}`"
    if not all(map(bound_by, before)):
        if not rest_of_function.is_taken(node):
            return None
        with contextlib.suppress(NotProven):
            return Diagnostic(message, edit=rest_of_function.edit(site, node, condition))
        return None
    try:
        returns = EarlyReturns(site, node)
        selection = returns.selection()
        facts = _asked_before(returns, judge_computed(selection, rather=returns.has_statements))
        return _verdict(message, returns, selection, facts)
    except NotProven as reason:
        if rest_of_function.is_taken(node) and not isinstance(reason, ResultsDiffer):
            with contextlib.suppress(NotProven):
                return Diagnostic(message, edit=rest_of_function.edit(site, node, condition))
        return Diagnostic(message, declined=str(reason))


def _asked_before(returns: EarlyReturns, facts: Facts) -> Facts:
    """The facts where statements run between the branches and the last `return`."""
    if not returns.has_statements:
        return facts
    site, names = returns.site, returns.assigned
    late = [text for each in returns.exits if each.late and each.condition for text in each.condition.facts]
    for conditions, taken in ((facts.conditions, names - set(site.place.env)), (late, names)):
        for name in sorted(names_in(conditions) & taken):
            raise NotProven(f"`{name}` is assigned after the branch, and the compile path has to ask for it before")
    off: tuple[str, ...] = ()
    if any(_cuts_deep(returns, number) for number, name in facts.cut if name == RESULT):
        off = (f"not {site.torch}.is_grad_enabled()",)
    return facts._replace(conditions=tuple(dict.fromkeys([*facts.conditions, *off])))


def _cuts_deep(returns: EarlyReturns, number: int) -> bool:
    """True where what a result is computed of would have to be selected before it is known which branch is taken."""
    found = returns.exits[number]
    if found.plain:
        return False
    last = found.condition is None and not any(each.late for each in returns.exits[:-1])
    return not last or any(not isinstance(each, ast.Name) for each in _leaves(returns.site, found))


def _leaves(site: Site, found: Exit) -> list[ast.expr]:
    return gradient_leaves(site, found.value, found.env)


def _verdict(message: str, returns: EarlyReturns, selection: Selection, facts: Facts) -> Diagnostic:
    site, node = selection.site, selection.node
    conditions = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts = [condition.choice for condition in conditions]
    static = [site.operand_of_and(operand) for operand in conditions[0].static]
    if facts.compared and site.is_elif(node):
        raise NotProven("the results have to be compared first, and an `elif` leaves no place for that")
    asked = [*static, *facts.conditions]
    if not (facts.cut or facts.compared or returns.has_statements):
        select = where(site, "return ", texts, values_of(selection, facts, RESULT, texts), 1)
        return Diagnostic(message, edit=in_front(site, node, asked, [select]))
    written = _Written(returns, selection, facts)
    select = where(site, "return ", written.conditions, written.values, 1)
    if facts.compared:
        edit = computed_in_front(
            site, node, asked, written.lines, alike(written.values, written.conditions[0]), [select]
        )
        return Diagnostic(message, edit=edit)
    return Diagnostic(message, edit=in_front(site, node, asked, [*(f"{line}\n    " for line in written.lines), select]))


class _Written:
    """The lines that compute conditions and results, and the names that they have."""

    def __init__(self, returns: EarlyReturns, selection: Selection, facts: Facts) -> None:
        self.site, self.returns, self.facts = returns.site, returns, facts
        count = len(returns.exits) - 1
        self.conditions = [self._numbered("condition", number, count) for number in range(count)]
        self.values = values_of(selection, facts, RESULT, self.conditions)
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._early: list[str] = []
        self._is_cut = False
        number = 0
        for step in returns.steps:
            if isinstance(step, Exit):
                self._exit(number, count, step)
                number += 1
            else:
                self._statement(step)
        self.lines += self._early

    def _numbered(self, stem: str, number: int, count: int) -> str:
        return self.site.free_name(stem if count == 1 else f"{stem}_{number + 1}")

    def _exit(self, number: int, count: int, found: Exit) -> None:
        if found.condition is not None:
            tests = found.condition.choice
            self.lines.append(f"{self.conditions[number]} = {renamed(tests, self._names)}")
        names = dict(self._names)
        for each in found.before:
            self._early.append(self._bound_anew(each, names, "early" if count == 1 else f"early_{number + 1}"))
        if found.before or (found.late and names):
            self.values[number] = self._renamed(found.returned, names)
        elif found.late:
            self.values[number] = self.site.text(found.returned)
        if not (self.facts.compared or self.returns.has_statements):
            return
        last = found.condition is None
        if (not self.values[number].isidentifier()) if self.facts.compared else not last:
            name = self.site.free_name("late") if last else self._numbered("early", number, count)
            self._early.append(f"{name} = {self.values[number]}")
            self.values[number] = name

    def _statement(self, statement: ast.stmt) -> None:
        # What is returned early reads names as they are before they are assigned again.
        self.lines += self._early
        self._early = []
        last = self.returns.exits[-1]
        if not self._is_cut and (len(self.returns.exits) - 1, RESULT) in self.facts.cut:
            leaves = dict.fromkeys(each.id for each in _leaves(self.site, last) if isinstance(each, ast.Name))
            deep = _cuts_deep(self.returns, len(self.returns.exits) - 1)
            for name in () if deep else leaves:
                local = self.site.free_name(f"late_{name}") if self.facts.compared else name
                self.lines.append(f"{local} = {where_taken(self.site, name, len(self.conditions), self.conditions)}")
                self._names |= {name: local} if self.facts.compared else {}
        self._is_cut = True
        if self.facts.compared:
            self.lines.append(self._bound_anew(statement, self._names, "late"))
        else:
            self.lines.append(self.site.text(statement))

    def _bound_anew(self, statement: ast.stmt, names: dict[str, str], stem: str) -> str:
        """The assignment with other names for what it binds: the author's statements may still have to run."""
        value = self._renamed(statement.value, names)  # type: ignore[attr-defined]
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target  # type: ignore[attr-defined]
        bound = {name: self.site.free_name(f"{stem}_{name}") for name, _ in bound_by(statement)}
        names |= bound
        return f"{self._renamed(target, bound)} = {value}"

    def _renamed(self, node: ast.expr, names: dict[str, str]) -> str:
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in names]
        return self.site.but(written={id(part): (part, names[part.id]) for part in parts}).text(node)
