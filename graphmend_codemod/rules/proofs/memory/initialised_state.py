"""State that a branch initialises once, under a flag in a buffer: `if not self.done: self.scale.data = ...`.

What the branch would write is computed in any case, and each tensor gets the selected one. Nothing is written before it
is known that all of them fit: otherwise the branch itself runs.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import shape_needs, speculation
from graphmend_codemod.analysis.patterns import is_attribute, is_none, operands_of
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import CONSTANT, computed_in_front
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition
from graphmend_codemod.rules.proofs.conditions.trace_time_conditions import tensor_checks

FILLS = {"copy_": 1, "fill_": 1, "zero_": 0}
"""Methods that write into a tensor, with the number of their arguments."""
_OWNS = '''
@_constant_while_tracing
def _owns_its_memory(owner: {torch}.nn.Module, name: str) -> bool:
    """True if no other tensor in the module `owner` shares memory with `owner.name`: known while tracing."""
    own = getattr(owner, name)
    held = [
        each
        for layer in owner.modules()
        for each in (*layer.parameters(recurse=False), *layer.buffers(recurse=False), *vars(layer).values())
        if isinstance(each, {torch}.Tensor) and each is not own
    ]
    memory = own.untyped_storage()
    whole = memory.nbytes() == own.numel() * own.element_size()
    return whole and all(each.untyped_storage().data_ptr() != memory.data_ptr() for each in held)
'''
_FITS = '''
def _may_replace_data(owner: {torch}.nn.Module, name: str) -> bool:
    """True if compiled code can replace the data of `owner.name`: it copies into a tensor that needs a gradient."""
    needed = {torch}.is_grad_enabled() and getattr(owner, name).requires_grad
    return not needed or _owns_its_memory(owner, name)
'''
_REPLACE = '''
def _replace_data(x: {torch}.Tensor, data: {torch}.Tensor) -> None:
    """`x.data = data` for compiled code, which gives no gradient to a tensor whose data it replaces."""
    if {torch}.is_grad_enabled() and x.requires_grad:
        with {torch}.no_grad():
            x.data.copy_(data)
    else:
        x.data = data
'''


def owning(site: Site) -> tuple[Helper, ...]:
    """The function `_owns_its_memory` of the module, and what it calls."""
    return CONSTANT, Helper("_owns_its_memory", _OWNS.format(torch=site.torch).strip("\n"), shared=True)


class _Write(NamedTuple):
    """What an attribute gets: `how` is "rebound", "data" (`self.a.data = x`) or "filled" (`self.a.copy_(x)`)."""

    how: str
    value: str


def initialising_edit(site: Site, node: ast.If, condition: Condition, own: str) -> Edit:
    """The compile path for a branch without `else`, with a test that may be asked in any case; or NotProven."""
    if site.is_elif(node):
        raise NotProven("the branch is one of several")
    if own != "self":
        raise NotProven("the instance is not called `self`")
    branch = _Branch(site, own)
    branch.read(node.body, graph=not site.no_grad)
    if not branch.writes:
        raise NotProven("the branch writes no tensor of the instance")
    static = [site.operand_of_and(operand) for operand in condition.static]
    asked = tensor_checks(site, list(condition.tensors))
    known = list(dict.fromkeys([*static, *asked, *branch.conditions(), *condition.facts]))
    chosen = site.free_name("condition", "is_chosen")
    body = [f"{chosen} = {condition.choice}", *branch.selects(chosen)]
    edit = computed_in_front(site, node, known, branch.lines, branch.facts(), body)
    return edit._replace(helpers=(*edit.helpers, *branch.helpers()))


class _Branch:
    """Reads the statements of a branch: what it computes, and what it writes."""

    def __init__(self, site: Site, own: str) -> None:
        self.site, self.own = site, own
        self.env = dict(site.place.env)
        self.lines: list[str] = []
        self.writes: dict[str, _Write] = {}
        self._asked: dict[str, None] = {}
        self._shapes: dict[str, None] = {}
        self._stands: dict[str, str] = {}
        self._exact: dict[str, None] = {}
        self._leaves: dict[str, None] = {}

    def read(self, body: Sequence[ast.stmt], *, graph: bool) -> None:
        """Take in statements; without `graph`, they run under `torch.no_grad()`."""
        for statement in body:
            if isinstance(statement, ast.With):
                managers = [self.site.resolve(_called(item.context_expr)) for item in statement.items]
                if managers != ["torch.no_grad"]:
                    raise NotProven(f"`{speculation.short(statement.items[0].context_expr)}` may have effects")
                self.read(statement.body, graph=False)
            elif isinstance(statement, ast.Assert):
                self._assertion(statement)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assignment(statement.targets[0], statement, graph)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._call(statement.value, graph)
            else:
                raise NotProven(f"`{speculation.short(statement)}` does more than assign tensors")

    def _assertion(self, statement: ast.Assert) -> None:
        test = statement.test
        for part in operands_of(test, ast.And):
            plain = isinstance(part, ast.Compare) and is_none(part.comparators[0])
            if not plain or not isinstance(part, ast.Compare) or not isinstance(part.ops[0], ast.IsNot):
                raise NotProven(f"`{speculation.short(statement)}` may raise where eager mode skips it")
            if dotted(part.left) is None:
                raise NotProven(f"`{speculation.short(part)}` may have effects")
            self._asked[self.site.text(part)] = None

    def _assignment(self, target: ast.expr, statement: ast.Assign, graph: bool) -> None:
        if isinstance(target, ast.Name):
            if self.site.live_after(target.id):
                raise NotProven(f"`{target.id}` is read after the branch")
            text = self._computed(statement.value)
            value = self.site.evaluator.value(statement.value, self.env)
            self._stands[target.id] = self._bind(target.id, text)
            self.env[target.id] = value
            return
        inner = without_data(target)
        name = self._attribute(inner)
        if name is None:
            raise NotProven(f"`{speculation.short(target)}` is not a tensor of the instance")
        kept = statement.value
        while isinstance(kept, (ast.Attribute, ast.Call)) and (under := _detached(kept)) is not None:
            kept = under
        if not self.site.is_fresh(self.site.evaluator.value(kept, self.env)):
            raise NotProven(f"`{speculation.short(statement.value)}` may share memory with another tensor")
        self._write(name, "rebound" if inner is target else "data", statement.value, detached=not graph)
        self._exact[name] = None

    def _call(self, call: ast.Call, graph: bool) -> None:
        called = call.func
        if not isinstance(called, ast.Attribute) or FILLS.get(called.attr) != len(call.args) or call.keywords:
            raise NotProven(f"`{speculation.short(call)}` may have side effects")
        receiver = called.value
        inner = without_data(receiver)
        name = self._attribute(inner)
        if name is None:
            raise NotProven(f"`{speculation.short(receiver)}` is not a tensor of the instance")
        fact = self.site.evaluator.scope.attribute(name)
        if graph and inner is receiver and (fact is None or fact.kind is not AttributeKind.BUFFER):
            raise NotProven(f"`{speculation.short(call)}` raises where `{self.own}.{name}` requires a gradient")
        if graph and inner is receiver:  # a buffer that somebody made a parameter
            self._leaves[f"not ({self.site.torch}.is_grad_enabled() and {self.own}.{name}.requires_grad)"] = None
        if called.attr == "copy_":
            self._write(name, "filled", call.args[0], detached=True)
            self._exact[name] = None
            return
        number = call.args[0] if call.args else None
        if number is not None and not (isinstance(number, ast.Constant) and isinstance(number.value, (bool, int))):
            raise NotProven(f"`{speculation.short(call)}` fills with something that is no integer")
        filled = f"{self.site.torch}.full_like({self.own}.{name}, {self.site.text(number) if number else 0})"
        self._note(name, "filled", self._bind(f"new_{name}", filled))

    def _write(self, name: str, how: str, value: ast.expr, *, detached: bool) -> None:
        text = self._computed(value)
        if how == "rebound" and not detached and _detached(value) is None and not self._is_literal(value):
            raise NotProven(f"`{self.own}.{name}` would keep the graph of each call")
        if detached and _detached(value) is None:
            text = f"({text}).detach()" if isinstance(value, (ast.BinOp, ast.UnaryOp)) else f"{text}.detach()"
        held = self.site.evaluator.value(value, self.env)
        self._note(name, how, self._bind(f"new_{name}", text))
        self.env[f"{self.own}.{name}"] = held if held.is_tensor else self.site.evaluator.names.tensor()

    def _note(self, name: str, how: str, local: str) -> None:
        if name in self.writes and self.writes[name].how != how:
            raise NotProven(f"`{self.own}.{name}` is written in two ways")
        self.writes[name] = _Write(how, local)
        self._stands[f"{self.own}.{name}"] = local

    def _computed(self, node: ast.expr) -> str:
        """The text of a value, with what the branch computed before in the place of names; NotProven if it may
        not be computed in any case."""
        written: dict[int, tuple[ast.expr, str]] = {}
        leaves: list[str] = []
        for part in walk_in_layers(node):
            if not isinstance(part, ast.Name) and not (isinstance(part, ast.Attribute) and self._attribute(part)):
                continue
            name = dotted(part) or ""
            if name in self._stands:
                written[id(part)] = (part, self._stands[name])
            elif self._attribute(part) is not None and self.writes and self._is_tensor(part):
                raise NotProven(f"`{name}` may share memory with what the branch wrote before")
            elif self._is_tensor(part):
                leaves.append(name)
        if self._is_literal(node):
            return self.site.text(node)
        found = speculation.judge(self.site.evaluator, node, self.env)
        if why := found.where_skipped:
            raise NotProven(why)
        for need in shape_needs.in_order(found.needs_shapes):
            if (asked := shape_needs.asked(need, self.site.place.env)) is None:
                raise NotProven(f"`{speculation.short(node)}` may raise for some shapes where eager mode skips it")
            self._shapes[asked] = None
        if found.needs_floating and any(isinstance(part, ast.Compare) for part in ast.walk(node)):
            raise NotProven(f"cannot infer the dtypes in `{speculation.short(node)}`")
        self._asked |= dict.fromkeys(f"isinstance({name}, {self.site.torch}.Tensor)" for name in leaves)
        self._shapes |= dict.fromkeys(f"{name}.is_floating_point()" for name in leaves if found.needs_floating)
        return self.site.but(written=written).text(node)

    def _is_literal(self, node: ast.expr) -> bool:
        """`torch.tensor(1.0)`."""
        plain = isinstance(node, ast.Call) and [type(each) for each in (*node.args, *node.keywords)] == [ast.Constant]
        return plain and isinstance(node, ast.Call) and self.site.resolve(node.func) == "torch.tensor"

    def _bind(self, wish: str, text: str) -> str:
        taken = [line.partition(" = ")[0] for line in self.lines]
        name = self.site.free_name(*(f"{wish}{end}" for end in ("", "_now", "_then") if f"{wish}{end}" not in taken))
        self.lines.append(f"{name} = {text}")
        return name

    def _attribute(self, node: ast.expr) -> str | None:
        own = is_attribute(node, self.own)
        return node.attr if own and isinstance(node, ast.Attribute) else None

    def _is_tensor(self, node: ast.expr) -> bool:
        return self.site.evaluator.value(node, self.env).kind is ValueKind.TENSOR

    def conditions(self) -> list[str]:
        """What the header asks for: that tensors are tensors, and what computes in any case does not raise."""
        torch, own = self.site.torch, self.own
        rebound = [name for name, each in self.writes.items() if each.how == "rebound"]
        return [
            *(f"isinstance({own}.{name}, {torch}.Tensor)" for name in self.writes),
            *(f"not isinstance({own}.{name}, {torch}.nn.Parameter)" for name in rebound),
            *(f'_may_replace_data({own}, "{name}")' for name in self._replaced()),
            *self._leaves,
            *self._asked,
            *self._shapes,
        ]

    def _replaced(self) -> list[str]:
        return [name for name, each in self.writes.items() if each.how == "data"]

    def helpers(self) -> tuple[Helper, ...]:
        """The functions of the module that the compile path calls."""
        texts = {"_owns_its_memory": _OWNS, "_may_replace_data": _FITS, "_replace_data": _REPLACE}
        if not self._replaced():
            return ()
        own = (
            Helper(name, text.format(torch=self.site.torch).strip("\n"), shared=True) for name, text in texts.items()
        )
        return (CONSTANT, *own)

    def facts(self) -> list[str]:
        """What has to hold of what was computed."""
        found = []
        for name in self._exact:
            one, other = self.writes[name].value, f"{self.own}.{name}"
            found.append(f"({one}.shape, {one}.dtype, {one}.device) == ({other}.shape, {other}.dtype, {other}.device)")
        return found

    def selects(self, chosen: str) -> list[str]:
        """The statements that write.

        With gradients, `x.data.copy_(y)` is not enough for torch 2.13: where that is written into a tensor that needs
        one, and a counter is counted up, AOTAutograd returns the wrong tensors. Without `.data`, it raises where the
        tensor was used before.
        """
        lines, filled = [], []
        for name, (how, value) in self.writes.items():
            place = f"{self.own}.{name}"
            select = f"{self.site.torch}.where({chosen}, {value}, {place}{'' if how == 'rebound' else '.data'})"
            if how == "filled":
                filled.append(f"    {place}.data.copy_({select})")
            else:
                lines.append(f"{place} = {select}" if how == "rebound" else f"_replace_data({place}, {select})")
        return [*lines, *([f"with {self.site.torch}.no_grad():", *filled] if filled else [])]


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) and not node.args else node


def without_data(node: ast.expr) -> ast.expr:
    """`x` for `x.data`; any other expression unchanged."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node


def _detached(node: ast.expr) -> ast.expr | None:
    """`x` for `x.data` and `x.detach()`."""
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Attribute) and node.func.attr == "detach" and not node.args
        return node.func.value if plain and isinstance(node.func, ast.Attribute) else None
    return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else None
