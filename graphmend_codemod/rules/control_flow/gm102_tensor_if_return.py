"""tensor-if-return (GM102): a data-dependent early `return`.

The frame ends in two places and Dynamo cannot know which, so the graph breaks at the test. `torch.where` selects
between the two results on the device. The select goes in front of the original statements, under
`torch.compiler.is_compiling()` and the same conditions as for GM101; eager mode runs what was there. So does the
setting `one-path = true`.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Safety, Span
from graphmend_codemod.rules.framework.edits import in_front, one_path
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import (
    EIGHT_BITS,
    FLOAT_WARNING,
    Clean,
    Contract,
    Cost,
    Declined,
    Example,
    Rule,
    Verdict,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions import Condition, split
from graphmend_codemod.rules.proofs.select.assumptions import Facts
from graphmend_codemod.rules.proofs.select.select_proof import judge
from graphmend_codemod.rules.proofs.select.select_text import values_of, where
from graphmend_codemod.rules.proofs.select.selection import Arm, Assignment, Selection, under_static

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor = None):
        ...
"""

rule = Rule(
    code="GM102",
    slug="tensor-if-return",
    title="select the returned value with torch.where",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="both results are computed, and one is selected",
        compiled_logs=FLOAT_WARNING,
        compiled_exceptions=EIGHT_BITS,
    ),
    examples=(
        Example(
            before="""
            if x.isnan().any():
                return torch.nan_to_num(x)
            return x.clone()
            """,
            after="""
            if torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
                return torch.where(x.isnan().any(), torch.nan_to_num(x), x.clone())
            elif x.isnan().any():
                return torch.nan_to_num(x)
            return x.clone()
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)", "torch.full((3,), float('nan'))"),
        ),
        Example(
            before="""
            if x.sum() > 0:
                return x.sqrt()
            return x
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(x, torch.Tensor)
                and x.is_floating_point()
            ):
                condition = x.sum() > 0
                return torch.where(
                    condition, torch.where(condition, x, 1.0).sqrt(), x
                )
            elif x.sum() > 0:
                return x.sqrt()
            return x
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)", "-torch.ones(3)"),
        ),
        Declined(
            source="""
            if (x > 0).all():
                return None
            return x
            """,
            because="is a Python value in one branch",
            setup=_SETUP,
        ),
        Clean(
            source="""
            if mask is None:
                return x
            return x * 2
            """,
            setup=_SETUP,
        ),
    ),
)


_RESULT = "the result"


@rule.on(ast.If, candidate="test")
def early_return(site: Site, node: ast.If) -> Verdict | None:
    """`if t: return A` with `return B` in the `else` or right behind it."""
    if not (len(node.body) == 1 and isinstance(node.body[0], ast.Return)):
        return None
    if split(site, node.test) is None:
        return None
    message = f"data-dependent early return: `{speculation.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    try:
        exits, last = _exits(site, node)
        selection = Selection(site, node, under_static(site, exits), (_RESULT,))
        return _verdict(message, selection, judge(selection), last)
    except NotProven as reason:
        return Verdict(message, declined=str(reason))


def _exits(site: Site, node: ast.If) -> tuple[list[Arm], ast.stmt]:
    found: list[Arm] = []
    current: ast.stmt = node
    where_is: Site | None = site
    while isinstance(current, ast.If) and where_is is not None:
        condition = split(where_is, current.test)
        if condition is None or len(current.body) != 1:
            raise NotProven("the code after the branch is not a plain `return`")
        if found and condition.static:
            raise NotProven("a Python condition selects between later branches")
        found.append(_exit(condition, current.body[0], where_is.at(current.body[0]) or where_is))
        rest = current.orelse or where_is.following()
        if not rest:
            raise NotProven("the function continues after the branch without a `return`")
        current = rest[0]
        where_is = where_is.at(current)
    if where_is is None:
        raise NotProven("the code after the branch is not reached by torch.compile")
    return [*found, _exit(None, current, where_is)], current


def _exit(condition: Condition | None, statement: ast.stmt, site: Site) -> Arm:
    return Arm(condition, (Assignment(statement, _RESULT, _returned(statement)),), dict(site.place.env))


def _returned(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Return) and statement.value is not None:
        return statement.value
    if isinstance(statement, ast.Return):
        raise NotProven("one branch returns None")
    raise NotProven(
        f"`{speculation.short(statement)}` runs between the branch and the last `return`; "
        "manually compute both results and select with `torch.where`"
    )


def _verdict(message: str, selection: Selection, facts: Facts, last: ast.stmt) -> Verdict:
    site, node = selection.site, selection.node
    conditions = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts = [condition.choice for condition in conditions]
    static = [site.operand_of_and(operand) for operand in conditions[0].static]
    if site.settings.one_path and facts.one_path and not (static or site.is_elif(node)):
        whole = Span(node.lineno, node.col_offset, last.end_lineno or 0, last.end_col_offset or 0)
        end = site.span(node) if node.orelse else whole
        around = ast.Pass(
            lineno=end.start_line, col_offset=end.start_column, end_lineno=end.end_line, end_col_offset=end.end_column
        )
        comments = [part for comment in site.comments(around) for part in (comment, "\n")]
        select = where(site, "return ", texts, values_of(selection, facts, _RESULT, texts), 0)
        return Verdict(message, edit=one_path(site, end, (*comments, select)), safety=Safety.UNSAFE)
    named: list[str] = []
    if facts.cut:
        for position, text in enumerate(texts):
            texts[position] = site.free_name("condition" if len(texts) == 1 else f"condition_{position + 1}")
            named.append(f"{texts[position]} = {text}\n    ")
    select = where(site, "return ", texts, values_of(selection, facts, _RESULT, texts), 1)
    return Verdict(message, edit=in_front(site, node, [*static, *facts.conditions], [*named, select]))
