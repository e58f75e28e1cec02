"""Loops over segments of rows that are sorted by expert, written for all rows; see `rowwise`.

The segments' bounds come from counting: `start:end` from a cumulative sum, pieces of a `split`, or counts of a sorted
index that were read back to Python. For all rows, `x[start:end]` is `x`, and the rows that do not belong are masked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.scope import children, walk, walk_in_layers
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.rowwise import Rewriter
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import MASK, Choice, Dense, NotRowwise, Rows, bound_in

_READS = frozenset({"numpy", "tolist", "cpu"})
_SCATTERS = frozenset({"scatter_reduce_", "scatter_add_"})


@dataclass(eq=False, repr=False)
class Segments:
    """Where a loop's segments come from.

    `before` are the statements in front of the loop that belong to it, `after` the one behind that joins the pieces.
    `sorted_by` are the tensor that was counted and its sorting index; `pieces` the list of a `split`, with what was
    split and the sizes; `collected` the list that rounds append to, with the name that the joined pieces get.
    """

    before: list[ast.stmt] = field(default_factory=list)
    after: list[ast.stmt] = field(default_factory=list)
    read: dict[str, ast.Assign] = field(default_factory=dict)
    sorted_by: tuple[str, str] | None = None
    pieces: tuple[str, ast.expr, ast.expr] | None = None
    collected: tuple[str, str] | None = None


_READS_SIZES = frozenset({"numpy", "tolist", "split"})


def segments_of(site: Site, node: ast.For) -> Segments | None:
    """The segments that a loop runs over, None if it runs over none whose sizes depend on data."""
    if site.evaluator.scope.outline.words.keys().isdisjoint(_READS_SIZES) and not _slices(node):
        return None
    found = Segments()
    names = {part.id for part in walk(node) if isinstance(part, ast.Name)}
    body, position = site.place.blocks[-1]
    first = position
    for start in range(position - 1, -1, -1):
        statement = body[start]
        target = _target(statement)
        if target is None or not isinstance(statement, ast.Assign):
            if first == position and not isinstance(statement, ast.Assign):
                break
            continue
        if target in names and target not in found.read and _read_back(statement.value):
            found.read[target] = statement
            first = start
        elif target in names and (split := _split(statement.value)) is not None and _is_size_list(site, split[1]):
            found.pieces = (target, *split)
            first = start
    found.before = list(body[first:position])
    if not (found.pieces or found.read or _tensor_bounds(site, node)):
        return None
    if found.pieces is None and not _slices(node):
        return None
    _sorting(found, list(body[:position]))
    _joining(found, list(body[:position]), list(body[position + 1 :]), node)
    return found


def _target(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _read_back(node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in {"numpy", "tolist"}
        for part in walk_in_layers(node)
    )


def _split(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`x` and `sizes` of `x.split(sizes, dim=0)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "split":
        return None
    dims = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "dim")]
    along_rows = all(isinstance(dim, ast.Constant) and dim.value == 0 for dim in dims)
    return (node.func.value, node.args[0]) if node.args and along_rows else None


def _is_size_list(site: Site, sizes: ast.expr) -> bool:
    """True when a function of this file hands on sizes of this name that it read from a tensor."""
    if not isinstance(sizes, ast.Name) or site.value(sizes).is_tensor:
        return False
    tree = tree_of(site.source.text)
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            _target(part) == sizes.id and _read_back(part.value)
            for part in walk(function)
            if isinstance(part, ast.Assign)
        ):
            return True
    return False


def _slices(node: ast.For) -> list[ast.Subscript]:
    """Subscripts by a slice whose bounds the loop computes."""
    between = [
        (part, {part.slice.lower.id, part.slice.upper.id})
        for part in walk_in_layers(node)
        if isinstance(part, ast.Subscript)
        and isinstance(part.slice, ast.Slice)
        and part.slice.step is None
        and isinstance(part.slice.lower, ast.Name)
        and isinstance(part.slice.upper, ast.Name)
    ]
    bound = bound_in(node) | _stored_before(node) if between else set()
    return [part for part, names in between if names <= bound]


def _stored_before(node: ast.For) -> set[str]:
    return {part.id for part in walk_in_layers(node.target) if isinstance(part, ast.Name)}


def _tensor_bounds(site: Site, node: ast.For) -> bool:
    """True when both bounds of a slice are known to be tensors."""
    for part in _slices(node):
        assert isinstance(part.slice, ast.Slice)
        for statement in node.body:
            inner = site.at(statement)
            if inner is None or not any(part is each for each in walk_in_layers(statement)):
                continue
            bounds = (part.slice.lower, part.slice.upper)
            return all(bound is not None and inner.value(bound).is_tensor for bound in bounds)
    return False


def _sorting(found: Segments, before: Sequence[ast.stmt]) -> None:
    for statement in found.read.values():
        for part in walk_in_layers(statement.value):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "bincount":
                counted = part.args[0] if ast.unparse(part.func.value) == "torch" and part.args else part.func.value
                index = _sorting_index(ast.unparse(counted), before)
                if index is None:
                    raise NotRowwise(f"cannot infer the order of `{ast.unparse(counted)}`")
                found.sorted_by = (ast.unparse(counted), index)


def _sorting_index(counted: str, before: Sequence[ast.stmt]) -> str | None:
    forms = {f"{counted}.argsort()", f"torch.argsort({counted})", f"{counted}.argsort(0)", f"{counted}.argsort(dim=0)"}
    return next((name for s in before if (name := _target(s)) and ast.unparse(s.value) in forms), None)  # type: ignore[attr-defined]


def _joining(found: Segments, before: list[ast.stmt], after: list[ast.stmt], node: ast.For) -> None:
    lists = {
        name for s in before if (name := _target(s)) and isinstance(s, ast.Assign) and ast.unparse(s.value) == "[]"
    }
    appended = {
        part.func.value.id
        for part in walk_in_layers(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "append"
        and isinstance(part.func.value, ast.Name)
    }
    if not appended:
        return
    name = appended.pop()
    statement = after[0] if after else None
    target = _target(statement) if statement is not None else None
    value = getattr(statement, "value", None)
    joined = value.body if isinstance(value, ast.IfExp) else value
    if appended or name not in lists or target is None or not _joins(joined, name):
        raise NotRowwise(f"cannot follow all uses of `{name}`")
    assert statement is not None
    found.collected = (name, target)
    found.after = [statement]


def _joins(node: ast.expr | None, name: str) -> bool:
    """`torch.cat(name, dim=0)`."""
    return node is not None and ast.unparse(node) in {f"torch.cat({name}, dim=0)", f"torch.cat({name})"}


class SegmentRewriter(Rewriter):
    """Rewrites the body of a loop over segments."""

    def __init__(self, site: Site, segments: Segments, loop: ast.For, outer: int) -> None:
        super().__init__(site, lambda node: False, outer)
        self.segments = segments
        self.loop = loop
        self.first: list[str] = []
        slices = _slices(loop)
        bounds = [bound for part in slices for bound in (part.slice.lower, part.slice.upper)]  # type: ignore[attr-defined]
        self.bounds = {bound.id for bound in bounds if isinstance(bound, ast.Name)} | segments.read.keys()
        self.bounds |= {name for name in _stored_before(loop) if name not in _used_as_index(loop)}
        if segments.pieces is not None:
            _, whole, sizes = segments.pieces
            rows = site.text(whole)
            ends = f"torch.as_tensor({site.text(sizes)}, device={rows}.device).cumsum(0)".replace(
                "torch", site.torch or ""
            )
            self.expert_of_row = site.free_name("expert_of_row")
            self._prepare(f"{self.expert_of_row} = ", self._bucketized(rows, ends))
            self._choose(f"{self.expert_of_row} == {self._counter()}")
        elif segments.sorted_by is not None:
            counted, index = segments.sorted_by
            self.expert_of_row = site.free_name("expert_of_row")
            self._prepare(f"{self.expert_of_row} = ", f"{counted}[{index}]")
            self._choose(f"{self.expert_of_row} == {self._counter()}")

    def _bucketized(self, rows: str, ends: str) -> str:
        return f"{self.site.torch}.bucketize({self._positions(rows)}, {ends}, right=True)"

    def _positions(self, rows: str) -> str:
        return f"{self.site.torch}.arange({rows}.shape[0], device={rows}.device)"

    def _prepare(self, before: str, text: str) -> None:
        """A line in front of the loop."""
        lines, self.lines, depth, self.depth = self.lines, self.first, self.depth, 0
        self._emit(before, text)
        self.lines, self.depth = lines, depth

    def _choose(self, condition: str) -> None:
        name = self.site.free_name("routed")
        self.choice = Choice(name, line=f"{name} = ({condition}).unsqueeze(-1)")

    def _counter(self) -> str:
        target = self.loop.target
        counter = target.elts[0] if isinstance(target, ast.Tuple) else target
        if not isinstance(counter, ast.Name):
            raise NotRowwise("cannot infer the loop counter")
        return counter.id

    def role(self, node: ast.expr) -> str | None:
        """A slice by computed bounds chooses rows."""
        if (
            not isinstance(node, ast.Slice)
            or not isinstance(node.lower, ast.Name)
            or not isinstance(node.upper, ast.Name)
        ):
            return super().role(node)
        if not {node.lower.id, node.upper.id} <= self.bounds:
            return None
        self._emit_segment(node)
        return MASK

    def _emit_segment(self, node: ast.Slice | None) -> None:
        if self.choice is None:
            assert node is not None
            base = next(part for part in _slices(self.loop) if ast.dump(part.slice) == ast.dump(node)).value
            positions = self.site.free_name("positions")
            self._prepare(f"{positions} = ", self._positions(self.site.text(base)))
            lower, upper = ast.unparse(node.lower), ast.unparse(node.upper)  # type: ignore[arg-type]
            self._choose(f"({positions} >= {lower}) & ({positions} < {upper})")
        self._emit_choice(self.chosen)

    def whole_of(self, node: ast.Subscript) -> tuple[str, Rows] | None:
        """`pieces[i]`, and a tensor indexed by chosen rows of an index."""
        if self.segments.pieces is not None:
            name, whole, _ = self.segments.pieces
            if isinstance(node.value, ast.Name) and node.value.id == name:
                self._emit_segment(None)
                return self.site.text(whole), Rows(True, f"{self.site.operand(whole)}.dim() == 2")
        if isinstance(node.slice, ast.Slice):
            return None
        inner = Dense(self)
        rows = None if isinstance(node.slice, (ast.Constant, ast.Tuple)) else inner.visit(node.slice)
        if rows is None or not rows.chosen or Dense(self).visit(node.value) is not None:
            return None
        base = self.site.text(node.value)
        return f"{base}[{inner.text(node.slice)}]", Rows(True, f"{base}.dim() == 2")

    def _assign(self, node: ast.Assign, target: ast.expr) -> None:
        if isinstance(target, ast.Name) and target.id in self.bounds:
            if self.segments.sorted_by is None and self.segments.pieces is None:
                self._emit("", self.site.text(node))
            return
        super()._assign(node, target)

    def _asks_for_rows(self, test: ast.expr) -> bool | None:
        names = {part.id for part in walk_in_layers(test) if isinstance(part, ast.Name)}
        if names and names <= self.bounds and isinstance(test, ast.Compare) and len(test.ops) == 1:
            if isinstance(test.ops[0], ast.Eq):
                return True
            if isinstance(test.ops[0], (ast.Gt, ast.Lt, ast.NotEq)):
                return False
        return super()._asks_for_rows(test)

    def _call_statement(self, node: ast.Expr, call: ast.Call) -> None:
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if name == "append" and self.segments.collected is not None and len(call.args) == 1:
            result = self.segments.collected[1]
            value = self._dense_rows(call.args[0])
            self.writes.append(call.args[0])
            self._emit(f"{result} = ", f"{self.site.torch}.where({self.chosen.mask}, {value}, {result})")
        elif name in _SCATTERS and len(call.args) == 3:
            self._scatter(call, name)
        else:
            super()._call_statement(node, call)

    def _scatter(self, call: ast.Call, name: str) -> None:
        words = [self.site.text(word) for word in call.keywords]
        if name == "scatter_reduce_" and [ast.unparse(word.value) for word in call.keywords] != ["'sum'"]:
            raise NotRowwise(f"`{speculation.short(call)}` does not add")
        assert isinstance(call.func, ast.Attribute)
        index = Dense(self, indexing=True)
        if index.visit(call.args[1]) is None:
            raise NotRowwise(f"`{speculation.short(call)}` is not indexed by the rows")
        self.writes.append(call.func.value)
        value = self._masked(self._dense_rows(call.args[2]))
        arguments = [self.site.text(call.args[0]), index.text(call.args[1]), value, *words]
        self._emit("", f"{self.site.text(call.func)}({', '.join(arguments)})")

    def prelude(self) -> list[str]:
        """The lines in front of the loop."""
        lines = []
        for statement in self.segments.before:
            target = _target(statement)
            if self.segments.pieces is not None and target == self.segments.pieces[0]:
                continue
            if self.segments.collected is not None and target == self.segments.collected[0]:
                continue
            if target in self.segments.read:
                if self.segments.sorted_by is None and (text := self._as_tensor(self.segments.read[target])):
                    lines.append(text)
                continue
            if not (isinstance(statement, ast.Assign) and target):
                raise NotRowwise(
                    f"`{speculation.short(statement)}` runs between the loop and the definition of its iterable"
                )
            if self.segments.sorted_by is None or target not in self.bounds:
                lines.append(self.site.text(statement))
        lines += self.first
        if self.segments.collected is not None:
            lines.append(f"{self.segments.collected[1]} = 0")
        return lines

    def _as_tensor(self, statement: ast.Assign) -> str | None:
        """The statement without the calls that read a tensor back to Python."""
        dense = Dense(self)
        for part in walk_in_layers(statement.value):
            while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _READS:
                inner = part.func.value
                while isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") in _READS:
                    inner = inner.func.value  # type: ignore[attr-defined]
                dense.change(part, self.site.text(inner))
                break
        text, name = dense.text(statement.value), _target(statement)
        return None if text == name else f"{name} = {text}"

    def header(self) -> str:
        """The line that begins the loop."""
        node, site = self.loop, self.site
        if self.segments.sorted_by is None:
            return f"for {site.text(node.target)} in {site.text(node.iter)}:"
        for part in walk_in_layers(node):
            if (
                isinstance(part, ast.Subscript)
                and isinstance(part.slice, ast.Name)
                and part.slice.id == self._counter()
            ):
                experts = site.text(part.value)
                if experts not in self.segments.read:
                    return f"for {self._counter()} in range(len({experts})):"
        raise NotRowwise("cannot infer the number of experts")


def _used_as_index(loop: ast.For) -> set[str]:
    return {
        part.slice.id
        for part in walk_in_layers(loop)
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Name)
    }


def counts_for_experts(site: Site, node: ast.Assign) -> str | None:
    """The name in `sizes = sizes.tolist()`, where other functions of the file split rows by sizes of that name."""
    name = _target(node)
    call = node.value
    if name is None or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    read = isinstance(call.func, ast.Attribute) and call.func.attr == "tolist" and call.func.value
    if not isinstance(read, ast.Name) or read.id != name or not site.value(read).is_tensor:
        return None
    tree = tree_of(site.source.text)
    splits = [part for part in walk(tree) if isinstance(part, ast.Call) and _splits(part, name)]
    return name if splits else None


def _splits(call: ast.Call, name: str) -> bool:
    found = _split(call)
    return found is not None and isinstance(found[1], ast.Name) and found[1].id == name


def check_counts(site: Site, node: ast.Assign, name: str) -> None:
    """NotRowwise unless sizes of this name are handed on to functions that take them as a tensor, and nothing else."""
    tree = tree_of(site.source.text)
    taken = False
    for parent, part in _reads(tree, name):
        if isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith(".as_tensor"):
            taken = True
        elif not _hands_on(parent, part, name, node):
            raise NotRowwise(f"`{speculation.short(parent)}` is an unsupported use of `{name}`")
    if not taken:
        raise NotRowwise(f"the functions that split rows by `{name}` do not accept it as a tensor yet; fix those first")


def _reads(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, ast.Name]]:
    """The places where a name is read, each behind the node that it stands in, in the order of `ast.walk`."""
    todo: list[ast.AST] = [tree]
    for parent in todo:
        below = children(parent)
        todo += below
        for part in below:
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                yield parent, part


def _hands_on(parent: ast.AST, part: ast.Name, name: str, node: ast.Assign) -> bool:
    """True where `name` is split by, returned, put into a tuple, given to a method, or read back by `node`."""
    if isinstance(parent, ast.Call):
        return _splits(parent, name) or ast.unparse(parent.func).startswith("self.")
    if isinstance(parent, ast.Attribute):
        return parent.attr == "tolist" and part.lineno == node.lineno
    return isinstance(parent, (ast.Tuple, ast.Return))
