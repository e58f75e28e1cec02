"""cut-to-the-last (GM408): a table is cut behind the last row that is used, and then rows are picked.

`last = positions.max().item()` breaks the graph, to cut out the part of a table from which `torch.index_select` picks
rows by the same positions. Under `torch.compile` rows are picked in each part of the table, before the parts come side
by side; so nothing has to be cut off, and the whole table is never made. Eager mode keeps its text.

Matched is one form: parts `w[:, :n]` side by side in the last dimension, all dimensions between the first and the last
made one, and rows picked for each element of the batch. `torch.index_select` takes no negative index, so that the end
of the table does not matter.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.findings import Edit, Original, Replacement, Safety
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.blocks import Blocks
from graphmend_codemod.rules.site import Site

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(6, 1, 3)), nn.Parameter(torch.randn(1, 4, 2))])

    def forward(self, positions: torch.Tensor):
        count = positions.shape[0]
        parts = [weight.expand((count,) + (6, 4) + weight.shape[-1:]) for weight in self.weights]
        ...
        return table
"""

rule = Rule(
    code="GM408",
    slug="cut-to-the-last",
    title="pick rows before the parts of a table come side by side",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(compiled_exceptions="a row behind the part that is cut out is no error"),
    examples=(
        Example(
            before="""
            last = positions.max().item()
            columns = -(-(last + 1) // 4)
            # those that are used
            table = torch.cat([part[:, :columns] for part in parts], dim=-1)
            table = torch.reshape(table, (count, -1, table.shape[-1]))
            table = torch.cat(
                [torch.index_select(table[i], 0, positions[i]).unsqueeze(0) for i in range(count)], dim=0
            )
            """,
            after="""
            if torch.compiler.is_compiling() and all(part.dim() > 2 for part in parts):
                # Rows are picked in each part, so nothing has to be cut off by a number.
                table = torch.cat(
                    [
                        torch.stack(
                            [torch.index_select(part[i].flatten(0, -2), 0, positions[i]) for i in range(count)]
                        )
                        for part in parts
                    ],
                    dim=-1,
                )
            else:
                last = positions.max().item()
                columns = -(-(last + 1) // 4)
                # those that are used
                table = torch.cat([part[:, :columns] for part in parts], dim=-1)
                table = torch.reshape(table, (count, -1, table.shape[-1]))
                table = torch.cat(
                    [torch.index_select(table[i], 0, positions[i]).unsqueeze(0) for i in range(count)], dim=0
                )
            """,
            setup=_SETUP,
            inputs=("torch.tensor([[0, 1, 2], [5, 3, 9]])", "torch.tensor([[23, 0, 7]])"),
        ),
        Declined(
            source="""
            last = positions.max().item()
            table = torch.cat([part[:, :last] for part in parts], dim=-1)
            table = torch.reshape(table, (count, -1, table.shape[-1]))
            table = torch.stack([torch.index_select(table[i], 0, positions[i]) for i in range(count)])
            table = table + last
            """,
            because="`last` is used for more than the cut",
            setup=_SETUP,
        ),
        Declined(
            source="""
            last = positions.max().item()
            table = torch.cat([part[:, :last] for part in parts], dim=-1)
            table = torch.reshape(table, (count, -1, table.shape[-1]))
            table = torch.stack([torch.index_select(table[i], 0, positions[i]) for i in range(count)])
            """,
            because="`parts` may have another first size than `count`",
            setup=_SETUP.replace("(count,) + (6, 4)", "(1, 6, 4)"),
        ),
        Clean(
            source="""
            table = parts[0][:, : positions.shape[1]]
            """,
            setup=_SETUP,
        ),
    ),
)

_COMMENT = "# Rows are picked in each part, so nothing has to be cut off by a number."
_LAST = re.compile(r"(\w+) = (?:(\w+)\.max\(\)\.item\(\)|int\((\w+)\.max\(\)\))")
_CUT = re.compile(r"(\w+) = torch\.cat\(\[(\w+)\[:, :(\w+)\] for \2 in (\w+)\], dim=-1\)")
_ROWS = (
    re.compile(r"(\w+) = torch\.reshape\(\1, \((\w+), -1, \1\.shape\[-1\]\)\)"),
    re.compile(r"(\w+) = \1\.(?:reshape|view)\((\w+), -1, \1\.shape\[-1\]\)"),
)
_PICKED = (
    re.compile(
        r"(\w+) = torch\.cat\(\[torch\.index_select\((\w+)\[(\w+)\], 0, (\w+)\[\3\]\)\.unsqueeze\(0\) "
        r"for \3 in range\((\w+)\)\], dim=0\)"
    ),
    re.compile(
        r"(\w+) = torch\.stack\(\[torch\.index_select\((\w+)\[(\w+)\], 0, (\w+)\[\3\]\) for \3 in range\((\w+)\)\]\)"
    ),
)


