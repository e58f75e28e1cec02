"""Code that takes rows of its tensors, works on them, and puts them back: which tensors hold a block for each row.

A tensor holds blocks when its first dimension is the number of rows times anything, and each block was computed from
its own row. Layers, elementwise operations and changes of the other dimensions keep that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.scope import FunctionNode, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.row_values import ELEMENTWISE, NotRowwise

_EACH_SAMPLE = frozenset(
    """Linear Conv1d Conv2d Conv3d LayerNorm GroupNorm ReLU GELU SiLU Tanh Sigmoid ELU LeakyReLU Softplus Identity
    AvgPool1d AvgPool2d MaxPool1d MaxPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d Upsample Hardswish Mish""".split()
)
_IN_EVALUATION = frozenset("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm Dropout Dropout2d".split())
_IN_PLACE = frozenset({"inplace"})


@dataclass(eq=False, repr=False)
class Layers:
    """What the classes of a module treat row by row; `checked` are the attributes that this was asked of."""

    site: Site
    calls: ModuleCalls
    in_evaluation: bool = False
    checked: dict[tuple[str, str], None] = field(default_factory=dict)

    def check(self, owner: str, attribute: str) -> None:
        """NotRowwise unless calling `self.attribute` in the class `owner` treats each row by itself."""
        self.checked[owner, attribute] = None
        made = self.calls.constructions(owner, attribute)
        if not made:
            raise NotRowwise(f"cannot infer what `self.{attribute}` is")
        for call in made:
            self._layer(call, attribute)

    def _layer(self, call: ast.Call, attribute: str) -> None:
        layer = torch_api.torch_module_class(self.site.resolve_global(call.func))
        if layer == "Sequential" and not call.keywords:
            for argument in call.args:
                if not isinstance(argument, ast.Call):
                    raise NotRowwise(f"cannot infer what `self.{attribute}` contains")
                self._layer(argument, attribute)
        elif layer in _IN_EVALUATION:
            self.in_evaluation = True
        elif layer is None and isinstance(call.func, ast.Name) and (key := self.calls.method(call.func.id, "forward")):
            self._forward(self.calls.definitions[key])
        elif layer not in _EACH_SAMPLE:
            raise NotRowwise(f"`{speculation.short(call.func)}` may make rows depend on each other")

    def _forward(self, definition: Definition) -> None:
        blocks = Blocks(self, definition.owner, definition.node, rows=set(definition.parameters))
        for statement in definition.node.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                blocks.expect_rows(statement.value)
            elif not _is_text(statement):
                blocks.statement(statement)
        for name in definition.parameters:
            if self.changes(definition.node, name):
                raise NotRowwise(f"`{definition.qualname}` may change its argument")

    def changes(self, function: FunctionNode, name: str) -> bool:
        """True when a layer that works in place may get the argument itself."""
        for node in walk_scope(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                given = any(isinstance(each, ast.Name) and each.id == name for each in node.args)
                owner = next((d.owner for d in self.calls.definitions.values() if d.node is function), "")
                if given and any(map(_starts_in_place, self.calls.constructions(owner, node.func.attr))):
                    return True
        return False


def _starts_in_place(call: ast.Call) -> bool:
    if call.args and isinstance(call.args[0], ast.Call):
        return _starts_in_place(call.args[0])
    return any(word.arg in _IN_PLACE for word in call.keywords)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@dataclass(eq=False, repr=False)
class Blocks:
    """Follows blocks of rows through statements. `selector` is the name that chooses rows, empty inside a layer.

    `rows` are names of tensors that hold blocks, `counts` numbers that the number of rows divides. `reads` and
    `writes` are the subscripts that choose rows, in order.
    """

    layers: Layers
    owner: str
    function: FunctionNode
    selector: str = ""
    rows: set[str] = field(default_factory=set)
    counts: set[str] = field(default_factory=set)
    reads: list[ast.Subscript] = field(default_factory=list)
    writes: list[ast.Subscript] = field(default_factory=list)

    def statement(self, node: ast.stmt) -> None:
        """Follow one statement; NotRowwise if it may do anything else than keep rows apart."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise NotRowwise(f"`{speculation.short(node)}` is not a plain assignment")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            if not self._chooses(target) or isinstance(target.slice, ast.Tuple):
                raise NotRowwise(f"`{speculation.short(target)}` is written")
            self.expect_rows(node.value)
            self.writes.append(target)
        elif isinstance(target, ast.Name):
            self._bind(target.id, node.value)
        elif isinstance(target, ast.Tuple) and self._is_shape(node.value):
            for position, element in enumerate(target.elts):
                if not isinstance(element, ast.Name):
                    raise NotRowwise(f"`{speculation.short(node)}` is not a plain assignment")
                (self.counts.add if position == 0 else self.counts.discard)(element.id)
        else:
            raise NotRowwise(f"`{speculation.short(node)}` is not a plain assignment")

    def _bind(self, name: str, value: ast.expr) -> None:
        held = self.kind(value)
        self.rows.discard(name)
        self.counts.discard(name)
        if held == "rows":
            self.rows.add(name)
        elif held == "count":
            self.counts.add(name)

    def expect_rows(self, node: ast.expr) -> None:
        """NotRowwise unless `node` holds a block for each row."""
        if self.kind(node) != "rows":
            raise NotRowwise(f"`{speculation.short(node)}` may not have one row per selected row")

    def _chooses(self, node: ast.Subscript) -> bool:
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return bool(self.selector) and isinstance(first, ast.Name) and first.id == self.selector

    def _is_shape(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
            return not node.args and self.kind(node.func.value) == "rows"
        return isinstance(node, ast.Attribute) and node.attr == "shape" and self.kind(node.value) == "rows"

    def kind(self, node: ast.expr) -> str:
        """`rows` for blocks of rows, `count` for a multiple of their number, `plain` for what no row enters."""
        if isinstance(node, ast.Name):
            if node.id == self.selector:
                raise NotRowwise(f"`{self.selector}` is used for more than selecting rows")
            return "rows" if node.id in self.rows else "count" if node.id in self.counts else "plain"
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand)
        return self._rest(node)

    def _rest(self, node: ast.expr) -> str:
        held = {self.kind(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)}
        if held - {"plain"}:
            raise NotRowwise(f"`{speculation.short(node)}` may make rows depend on each other")
        return "plain"

    def _subscript(self, node: ast.Subscript) -> str:
        if self._chooses(node):
            if not isinstance(node.value, ast.Name) or node.value.id in self.rows:
                raise NotRowwise(f"`{speculation.short(node)}` selects among the selected rows")
            rest = node.slice.elts[1:] if isinstance(node.slice, ast.Tuple) else []
            for part in rest:
                if not isinstance(part, (ast.Slice, ast.Constant)):
                    raise NotRowwise(f"`{speculation.short(node)}` indexes more than rows")
            self.reads.append(node)
            return "rows"
        if self._is_shape(node.value):
            first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
            return "count" if first else "plain"
        return self._rest(node)

    def _operation(self, node: ast.BinOp) -> str:
        held = [self.kind(node.left), self.kind(node.right)]
        if "count" in held:
            if "rows" in held or not isinstance(node.op, ast.Mult) or held.count("count") > 1:
                raise NotRowwise(f"`{speculation.short(node)}` depends on the number of rows")
            return "count"
        if isinstance(node.op, ast.MatMult) and "rows" in held:
            raise NotRowwise(f"`{speculation.short(node)}` may make rows depend on each other")
        return "rows" if "rows" in held else "plain"

    def _call(self, node: ast.Call) -> str:
        function = node.func
        given = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
            held = [self.kind(argument) for argument in given]
            if "count" in held:
                raise NotRowwise(f"`{speculation.short(node)}` gets the number of rows")
            if "rows" in held:
                self.layers.check(self.owner, function.attr)
            return "rows" if "rows" in held else "plain"
        name = torch_api.torch_function(self.layers.site.resolve_global(function))
        if name is not None and given:
            return self._torch(node, name, given[0], given[1:])
        if isinstance(function, ast.Attribute):
            return self._torch(node, function.attr, function.value, given)
        return self._rest(node)

    def _torch(self, node: ast.Call, name: str, first: ast.expr, rest: list[ast.expr]) -> str:
        held = self.kind(first)
        others = [self.kind(argument) for argument in rest if not isinstance(argument, (ast.Tuple, ast.List))]
        if held != "rows":
            if "rows" in others or "count" in others:
                raise NotRowwise(f"`{speculation.short(node)}` may make rows depend on each other")
            return "plain"
        if name == "size":
            return "count" if rest and _number(rest[0]) == 0 else "plain"
        if name in ELEMENTWISE or _keeps_first(name, rest):
            return "rows"
        if name in {"view", "reshape"}:
            sizes = rest[0].elts if len(rest) == 1 and isinstance(rest[0], (ast.Tuple, ast.List)) else rest
            if sizes and self.kind(sizes[0]) == "count" and all(self.kind(each) == "plain" for each in sizes[1:]):
                return "rows"
        raise NotRowwise(f"`{speculation.short(node)}` may make rows depend on each other")


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _keeps_first(name: str, rest: list[ast.expr]) -> bool:
    """True for a change of the other dimensions."""
    sizes = rest[0].elts if len(rest) == 1 and isinstance(rest[0], (ast.Tuple, ast.List)) else rest
    numbers = [_number(each) for each in sizes]
    if name == "permute":
        return bool(numbers) and numbers[0] == 0
    if name == "transpose":
        return len(numbers) == 2 and all(number is not None and number > 0 for number in numbers)
    if name in {"flatten", "unsqueeze", "squeeze"}:
        return bool(numbers) and numbers[0] is not None and numbers[0] > 0
    return name == "pad" and bool(rest) and isinstance(rest[0], ast.Tuple) and len(rest[0].elts) == 2


def bound_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that statements bind."""
    for statement in body:
        for node in [statement, *walk_scope(statement)]:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
