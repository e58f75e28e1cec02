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
from graphmend_codemod.core.findings import CompilePath, Edit, Original
from graphmend_codemod.rules.framework.edits import beside, judged
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.sizes.truncated_table import Table, TableReader, greatest_of

rule = Rule(
    __name__,
    __doc__,
    title="select rows before concatenating the parts of a table",
    contract=Contract(cost=Cost.NONE, compiled_exceptions="a row behind the part that is cut out is no error"),
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
    every = f"{fits} for {part} in {parts}"
    header = site.call(f"if {site.compiling} and all(", [every], after="):")
    path = CompilePath(header, [site.compiling, f"all({every})"]) + (
        f"\n    {_COMMENT}\n"
        f"    {table.name} = {torch}.cat(\n        [\n"
        f"            {rows}\n"
        f"            for {part} in {parts}\n        ],\n        dim=-1,\n    )\nelse:\n    "
    )
    last = site.span(table.statements[-1])
    span = site.span(node)._replace(end_line=last.end_line, end_column=last.end_column)
    return beside(site, span, (path, Original(span, 1)))
