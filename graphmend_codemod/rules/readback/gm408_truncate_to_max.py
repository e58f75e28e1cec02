"""truncate-to-max (GM408): a table is truncated to the largest index (device sync) before rows are selected.

`last = positions.max().item()` breaks the graph, to cut out the part of a table from which `torch.index_select` picks
rows by the same positions. Under `torch.compile` rows are picked in each part of the table, before the parts come side
by side; so nothing has to be cut off, and the whole table is never made. Eager mode keeps its text.

What is matched: parts `w[:, :n]` side by side in the last dimension, all dimensions between the first and the last
made one, and rows picked for each element of the batch. `torch.index_select` takes no negative index, so that the end
of the table does not matter; indexing does, and is the reason for leaving the cut.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.core.findings import Edit, Original, Safety
from graphmend_codemod.rules.framework.edits import beside, judged
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Diagnostic, Example, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.sizes.truncated_table import Table, TableReader, greatest_of

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
    slug="truncate-to-max",
    title="select rows before concatenating the parts of a table",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(cost=Cost.NONE, compiled_exceptions="a row behind the part that is cut out is no error"),
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
            if torch.compiler.is_compiling() and all(part.dim() > 2 and part.shape[0] == count for part in parts):
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
            table = torch.stack([table[i][positions[i]] for i in range(count)])
            other = torch.index_select(table, 0, positions[0])
            """,
            because="`table[i][positions[i]]` is not a `torch.index_select` of a row of the table",
            setup=_SETUP,
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


@rule.on(ast.Assign, words=("index_select",))
def cut_to_the_last(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`last = positions.max().item()`, a table that is cut there, and rows of it."""
    found = [each for part in walk_in_layers(node.value) if (each := greatest_of(site, part)) is not None]
    if not found or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    read, positions = found[0]
    reader = TableReader(site, node, node.targets[0].id, read, positions)
    if not reader.is_cut():
        return None
    message = f"truncates a table to a size read from a tensor (device sync): `{speculation.short(node.value)}`"
    return judged(message, lambda: _edit(site, node, reader.table()))


def _edit(site: Site, node: ast.Assign, table: Table) -> Edit:
    torch, part, index = site.torch, table.part, table.index
    count, positions, parts = (site.text(each) for each in (table.count, table.positions, table.parts))
    row = f"{torch}.index_select({part}[{index}].flatten(0, -2), 0, {positions}[{index}])"
    fits = f"{part}.dim() > 2 and {part}.shape[0] == {count}"
    rows = site.call(f"{torch}.stack(", [f"[{row} for {index} in range({count})]"], deeper=3)
    header = site.call(f"if {site.compiling} and all(", [f"{fits} for {part} in {parts}"], after="):")
    path = (
        f"{header}\n    {_COMMENT}\n"
        f"    {table.name} = {torch}.cat(\n        [\n"
        f"            {rows}\n"
        f"            for {part} in {parts}\n        ],\n        dim=-1,\n    )\nelse:\n    "
    )
    last = site.span(table.statements[-1])
    span = site.span(node)._replace(end_line=last.end_line, end_column=last.end_column)
    return beside(site, span, (path, Original(span, 1)))
