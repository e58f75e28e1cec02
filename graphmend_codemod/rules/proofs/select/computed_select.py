"""Selects whose values have to be computed before it is known that they have one dtype and one shape.

The compile path computes them under names of their own, asks while tracing whether they agree, and only then selects.
Where they do not, nothing was written, and the author's statement runs as it did.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.values import SCALAR, Value
from graphmend_codemod.rules.framework.edits import computed_in_front
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition
from graphmend_codemod.rules.proofs.select.assumptions import Assumption, Facts, is_dotted
from graphmend_codemod.rules.proofs.select.gradient_sources import gradient_leaves
from graphmend_codemod.rules.proofs.select.select_proof import SelectProof, judge, judged
from graphmend_codemod.rules.proofs.select.select_text import select_verdict, values_of, where
from graphmend_codemod.rules.proofs.select.selection import Assignment, Selection


class ComputedProof(SelectProof):
    """Judges all but whether the values have one dtype and one shape: `compared` are the names where that is asked."""

    def __init__(self, selection: Selection, assumed: tuple[Assumption, ...]) -> None:
        super().__init__(selection, assumed)
        self.compared: list[str] = []

    def compare_form(self, name: str, branches: list[tuple[ast.expr, Value]]) -> None:
        """Note where dtype or shape may differ."""
        (_, first), *others = branches
        for _, value in others:
            if self._can_not_agree(first, value):
                super().compare_form(name, branches)  # which has the words for it
        if any(None in one or one != other for _, value in others for one, other in [(_form(first), _form(value))]):
            self.compared.append(name)

    def _can_not_agree(self, one: Value, other: Value) -> bool:
        """True where two values agree in no call, or only in calls that make a branch pointless."""
        for what, concrete in (("dtype", "torch."), ("shape", SCALAR)):
            pair = getattr(one, what), getattr(other, what)
            fixed = [str(each).startswith(concrete) for each in pair]
            if pair[0] == pair[1] or not any(fixed) or None in pair:
                continue
            spelled = [self._spelled(what, each) for each in pair]
            if all(fixed) or (what == "shape" and any(spelled)):
                return True
            named = sorted((text for text in spelled if text), key=lambda text: text.startswith(concrete))
            if len(named) == 2 and self._casts(Assumption(what, *named)):
                return True
        return False

    def floating(self) -> frozenset[str]:
        """Those without which something raises, for dtypes are compared; all where that is not a name."""
        strict = self.hazards.strict
        return strict if all(map(is_dotted, strict)) else self.hazards.needs_floating

    def judge_value(self, position: int, item: Assignment, env: Env) -> None:
        """As for other selects, but that no floating dtype is asked for the sake of a derivative."""
        found = speculation.judge(self.site.evaluator, item.value, env)
        self.hazards = self.hazards & found._replace(finite=True)
        leaves = [] if found.finite else gradient_leaves(self.site, item.value, env)
        if found.finite:
            return
        if item.name in self.selection.names and all(
            self.site.evaluator.value(each, env).is_floating for each in leaves
        ):
            self.cut.add((position, item.name))
        else:
            self.endless = True

    def result(self) -> Facts:
        """The facts, with the names whose values have to be compared."""
        for arm in self.selection.arms:
            for item in arm.assignments:
                _demand_traceable(item.value)
        facts = super().result()
        cut = frozenset() if self.endless or self.other_leaves else facts.cut  # then it is for code without gradients
        return facts._replace(one_path=False, compared=tuple(self.compared), cut=cut)


def _form(value: Value) -> tuple[str | None, str | None]:
    return value.dtype, value.shape


def _demand_traceable(node: ast.expr) -> None:
    """NotProven for a new leaf, `torch.tensor(0.0, requires_grad=True)`, which Dynamo makes outside of the graph."""
    for part in ast.walk(node):
        if isinstance(part, ast.keyword) and part.arg == "requires_grad":
            raise NotProven("a tensor that is made with `requires_grad` is no part of the graph")


def judge_computed(selection: Selection, *, rather: bool = False) -> Facts:
    """`judge`, or where that fails for what the header cannot ask, the facts with names that are `compared`.

    With `rather`, also where the header would ask for exactly float32, so that other dtypes fit as well.
    """
    try:
        facts = judge(selection)
    except NotProven as reason:
        try:
            facts = judged(selection, ComputedProof).result()
        except NotProven:
            raise reason from None
        if not facts.compared:
            raise
        return facts
    if rather and any(each.endswith(".dtype == torch.float32") for each in facts.conditions):
        with contextlib.suppress(NotProven):
            return judged(selection, ComputedProof).result()
    return facts


def computed_verdict(message: str, selection: Selection, facts: Facts) -> Diagnostic:
    """The diagnostic with the edit: what `select_verdict` writes, or values that are computed and compared first."""
    if not facts.compared:
        return select_verdict(message, selection, facts)
    site, node = selection.site, selection.node
    if site.is_elif(node):
        raise NotProven("the values of its branches have to be compared first, and an `elif` leaves no place for that")
    for item in selection.temporaries:
        if item.name in site.place.env or item.name in all_names(node.test):
            raise NotProven(f"`{item.name}` is bound before the branch; give what the branch computes another name")
    chain = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts, lines = named_conditions(site, chain)
    lines += [site.text(item.statement) for item in selection.temporaries]
    facts_asked: list[str] = []
    selects: list[str] = []
    for name in selection.names:
        values = values_of(selection, facts, name, texts)
        if name in facts.compared:
            values = named_values(site, name, values, lines)
            facts_asked += alike(values, texts[0])
        selects.append(where(site, f"{name} = ", texts, values, 1))
    static = [site.operand_of_and(operand) for operand in chain[0].static]
    return Diagnostic(
        message, edit=computed_in_front(site, node, [*static, *facts.conditions], lines, facts_asked, selects)
    )


def named_conditions(site: Site, chain: Sequence[Condition]) -> tuple[list[str], list[str]]:
    """Names for the conditions, and the lines that bind them."""
    names = [
        site.free_name("condition" if len(chain) == 1 else f"condition_{number}") for number in range(1, len(chain) + 1)
    ]
    return names, [f"{name} = {each.choice}" for name, each in zip(names, chain, strict=True)]


def named_values(site: Site, name: str, values: Sequence[str], lines: list[str]) -> list[str]:
    """Names for the values of a select; what is no name already is bound by a new line."""
    found: list[str] = []
    for number, text in enumerate(values, 1):
        if not text.isidentifier():
            local = site.free_name(f"{name}_{number}")
            before, given = _split_call(text)
            lines.append(site.call(f"{local} = {before}", given, deeper=1) if given else f"{local} = {text}")
            found.append(local)
        else:
            found.append(text)
    return found


def _split_call(text: str) -> tuple[str, list[str]]:
    """`torch.where(` and its arguments; no arguments for what is no call of a name."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or node.keywords or not node.args or not text.isascii() or "\n" in text:
        return text, []
    given = [ast.get_source_segment(text, each) or "" for each in node.args]
    before = text[: node.args[0].col_offset]
    exact = f"{before}{', '.join(given)})" == text
    return (before, given) if exact else (text, [])


def alike(values: Sequence[str], condition: str) -> list[str]:
    """The conditions that tensors have one shape, dtype and device, which is that of the condition that selects.

    A single number on a CPU goes along with any device, and the result would be there.
    """
    forms = [f"({each}.shape, {each}.dtype, {each}.device)" for each in dict.fromkeys(values)]
    one_device = f"{values[0]}.device == {condition}.device"
    return [*(f"{one} == {other}" for one, other in itertools.pairwise(forms)), one_device]
