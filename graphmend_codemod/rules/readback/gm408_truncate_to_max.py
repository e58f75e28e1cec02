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
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import elements_of, is_name, is_none, is_within, names_beyond, same
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import CompilePath, Edit, Original
from graphmend_codemod.rules.framework.edits import beside, judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks

rule = Rule(
    __name__,
    __doc__,
    title="select rows before concatenating the parts of a table",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="a row behind the part that is cut out is no error; where all positions are negative, "
        "torch's own IndexError takes the place of a RuntimeError",
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
    every = f"{fits} for {part} in {parts}"
    header = site.call(f"if {site.compiling} and all(", [every], after="):")
    path = CompilePath(header, [site.compiling, f"all({every})"]) + (
        f"\n    {_COMMENT}\n"
        f"    {table.name} = {torch}.cat(\n        [\n"
        f"            {rows}\n"
        f"            for {part} in {parts}\n        ],\n        dim=-1,\n    )\nelse:\n    "
    )
    span = site.span(node).through(site.span(table.statements[-1]))
    return beside(site, span, (path, Original(span, 1)))


# Tables that are cut behind the greatest position and read by `torch.index_select`: what their statements say

_ARITHMETIC = (
    ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip
_JOINS = frozenset({"cat", "concat", "concatenate"})


@dataclass(frozen=True)
class Table:
    """`name` holds the rows at `positions`, for each `index` below `count`, of `part`s side by side."""

    name: str
    part: str
    parts: ast.expr
    count: ast.expr
    index: str
    positions: ast.expr
    statements: tuple[ast.stmt, ...]


def greatest_of(site: Site, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The whole and `x` for `x.max().item()`, `int(torch.max(x))` and the like; None where there is none."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if is_name(node.func, "int") and len(node.args) == 1:
        inner = greatest_of(site, node.args[0])
        read: ast.expr = node.args[0]
        if inner is not None:
            return node, inner[1]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        read = node.func.value
    else:
        return None
    called = _called(site, read)
    return (node, called[1][0]) if called is not None and called[0] in {"max", "amax"} and len(called[1]) == 1 else None


def _called(site: Site, node: ast.expr) -> tuple[str, list[ast.expr], dict[str, ast.expr]] | None:
    """Name, operands and keywords of a function of torch or a method; None for other expressions."""
    if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
        return None
    words = {word.arg: word.value for word in node.keywords if word.arg is not None}
    name, given = site.operation(node)
    return (name, given, words) if name else None


def _is_number(node: ast.expr | None, *numbers: int) -> bool:
    try:
        return node is not None and ast.literal_eval(node) in numbers
    except ValueError:
        return False


@dataclass
class TableReader:
    """Reads the statements behind `last = positions.max().item()`."""

    site: Site
    node: ast.Assign
    last: str
    read: ast.expr
    positions: ast.expr
    _numbers: set[str] = field(default_factory=set)
    _computed: list[ast.Assign] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers.add(self.last)
        self._following = self.site.following()
        while self._following and self._is_computed(self._following[0]):
            statement = self._following.pop(0)
            assert isinstance(statement, ast.Assign)
            assert isinstance(statement.targets[0], ast.Name)
            self._numbers.add(statement.targets[0].id)
            self._computed.append(statement)

    def _is_computed(self, statement: ast.stmt) -> bool:
        """True for `columns = last + 1`, whatever is computed."""
        plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        if not plain or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return False
        return self._names_in(statement.value) and self._cut_part(statement.value) is None

    def _names_in(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self._numbers for part in walk_in_layers(node))

    def _cut_part(self, node: ast.expr) -> tuple[ast.ListComp, ast.Subscript] | None:
        """The list and the cut in `torch.cat([part[:, :columns] for part in parts], dim=-1)`."""
        called = _called(self.site, node)
        listed = called[1][0] if called is not None and called[0] in _JOINS and called[1] else None
        if not isinstance(listed, ast.ListComp) or not isinstance(listed.elt, ast.Subscript):
            return None
        return (listed, listed.elt) if self._names_in(listed.elt.slice) else None

    def is_cut(self) -> bool:
        """True when the next statement cuts the parts of a table by the number."""
        made = self._following[0] if self._following else None
        return isinstance(made, ast.Assign) and self._cut_part(made.value) is not None

    def table(self) -> Table:
        """What the statements compute; NotProven where that is something else."""
        for statement in (self.node, *self._computed):
            whole = [part for part in walk_in_layers(statement.value) if not is_within(part, self.read)]
            if not all(isinstance(part, _ARITHMETIC) for part in whole):
                raise NotProven(f"`{short(statement)}` is not arithmetic")
        if dotted(self.positions) is None:
            raise NotProven(f"`{short(self.positions)}` has no name")
        made, shaped, picked = (self._assigned(at) for at in range(3))
        name, part, parts = self._cut(made)
        rows, count = self._rows(shaped, name)
        target, picked_count, index = self._picked(picked, rows)
        if count is not None and not same(count, picked_count):
            raise NotProven(f"cannot infer that `{short(shaped)}` and `{short(picked)}` have the same length")
        statements = (*self._computed, *self._following[:3])
        bound = {*self._numbers, name, rows, target}
        for each in (parts, picked_count, self.positions):
            if any(isinstance(inner, ast.Name) and inner.id in bound | {part, index} for inner in walk_in_layers(each)):
                raise NotProven(f"`{short(each)}` may have a different value after the cut")
        if part == index or bound & {part, index}:
            raise NotProven(f"`{part}` or `{index}` also has another meaning")
        self._demand_unused(bound - {target}, statements)
        self._demand_list(parts)
        return Table(target, part, parts, picked_count, index, self.positions, statements)

    def _assigned(self, at: int) -> ast.Assign:
        statement = self._following[at] if at < len(self._following) else None
        plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        if not plain or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            missing = "its dimensions are flattened" if at == 1 else "rows are picked"
            behind = "" if statement is None else f" by `{short(statement)}`"
            raise NotProven(f"cannot infer that {missing}{behind} directly after the cut")
        return statement

    def _cut(self, statement: ast.Assign) -> tuple[str, str, ast.expr]:
        """The names of the table and of a part, and what holds the parts."""
        found, called = self._cut_part(statement.value), _called(self.site, statement.value)
        assert found is not None
        assert called is not None
        listed, cut = found
        loop = listed.generators[0]
        where = f"`{short(statement)}`"
        dims = [*called[1][1:], *(called[2][word] for word in ("dim", "axis") if word in called[2])]
        if len(dims) != 1 or not _is_number(dims[0], -1):
            raise NotProven(f"{where} concatenates parts along a dimension other than the last")
        if len(listed.generators) != 1 or loop.ifs or loop.is_async or not isinstance(loop.target, ast.Name):
            raise NotProven(f"{where} uses more than each part")
        indices = elements_of(cut.slice)
        slices = [each for each in indices if isinstance(each, ast.Slice)]
        whole = len(slices) == len(indices) == 2 and slices[0].lower is slices[0].upper is slices[0].step is None
        if not whole or slices[1].lower is not None or slices[1].step is not None or slices[1].upper is None:
            raise NotProven(f"`{short(cut)}` is not a prefix of the second dimension")
        if not all(isinstance(part, _ARITHMETIC) for part in walk_in_layers(slices[1].upper)) or _is_negative(
            slices[1].upper
        ):
            raise NotProven(f"`{short(cut)}` is not a prefix of the second dimension")
        if not is_name(cut.value, loop.target.id):
            raise NotProven(f"`{short(cut)}` does not truncate a part")
        assert isinstance(statement.targets[0], ast.Name)
        return statement.targets[0].id, loop.target.id, loop.iter

    def _rows(self, statement: ast.Assign, table: str) -> tuple[str, ast.expr | None]:
        """The name of the table of rows, and the first size that it is given, if it is given one."""
        called = _called(self.site, statement.value)
        name, operands, words = called if called is not None else ("", [], {})
        assert isinstance(statement.targets[0], ast.Name)
        if operands and is_name(operands[0], table) and not words:
            sizes = operands[1:]
            if name in {"reshape", "view"} and len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
                sizes = sizes[0].elts
            shaped = name in {"reshape", "view"} and len(sizes) == 3 and _is_number(sizes[1], -1)
            if shaped and self._is_last_size(sizes[2], table):
                return statement.targets[0].id, sizes[0]
            if name == "flatten" and len(sizes) == 2 and _is_number(sizes[0], 1) and _is_number(sizes[1], -2):
                return statement.targets[0].id, None
        raise NotProven(f"`{short(statement)}` does not build a table of rows")

    def _is_last_size(self, node: ast.expr, table: str) -> bool:
        """True for `table.shape[-1]` and `table.size(-1)`."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return _is_number(node.slice, -1) and dotted(node.value.value) == table
        called = _called(self.site, node)
        if called is None or called[0] != "size" or called[2] or len(called[1]) != 2:
            return False
        return dotted(called[1][0]) == table and _is_number(called[1][1], -1)

    def _picked(self, statement: ast.Assign, rows: str) -> tuple[str, ast.expr, str]:
        """The name of what is picked, how often, and the index that counts."""
        called = _called(self.site, statement.value)
        name, operands, words = called if called is not None else ("", [], {})
        listed = operands[0] if operands else None
        dims = [*operands[1:], *words.values()]
        first = not dims or (len(dims) == 1 and words.keys() <= {"dim", "axis"} and _is_number(dims[0], 0))
        where = f"`{short(statement)}`"
        if name not in _JOINS | {"stack"} or not isinstance(listed, ast.ListComp) or not first:
            raise NotProven(f"{where} does not concatenate the picked rows")
        loop = listed.generators[0]
        counted = loop.iter.args if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "range" else []
        if len(listed.generators) != 1 or loop.ifs or loop.is_async or len(counted) != 1:
            raise NotProven(f"{where} does not enumerate the elements of a batch")
        if not isinstance(loop.target, ast.Name) or not self._is_count(counted[0]):
            raise NotProven(f"{where} does not enumerate the elements of a batch")
        row = listed.elt if name == "stack" else self._without_first(listed.elt)
        self._demand_row(row or listed.elt, rows, loop.target.id, whole=row is not None)
        assert isinstance(statement.targets[0], ast.Name)
        return statement.targets[0].id, counted[0], loop.target.id

    def _without_first(self, node: ast.expr) -> ast.expr | None:
        """`row` for `row.unsqueeze(0)` and `row[None]`."""
        if isinstance(node, ast.Subscript) and is_none(node.slice):
            return node.value
        called = _called(self.site, node)
        if called is None or called[0] != "unsqueeze" or len(called[1]) != 2 or not _is_number(called[1][1], 0):
            return None
        return called[1][0]

    def _demand_row(self, node: ast.expr, rows: str, index: str, *, whole: bool) -> None:
        """NotProven unless `torch.index_select(table[i], 0, positions[i])`."""
        called = _called(self.site, node)
        reason = NotProven(f"`{short(node)}` is not a `torch.index_select` of a row of the table")
        if called is None or called[0] != "index_select" or not whole:
            raise reason
        given = dict(zip(("input", "dim", "index"), called[1], strict=False)) | called[2]
        at = ast.Name(index, ast.Load())
        own = ast.Subscript(ast.Name(rows, ast.Load()), at, ast.Load())
        theirs = ast.Subscript(self.positions, at, ast.Load())
        if given.keys() != {"input", "dim", "index"} or not _is_number(given["dim"], 0):
            raise reason
        if not same(given["input"], own) or not same(given["index"], theirs):
            raise reason

    def _is_count(self, node: ast.expr) -> bool:
        """True for what can be computed again: names, numbers and sizes."""
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Constant) and self._is_count(node.value)
        if isinstance(node, ast.Call):
            builtin = is_name(node.func, "len")
            size = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
            return (builtin or size) and all(map(self._is_count, node.args)) and not node.keywords
        return isinstance(node, ast.Constant) or dotted(node) is not None

    def _demand_unused(self, names: set[str], statements: tuple[ast.stmt, ...]) -> None:
        for part in names_beyond(self.site.evaluator.scope.node, names, (self.node, *statements)):
            raise NotProven(f"`{part.id}` is used for more than the cut")

    def _demand_list(self, parts: ast.expr) -> None:
        """NotProven where the parts may be gone once they were looked at."""
        if isinstance(parts, ast.Attribute) and dotted(parts.value) == "self":
            return
        bound = None
        if isinstance(parts, ast.Name):
            bound = Blocks(self.site.evaluator.scope.node).binding_before(self.node, parts.id)
        value = bound.value if bound is not None else None
        listed = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in {"list", "tuple"}
        if not listed and not isinstance(value, (ast.List, ast.Tuple, ast.ListComp)):
            raise NotProven(f"cannot infer that `{short(parts)}` is a list")


def _is_negative(node: ast.expr) -> bool:
    """True for `-columns`, which counts from the end; `-(-x // n)` rounds up."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.BinOp)
