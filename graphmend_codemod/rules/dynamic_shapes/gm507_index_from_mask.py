"""index-from-mask (GM507): indices computed from a mask, used only to write at them.

`rows, columns = torch.where(mask)` finds as many places as the data says, and the graph breaks. Where nothing is done
with them but writing, the mask itself says as much: `x[rows] = 0` is `x[mask.any(1)] = 0`, `x[rows, columns] = 0` is
`x[mask] = 0`, and `x[rows] += columns` adds to each row the last column that was found in it. Eager mode runs the
original statements, word for word.

PyTorch does not say which of several places in one row `x[rows] += columns` keeps: on the CPU it is the last, on a GPU
any. The compile path always takes the last. It is taken where shapes fit, which Dynamo knows while it traces, and, as
eager mode has a gradient for each place, for numbers without gradients.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import all_names, is_name, names_beyond
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import BOOL, INT64, is_floating_dtype
from graphmend_codemod.core.findings import Edit, Original
from graphmend_codemod.rules.framework.edits import beside, under
from graphmend_codemod.rules.framework.reasons import NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import plain_number
from graphmend_codemod.rules.proofs.rowwise.selectors import where_of

rule = Rule(
    __name__,
    __doc__,
    title="write under a mask instead of at computed indices",
    contract=Contract(cost=Cost.BOTH_ARMS, cost_note="every element is written or kept by the mask", saves_masks=True),
)

_COMMENT = "# How many places are found depends on the data: the mask itself says where."
_LAST = "# Of the places in a row, the last one counts."
_ROWS, _COLUMNS, _BOTH = "rows", "columns", "both"


@dataclass
class _Places:
    """What `torch.where(mask)` or `mask.nonzero()` gave, under which names.

    `single` is the name of all of it, a tuple or, with `table`, a tensor (places, dimensions); otherwise `names` are
    those of rows and columns.
    """

    mask: ast.expr
    single: str | None = None
    table: bool = False
    names: tuple[str, ...] = ()

    def role(self, node: ast.expr) -> str | None:
        """Which places `node` spells: rows, columns, or both; None where there is none."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return (_ROWS, _COLUMNS)[self.names.index(node.id)]
            return _BOTH if node.id == self.single and not self.table else None
        if isinstance(node, ast.Tuple) and [self.role(part) for part in node.elts] == [_ROWS, _COLUMNS]:
            return _BOTH
        if isinstance(node, ast.Subscript) and is_name(node.value, self.single):
            number = _column(node.slice) if self.table else node.slice
            if isinstance(number, ast.Constant) and number.value in (0, 1):
                return _COLUMNS if number.value else _ROWS
        return None


@dataclass
class _Compiled:
    """The compile path: trace-time facts and statements, each once, in the order in which they are asked for."""

    shape: str
    two: bool
    facts: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    last: str | None = None

    def rank(self) -> None:
        if not self.two:
            self.facts[f"{self.shape}.dim() == 2"] = None