@dataclass(frozen=True)
class _Table:
    """A table that is cut from `parts`, and of which rows are picked by `positions`, with the names in its text."""

    name: str
    part: str
    parts: str
    count: str
    index: str
    positions: str
    cut: str
    statements: tuple[ast.stmt, ...]


@rule.on(ast.Assign, words=("index_select",))
def cut_to_the_last(site: Site, node: ast.Assign) -> Verdict | None:
    """`last = positions.max().item()`, a table that is cut there, and rows of it."""
    found = _LAST.fullmatch(ast.unparse(node))
    if found is None or site.torch != "torch" or (table := _table(site, node, found)) is None:
        return None
    message = f"cuts a table by a number that is read back from the device: `{purity.short(node.value)}`"
    reason = _why_not(site, node, found[1], table)
    if reason is not None:
        return Verdict(message, declined=reason)
    return Verdict(message, edit=_edit(site, node, table))


def _table(site: Site, node: ast.Assign, found: re.Match[str]) -> _Table | None:
    following = site.following()
    cut = found[1]
    if following and isinstance(following[0], ast.Assign) and _CUT.fullmatch(ast.unparse(following[0])) is None:
        if not isinstance(following[0].targets[0], ast.Name) or len(following[0].targets) != 1:
            return None
        cut = following.pop(0).targets[0].id  # type: ignore[attr-defined]
    if len(following) < 3:
        return None
    made, shaped, picked = (ast.unparse(each) for each in following[:3])
    of_parts = _CUT.fullmatch(made)
    of_rows = next((each for form in _ROWS if (each := form.fullmatch(shaped)) is not None), None)
    of_picked = next((each for form in _PICKED if (each := form.fullmatch(picked)) is not None), None)
    if of_parts is None or of_rows is None or of_picked is None:
        return None
    name, part, bound, parts = of_parts.groups()
    target, source, index, positions, count = of_picked.groups()
    same = of_rows[1] == name == target == source and bound == cut and of_rows[2] == count
    if not same or positions != (found[2] or found[3]):
        return None
    between = site.following()[: len(site.following()) - len(following) + 3]
    return _Table(name, part, parts, count, index, positions, cut, tuple(between))


def _why_not(site: Site, node: ast.Assign, last: str, table: _Table) -> str | None:
    function = site.evaluator.scope.node
    inside = {id(part) for each in (node, *table.statements) for part in ast.walk(each)}
    for part in ast.walk(function):
        if isinstance(part, ast.Name) and part.id in {last, table.cut} and id(part) not in inside:
            return f"`{part.id}` is used for more than the cut"
    if table.cut != last:
        computed = table.statements[0]
        assert isinstance(computed, ast.Assign)
        if not all(isinstance(part, _ARITHMETIC) for part in ast.walk(computed.value)):
            return f"`{purity.short(computed)}` is no arithmetic"
    bound = Blocks(function).binding_before(node, table.parts)
    text = ast.unparse(bound.value) if bound is not None else ""
    expanded = re.fullmatch(rf"\[(\w+)\.expand\(\(?{table.count}(?:,\) \+|,) .*\) for \1 in [\w.]+\]", text)
    stores = [part for part in walk_scope(function) if isinstance(part, ast.Name) and part.id == table.count]
    if expanded is None or sum(isinstance(part.ctx, ast.Store) for part in stores) != 1:
        return f"`{table.parts}` may have another first size than `{table.count}`"
    return None


_ARITHMETIC = (
    ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip


def _edit(site: Site, node: ast.Assign, table: _Table) -> Edit:
    part, index = table.part, table.index
    row = f"torch.index_select({part}[{index}].flatten(0, -2), 0, {table.positions}[{index}])"
    header = f"if {site.compiling} and all({part}.dim() > 2 for {part} in {table.parts}):"
    rows = site.call("torch.stack(", [f"[{row} for {index} in range({table.count})]"], deeper=3)
    path = (
        f"{header}\n    {_COMMENT}\n    {table.name} = torch.cat(\n        [\n"
        f"            {rows}\n"
        f"            for {part} in {table.parts}\n        ],\n        dim=-1,\n    )\nelse:\n    "
    )
    last = site.span(table.statements[-1])
    span = replace(site.span(node), end_line=last.end_line, end_column=last.end_column)
    return Edit((Replacement(span, (path, Original(span, 1))),), imports=site.imports)
