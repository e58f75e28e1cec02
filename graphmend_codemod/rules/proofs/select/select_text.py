"""How a select is written: in front of the branches that it stands for, or in their place where that was asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphmend_codemod.core.findings import Original, Safety
from graphmend_codemod.rules.framework.edits import in_front, one_path
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition
from graphmend_codemod.rules.proofs.conditions.skipped_operands import tested
from graphmend_codemod.rules.proofs.select.assumptions import Facts
from graphmend_codemod.rules.proofs.select.gradient_sources import gradient_leaves
from graphmend_codemod.rules.proofs.select.selection import Selection


def select_verdict(message: str, selection: Selection, facts: Facts) -> Diagnostic:
    """The diagnostic with the edit: two paths, or one where the settings ask for it and eager mode cannot tell."""
    site, node = selection.site, selection.node
    first = selection.arms[0].condition
    assert first is not None
    static = [site.operand_of_and(operand) for operand in first.static]
    if site.settings.one_path and facts.one_path and not site.is_elif(node):
        kept = tuple(item.statement for item in selection.temporaries)
        comments = [part for comment in site.comments(node, kept) for part in (comment, "\n")]
        lines = _lines(selection, facts, 1 if static else 0)
        header = (f"if {' and '.join(static)}:\n    ",) if static else ()
        edit = one_path(site, site.span(node), (*comments, *header, *lines))
        return Diagnostic(message, edit=edit, safety=Safety.UNSAFE)
    later = _asked_below(site, node, first, facts)
    if later:
        # In the header and false, Dynamo would come to the test itself, and read the tensor first.
        asked = [*(text for text in static if text not in later), *facts.conditions]
        inner = f"if {' and '.join(later)}:\n        "
        return Diagnostic(message, edit=in_front(site, node, asked, [inner, *_lines(selection, facts, 2)]))
    return Diagnostic(message, edit=in_front(site, node, [*static, *facts.conditions], _lines(selection, facts, 1)))


def _asked_below(site: Site, node: ast.If, condition: Condition, facts: Facts) -> list[str]:
    """Static parts behind a tensor where nothing happens unless they hold; none where the facts take them for granted.

    They are asked below the header of the compile path, which then covers the calls where one of them is false too.
    """
    parts = node.test.values if isinstance(node.test, ast.BoolOp) and not node.orelse else []
    number = next((number for number, part in enumerate(parts) if part not in condition.static), len(parts))
    later = [part for part in parts[number:] if part in condition.static]
    words = {word for text in facts.conditions for word in re.findall(r"\w+", text)} - {site.evaluator.scope.self_name}
    granted = any(words & set(re.findall(r"\w+", site.text(part))) for part in later)
    # Where they do not hold, eager mode computes the tensors all the same, and raises what they raise.
    judged = [site.judge(tested(site, part)) for part in condition.tensors]
    raises = any(each.raises is not None or each.needs_shapes or each.needs_floating for each in judged)
    return (
        [] if granted or raises or condition.choice != condition.text else [site.operand_of_and(part) for part in later]
    )


def _lines(selection: Selection, facts: Facts, depth: int) -> list[str | Original]:
    site = selection.site
    newline = "\n" + "    " * depth
    parts: list[str | Original] = []
    for item in selection.temporaries:
        parts += [site.original(item.statement, depth - 1), newline]
    chain = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts = [condition.choice for condition in chain]
    names, tested = selection.names, list[str | Original]()
    if len(names) > 1 or facts.cut or selection.tests_again:
        for position, text in enumerate(texts):
            name = site.free_name("condition" if len(texts) == 1 else f"condition_{position + 1}")
            tested += [f"{name} = {text}", newline]
            texts[position] = name
    parts = [*tested, *parts] if selection.tests_again else [*parts, *tested]
    for name in names:
        values = values_of(selection, facts, name, texts)
        parts += [where(site, f"{name} = ", texts, values, depth), newline]
    return parts[:-1]


def values_of(selection: Selection, facts: Facts, name: str, texts: Sequence[str]) -> list[str]:
    """What `name` is after each branch, as text; `texts` are the conditions."""
    site, found = selection.site, []
    for position, arm in enumerate(selection.arms):
        node = selection.value_of(arm, name)
        if (position, name) in facts.cut:
            leaves = {
                id(leaf): (leaf, where_taken(site, site.text(leaf), position, texts))
                for leaf in gradient_leaves(site, node, arm.env)
            }
            found.append(site.but(written=leaves).text(node))
        else:
            found.append(site.text(node) if hasattr(node, "lineno") else ast.unparse(node))
    return found


def where_taken(site: Site, text: str, position: int, texts: Sequence[str]) -> str:
    """`text` where this branch is taken, else 1: no gradient gets through to it from a branch that is not taken."""
    if position < len(texts):
        text = f"{site.torch}.where({texts[position]}, {text}, 1.0)"
    for condition in reversed(texts[:position]):
        text = f"{site.torch}.where({condition}, 1.0, {text})"
    return text


def where(site: Site, before: str, conditions: Sequence[str], values: Sequence[str], depth: int) -> str:
    """`before` and the nested `torch.where` of `conditions` over `values`, one value more than conditions."""
    text = values[-1]
    for condition, value in zip(reversed(conditions[1:]), reversed(values[1:-1]), strict=True):
        text = f"{site.torch}.where({condition}, {value}, {text})"
    return site.call(f"{before}{site.torch}.where(", [conditions[0], values[0], text], deeper=depth)