@rule.on(ast.Assign, candidate="rows")
def found_places(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`rows, columns = torch.where(mask)` before writes at `x[rows]`."""
    places = _places(site, node)
    if places is None:
        return None
    names = {places.single} if places.single else set(places.names)
    users: list[ast.stmt] = []
    for statement in site.following():
        if not (all_names(statement) & names):
            break
        users.append(statement)
    writes = [_write(statement, places) for statement in users]
    if not any(writes):
        return None
    message = f"writes at indices computed from a mask (data-dependent shape): `{speculation.short(node.value)}`"
    try:
        _check_reads(site, node, names, [user for user, write in zip(users, writes, strict=True) if write])
        return Diagnostic(message, edit=_edit(site, node, places, users))
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


def _places(site: Site, node: ast.Assign) -> _Places | None:
    found = where_of(site, node.value)
    if len(node.targets) != 1 or found is None or found[1] not in (None, -1):
        return None
    mask, table, target = found[0], found[1] == -1, node.targets[0]
    if isinstance(target, ast.Name):
        return _Places(mask, single=target.id, table=table)
    if table or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    names = tuple(part.id for part in target.elts if isinstance(part, ast.Name))
    return _Places(mask, names=names) if len(set(names)) == 2 else None


def _column(index: ast.expr) -> ast.expr | None:
    """`0` for the index of `places[:, 0]`."""
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2 or not isinstance(index.elts[0], ast.Slice):
        return None
    whole = index.elts[0]
    return index.elts[1] if whole.lower is whole.upper is whole.step is None else None


def _write(statement: ast.stmt, places: _Places) -> tuple[ast.Subscript, ast.expr, ast.operator | None] | None:
    """The target, the value and the operator of `x[rows] = value`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value, operator = statement.targets[0], statement.value, None
    elif isinstance(statement, ast.AugAssign):
        target, value, operator = statement.target, statement.value, statement.op
    else:
        return None
    chosen = isinstance(target, ast.Subscript) and places.role(target.slice) in (_ROWS, _BOTH)
    return (target, value, operator) if chosen and isinstance(target, ast.Subscript) else None


def _check_reads(site: Site, node: ast.Assign, names: set[str], writes: list[ast.stmt]) -> None:
    for part in names_beyond(site.evaluator.scope.node, names, [node, *writes]):
        raise NotProven(f"`{part.id}` is used for more than indexing the write")


def _edit(site: Site, node: ast.Assign, places: _Places, users: list[ast.stmt]) -> Edit:
    mask = places.mask
    if site.value(mask).dtype != BOOL and not isinstance(mask, ast.Compare):
        raise NotProven(
            f"cannot infer that `{speculation.short(mask)}` is a bool tensor; "
            "annotate it with `torch.BoolTensor`, or compare it: `!= 0`"
        )
    name = mask.id if isinstance(mask, ast.Name) else site.free_name("mask", "found_mask")
    facts: dict[str, None] = {}
    if not isinstance(mask, ast.Compare) and site.value(mask).hint:
        facts[f"{site.operand(mask)}.dtype == {site.torch}.bool"] = None
    compiled = _Compiled(_shape_of(site, mask, facts), bool(places.names), facts)
    if not is_name(mask, name):
        compiled.lines.append(f"{name} = {site.text(mask)}")
    for user in users:
        written = _write(user, places)
        assert written is not None
        _check_order(site, mask, written[0], len(users) == 1)
        compiled.lines.append(_statement(site, places, written, name, compiled))
    header = site.header("if", [site.compiling, *compiled.facts])
    whole = site.span(node).through(site.span(users[-1]))
    parts = (f"{_COMMENT}\n" + under(header, *compiled.lines) + "\nelse:\n    ", Original(whole, 1))
    return beside(site, whole, parts)


def _check_order(site: Site, mask: ast.expr, target: ast.Subscript, single: bool) -> None:
    """The mask must still hold when a later write uses it again."""
    if not isinstance(target.value, ast.Name):
        raise NotProven(f"`{speculation.short(target.value)}` is not a variable; assign it to one first")
    may_share = isinstance(mask, ast.Name) and not single and site.value(target.value).dtype in (None, BOOL)
    if may_share or target.value.id in all_names(mask):
        raise NotProven(f"the condition may read `{target.value.id}`, which the branch writes")


def _shape_of(site: Site, mask: ast.expr, facts: dict[str, None]) -> str:
    """What has the shape of the mask: a name where there is one."""
    if isinstance(mask, ast.Name):
        return mask.id
    if isinstance(mask, ast.Compare) and isinstance(mask.left, ast.Name) and len(mask.ops) == 1:
        other = mask.comparators[0]
        if site.value(mask.left).is_tensor:
            if site.value(other).is_python or site.value(other).is_single:
                return mask.left.id
            if dotted(other) is not None and not site.value(other).is_tensor:
                facts[f"isinstance({site.text(other)}, int)"] = None
                return mask.left.id
    if site.judge(mask).impure is not None:
        raise NotProven(f"`{speculation.short(mask)}` may have side effects and would run twice")
    return f"({site.text(mask)})"


def _statement(
    site: Site,
    places: _Places,
    write: tuple[ast.Subscript, ast.expr, ast.operator | None],
    mask: str,
    compiled: _Compiled,
) -> str:
    target, value, operator = write
    x, role = site.text(target.value), places.role(target.slice)
    written = site.value(target.value)
    if not written.is_tensor:
        raise NotProven(cannot_infer_tensor(site, target.value))
    if places.role(value) == _COLUMNS and role == _ROWS:
        return _last(site, x, operator, mask, compiled, None if written.hint else written.dtype)
    if operator is not None:
        raise NotProven(f"`{speculation.short(target)}` is both read and written")
    if plain_number(site, value) is None:
        if dotted(value) is None or not site.value(value).is_python:
            raise NotProven(f"`{speculation.short(value)}` is not a Python number")
        compiled.facts[f"isinstance({site.text(value)}, (int, float))"] = None
    if role == _BOTH:
        compiled.facts[f"{x}.shape[: {compiled.shape}.dim()] == {compiled.shape}.shape"] = None
        return f"{x}[{mask}] = {site.text(value)}"
    compiled.rank()
    compiled.facts[f"{x}.shape[:1] == {compiled.shape}.shape[:1]"] = None
    return f"{x}[{mask}.any(1)] = {site.text(value)}"


def _last(site: Site, x: str, operator: ast.operator | None, mask: str, compiled: _Compiled, dtype: str | None) -> str:
    """`x[rows] += columns`: of the columns of a row, the last."""
    if operator is not None and not isinstance(operator, (ast.Add, ast.Sub)):
        raise NotProven("an operator other than `+=` and `-=` would change rows that the mask does not select")
    if is_floating_dtype(dtype):
        raise NotProven(f"`{x}` is floating point, and each index would get a gradient")
    compiled.rank()
    compiled.facts[f"{compiled.shape}.numel() > 0"] = None
    compiled.facts[f"{x}.shape == {compiled.shape}.shape[:1]"] = None
    if operator is None and dtype != INT64:
        compiled.facts[f"{x}.dtype == {site.torch}.int64"] = None
    elif operator is not None and dtype is None:
        compiled.facts[f"not {x}.is_floating_point()"] = None
    places = compiled.last or site.free_name("places", "last_places")
    if compiled.last is None:
        columns = f"{site.torch}.arange({mask}.shape[1], device={mask}.device)"
        compiled.lines += [_LAST, f"{places} = {site.torch}.where({mask}, {columns}, 0).amax(1)"]
    compiled.last = places
    if operator is None:
        return f"{x}.copy_({site.torch}.where({mask}.any(1), {places}, {x}))"
    return f"{x} {'+' if isinstance(operator, ast.Add) else '-'}= {places}"
