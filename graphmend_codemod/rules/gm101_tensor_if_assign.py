"""tensor-if-assign (GM101): an `if` on a tensor's value whose branches only choose what names hold.

Dynamo cannot know the branch while it traces, so it ends the graph, waits for the device, and starts another graph
behind the test. `torch.where` computes both values and selects on the device.

The select replaces the branch where the source proves that eager cannot tell: both values are tensors of one dtype
and one shape, computing the one that eager skips has no effect, cannot raise and is cheap, its derivative is finite,
and nothing else refers to a tensor that is now replaced by a copy (the sign of a zero gradient may differ). Otherwise
the select stands under `torch.compiler.is_compiling()` with the facts that it needs, and the original branch stays
behind it, word for word.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import purity
from graphmend_codemod.findings import Edit, Replacement, Safety, Span
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.conditions import Condition, reads_tensor, split
from graphmend_codemod.rules.selection import NotSelectable, expression_selection, select_edit, selection_of, where
from graphmend_codemod.rules.site import Site

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor, use_mask: bool = False):
        ...
        return x
"""

rule = Rule(
    code="GM101",
    slug="tensor-if-assign",
    title="select with torch.where instead of branching",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(),
    examples=(
        Example(
            before="""
            x = self.norm(x)
            if x.dtype == torch.float32 and (x.mean() > 0.5):
                x = torch.clamp(x, max=0.5)
            """,
            after="""
            x = self.norm(x)
            if x.dtype == torch.float32:
                x = torch.where(x.mean() > 0.5, torch.clamp(x, max=0.5), x)
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4)", "torch.zeros(2, 4) - 3"),
        ),
        Example(
            before="""
            if x.sum() > 0:
                x = x * 2.0
            else:
                x = x - 1.0
            """,
            after="""
            if torch.compiler.is_compiling() and x.is_floating_point():
                x = torch.where(x.sum() > 0, x * 2.0, x - 1.0)
            elif x.sum() > 0:
                x = x * 2.0
            else:
                x = x - 1.0
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4)", "-torch.ones(2, 4)"),
        ),
        Declined(
            source="""
            if x.sum() > 0:
                x = self.linear(x)
            """,
            because="may have effects or be costly",
            setup=_SETUP,
        ),
        Declined(
            source="""
            if x.sum() > 0:
                x = x[:, :2]
            """,
            because="may have another shape in each branch",
            setup=_SETUP,
        ),
        Clean(
            source="""
            if use_mask and x.dim() == 2:
                x = x * 2
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(ast.If, candidate="test")
def branch(site: Site, node: ast.If) -> Verdict | None:
    """An `if` statement on a tensor."""
    if split(site, node.test) is None:
        return None
    message = f"branches on the value of a tensor: `{purity.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    try:
        selection = selection_of(site, node)
        return Verdict(message, edit=select_edit(selection, selection.judge()))
    except NotSelectable as reason:
        return Verdict(message, declined=str(reason))


@rule.on(ast.IfExp, candidate="test")
def conditional_expression(site: Site, node: ast.IfExp) -> Verdict | None:
    """`A if t else B`."""
    if not reads_tensor(site, node.test) or (condition := split(site, node.test)) is None:
        return None
    message = f"chooses by the value of a tensor: `{purity.short(node)}`"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    try:
        return Verdict(message, edit=_expression_edit(site, node, condition))
    except NotSelectable as reason:
        return Verdict(message, declined=str(reason))


def _expression_edit(site: Site, node: ast.IfExp, condition: Condition) -> Edit:
    if condition.several:
        raise NotSelectable(f"`{condition.several}` may hold more than one element")
    facts = expression_selection(site, node, condition).judge()
    select = where(site, "", [condition.text], [site.text(node.body), site.text(node.orelse)], 0)
    if facts.one_path and not condition.static:
        return Edit((Replacement(site.span(node), (select,)),), imports=site.imports)
    static = [site.operand_of_and(operand) for operand in condition.static]
    conditions = [site.compiling, *static, *facts.conditions]
    statement = site.place.statement
    if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is node:
        start = Span(statement.lineno, statement.col_offset, node.lineno, node.col_offset)
        before = site.source.segment(start)
        if statement.lineno == node.lineno and not before.rstrip().endswith("("):
            inner = where(site, before, [condition.text], [site.text(node.body), site.text(node.orelse)], 1)
            two_paths = (f"{site.header('if', conditions)}\n    {inner}\nelse:\n    ", site.original(statement, 1))
            return Edit((Replacement(site.span(statement), two_paths),), imports=site.imports)
    header = " and ".join(conditions)
    line = site.source.line(node.lineno)
    if node.lineno != node.end_lineno or "\n" in select or len(line) + len(select) + len(header) > site.line_limit:
        raise NotSelectable("the compile path would make the line too long to read")
    parts = (f"({select} if {header} else (", site.original(node), "))")
    return Edit((Replacement(site.span(node), parts),), imports=site.imports)
