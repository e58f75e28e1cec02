"""Branches that write elements of tensors: `if t: x[i] = v` as `x[i] = torch.where(t, v, x[i])`.

The write stays a write in place, so that whoever shares the memory sees it; where eager mode skips it, elements get the
values that they have. Branches run one after the other, each write under the condition of its branch, which is computed
before the first of them. Under a mask, `x[m] = v` becomes `x[m & t] = v`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import argument_limits, speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import same, targets_of, without_minus
from graphmend_codemod.analysis.scope import dotted, walk, walk_scope
from graphmend_codemod.analysis.torch_api import REDUCTIONS, SAME_ANY_DTYPE, SAME_IF_FLOATING, torch_function
from graphmend_codemod.analysis.values import BOOL, Value, ValueKind
from graphmend_codemod.core.findings import Original
from graphmend_codemod.rules.framework.conditions import once
from graphmend_codemod.rules.framework.edits import in_front
from graphmend_codemod.rules.framework.reasons import NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.log_guard import without_messages
from graphmend_codemod.rules.proofs.select.assumptions import Assumption, is_dotted
from graphmend_codemod.rules.proofs.select.select_proof import SelectProof, judged
from graphmend_codemod.rules.proofs.select.select_text import where
from graphmend_codemod.rules.proofs.select.selection import Assignment, Selection, arms, assignments

_LARGEST_INT8 = 127
_INFINITIES = frozenset({"math.inf", "numpy.inf", "torch.inf", "math.nan", "numpy.nan", "torch.nan"})
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Write(NamedTuple):
    """`target = value`, or `target op= given`, of which `value` is the whole. `mask` is the index where that is one."""

    statement: ast.stmt
    target: ast.Subscript
    value: ast.expr
    given: ast.expr
    mask: ast.expr | None

    @property
    def name(self) -> str:
        """The name of the tensor."""
        return self.target.value.id  # type: ignore[attr-defined, no-any-return]


def writes_elements(node: ast.If) -> bool:
    """True where a branch of a chain of `if`s writes an element."""
    body = [*node.body, *node.orelse]
    inner = node.orelse[0] if len(node.orelse) == 1 else None
    if any(isinstance(target, ast.Subscript) for each in body for target in targets_of(each)):
        return True
    return isinstance(inner, ast.If) and writes_elements(inner)


def diagnose(message: str, site: Site, node: ast.If) -> Diagnostic:
    """The diagnostic with the edit; NotProven with the reason where there is none."""
    reader = _Reader()
    selection = Selection(site, node, arms(site, node, reader), ())
    _check_names(selection)
    _check_mask(selection, reader)
    judge = judged(selection, lambda chosen, assumed: _Judge(chosen, assumed, reader))
    facts = judge.result()
    first = selection.arms[0].condition
    assert first is not None
    static = [site.operand_of_and(operand) for operand in first.static]
    no_grad = f"not {site.torch}.is_grad_enabled()"
    inside = list(dict.fromkeys([*facts.conditions, *judge.asked]))
    off = site.no_grad or no_grad in inside
    for name in dict.fromkeys(each.name for each in reader.writes.values()):
        inside += [] if off else may_be_written(site, name, site.place.env[name])
    lines = _Text(selection, reader, judge).lines()
    return Diagnostic(message, edit=in_front(site, node, [*static, *once(inside)], lines))


class _Reader:
    """Reads branches: what a write needs comes as assignments to names that no variable has."""

    def __init__(self) -> None:
        self.writes: dict[int, Write] = {}

    def __call__(self, site: Site, body: Sequence[ast.stmt]) -> tuple[Assignment, ...]:
        found: list[Assignment] = []
        for statement in without_messages(site, body):
            inner = site.at(statement)
            write = _write(inner, statement) if inner is not None else None
            if write is None:
                found += assignments([statement])
                continue
            self.writes[id(statement)] = write
            number = len(self.writes)
            place = write.target if write.mask is None else write.mask
            found.append(Assignment(statement, f".tensor {number}", write.target.value))
            found.append(Assignment(statement, f".place {number}", place))
            found.append(Assignment(statement, f".value {number}", write.value))
        return tuple(found)

    def write(self, item: Assignment) -> Write | None:
        """The write that an assignment of its value stands for."""
        return self.writes[id(item.statement)] if item.name.startswith(".value") else None


def _write(site: Site, statement: ast.stmt) -> Write | None:
    targets = targets_of(statement)
    target = targets[0] if len(targets) == 1 else None
    if not isinstance(target, ast.Subscript):
        return None
    if not isinstance(target.value, ast.Name) or not site.value(target.value).is_tensor:
        raise NotProven(cannot_infer_tensor(site, target.value))
    if any(isinstance(part, ast.NamedExpr) for part in walk(statement)):
        raise NotProven(f"`{speculation.short(statement)}` binds a name")
    mask = target.slice if site.value(target.slice).kind is ValueKind.TENSOR else None
    if mask is not None and site.value(mask).dtype != BOOL:
        raise NotProven(f"cannot infer that `{speculation.short(mask)}` is a mask; convert it: `.bool()`")
    given: ast.expr = statement.value  # type: ignore[attr-defined]
    value = given
    if isinstance(statement, ast.AugAssign):
        if mask is not None or type(statement.op) not in _OPERATORS:
            raise NotProven(f"`{speculation.short(statement)}` writes in place")
        value = ast.copy_location(ast.BinOp(target, statement.op, given), statement)
    return Write(statement, target, value, given, mask)


def _check_names(selection: Selection) -> None:
    """NotProven where a variable of a branch is read outside of it."""
    for arm in selection.arms:
        names = {item.name for item in arm.assignments if not item.name.startswith(".")}
        for name in sorted(names):
            if selection.site.live_after(name):
                raise NotProven(f"`{name}` is assigned beside elements, and used after the branch")
            for other in selection.arms:
                if other is not arm and reads_before_writing([item.statement for item in other.assignments], name):
                    raise NotProven(f"`{name}` is used in several branches")


def _check_mask(selection: Selection, reader: _Reader) -> None:
    """NotProven where the test asks whether there is an element to write: then the write alone does as well."""
    condition = selection.arms[0].condition
    tests = condition.tensors if condition is not None else ()
    for each in (write for write in reader.writes.values() if write.mask is not None):
        for test in tests:
            mask = each.mask.operand if isinstance(each.mask, ast.UnaryOp) else each.mask
            if any(mask is not None and same(part, mask) for part in walk(test)):
                raise NotProven(f"`{speculation.short(each.statement)}` writes under the mask that the test looks at")


class _Judge(SelectProof):
    """Judges branches that write elements. `asked` are conditions of their own."""

    def __init__(self, selection: Selection, assumed: tuple[Assumption, ...], reader: _Reader) -> None:
        super().__init__(selection, assumed)
        self.reader = reader
        self.asked: list[str] = []
        self.converted: set[int] = set()
        self._numbers_alone = True

    def floating(self) -> frozenset[str]:
        """As for other selects; where numbers alone are written, masks may be made of any dtype that raises nothing."""
        strict = self.hazards.strict
        return strict if self._numbers_alone and all(map(is_dotted, strict)) else super().floating()

    def judge_value(self, position: int, item: Assignment, env: Env) -> None:
        """Judge what a branch computes, and what it writes."""
        super().judge_value(position, item, env)
        write = self.reader.write(item)
        evaluator = self.site.evaluator
        part_of_write = id(item.statement) in self.reader.writes
        plain = part_of_write if write is None else isinstance(write.value, ast.Constant)
        self._numbers_alone = self._numbers_alone and plain
        if write is None:
            return
        if write.mask is not None:
            self._judge_mask(write, write.mask, env)
        value, tensor = evaluator.value(item.value, env), evaluator.value(write.target.value, env)
        if isinstance(write.statement, ast.AugAssign):
            self._judge_cast(write, evaluator.value(write.given, env), tensor)
        if value.kind is ValueKind.TENSOR:
            self._judge_tensor(write, value, tensor)
            own = self.site.roots(write.target.value, env)
            if not self.site.roots(write.given, env) <= own:
                self.other_leaves = True
        else:
            self._judge_number(write, value, tensor, env)

    def _judge_cast(self, write: Write, given: Value, tensor: Value) -> None:
        """Ask for what `out[i] += v` needs in order not to raise: a dtype that takes the result in place."""
        statement, name = write.statement, write.name
        number = write.given.value if isinstance(write.given, ast.Constant) else None
        divides = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Div)
        if tensor.is_floating and not tensor.hint and (given.is_floating or isinstance(number, (int, float))):
            return
        if type(number) is int and not divides:
            if tensor.dtype is None or tensor.dtype == BOOL or tensor.hint:
                self._ask(f"{name}.dtype != {self.site.torch}.bool", write)
        elif divides or given.kind is not ValueKind.TENSOR:
            self._need(Assumption("floating", name))
        if given.kind is ValueKind.TENSOR and not (given.is_floating and not given.hint):
            other = self.site.operand(write.given)
            takes = f"{name}.is_floating_point() and not {other}.is_complex()"
            self._ask(f"({name}.dtype == {other}.dtype or ({takes}))", write)

    def _judge_mask(self, write: Write, mask: ast.expr, env: Env) -> None:
        evaluator = self.site.evaluator
        if evaluator.value(mask, env).shape != evaluator.value(write.target.value, env).shape:
            text = self.site.operand(mask)
            self._ask(f"{write.name}.shape[: {text}.dim()] == {text}.shape", write)

    def _judge_number(self, write: Write, value: Value, tensor: Value, env: Env) -> None:
        node = write.value
        literal = without_minus(node)
        number = literal.value if isinstance(literal, ast.Constant) else None
        if isinstance(number, int) and literal is node and number <= _LARGEST_INT8:
            return
        if isinstance(literal, (ast.Constant, ast.JoinedStr)) and not isinstance(number, (int, float)):
            raise NotProven(f"`{speculation.short(node)}` is neither a Tensor nor a number")
        known = isinstance(number, (int, float)) or self.site.resolve(literal) in _INFINITIES
        if not known and value.kind is ValueKind.UNKNOWN:
            if dotted(node) is None:
                raise NotProven(cannot_infer_tensor(self.site, node))
            self._ask(f"isinstance({self.site.text(node)}, (int, float))", write)
        if not tensor.is_floating:
            self._need(Assumption("floating", write.name))
            return
        if write.mask is not None and not argument_limits.fits(self.site.evaluator, node, env, tensor):
            raise NotProven(f"`{speculation.short(node)}` may not fit into the dtype of `{write.name}`, which raises")

    def _judge_tensor(self, write: Write, value: Value, tensor: Value) -> None:
        if not value.is_tensor:
            raise NotProven(f"`{speculation.short(write.given)}` may be None")
        if value.dtype != tensor.dtype:
            self.converted.add(id(write.statement))
        if value.is_single or (write.mask is None and _is_like(self.site, write.value, write.target)):
            return
        if write.mask is not None or not _is_view(write.value):
            raise NotProven(f"`{speculation.short(write.given)}` may have a different shape from what it is written to")
        self._ask(f"{self.site.text(write.value)}.shape == {self.site.text(write.target)}.shape", write)

    def _ask(self, condition: str, write: Write) -> None:
        made = {item.name for item in self.selection.temporaries}
        if any(isinstance(part, ast.Name) and part.id in made for part in walk(write.statement)):
            raise NotProven(f"`{speculation.short(write.statement)}` reads what its branch computes")
        self.asked.append(condition)


def _is_like(site: Site, node: ast.expr, target: ast.expr) -> bool:
    """True for what is computed element by element of what is written to, and of single numbers."""
    if same(node, target):
        return True
    if isinstance(node, ast.Subscript) and isinstance(target, ast.Subscript) and same(node.slice, target.slice):
        return site.value(node.value).is_tensor and site.value(node.value).shape == site.value(target.value).shape
    if isinstance(node, ast.UnaryOp):
        return _is_like(site, node.operand, target)
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not _is_number(site, side)]
        return bool(sides) and all(_is_like(site, side, target) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    name = torch_function(site.resolve(node.func))
    first, rest = (node.args[0], node.args[1:]) if name is not None and node.args else (None, node.args)
    if name is None and isinstance(node.func, ast.Attribute):
        name, first = node.func.attr, node.func.value
    keeps = name in SAME_ANY_DTYPE | SAME_IF_FLOATING and not any(word.arg == "out" for word in node.keywords)
    return (
        keeps and all(_is_number(site, each) for each in rest) and first is not None and _is_like(site, first, target)
    )


def _is_number(site: Site, node: ast.expr) -> bool:
    value = site.value(node)
    return value.is_python or value.is_single


def _is_view(node: ast.expr) -> bool:
    """True for what a header may ask for the shape: names, attributes, and parts of them."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) is not None


def may_be_written(site: Site, name: str, value: Value) -> list[str]:
    """The condition under which autograd lets a tensor be written in place where eager mode leaves it alone.

    A leaf may not be written, and what another operation saved for its gradient (`z = h * h`) may not be changed.
    """
    made = not value.hint and not value.grad and site.is_fresh(value) and not asks_gradient(site)
    return [] if made else [f"not ({site.torch}.is_grad_enabled() and {name}.requires_grad)"]


def asks_gradient(site: Site) -> bool:
    """True where the function may make a leaf that requires gradients."""
    return any(
        (isinstance(part, ast.keyword) and part.arg == "requires_grad")
        or (isinstance(part, ast.Attribute) and part.attr.startswith("requires_grad"))
        for part in walk_scope(site.evaluator.scope.node)
    )


class _Text:
    """The lines of the compile path."""

    def __init__(self, selection: Selection, reader: _Reader, judge: _Judge) -> None:
        self.selection, self.site = selection, selection.site
        self.reader, self.judge = reader, judge
        chain = [arm.condition for arm in selection.arms if arm.condition is not None]
        self.conditions = [_own(self.site, condition.choice) for condition in chain]

    def lines(self) -> list[str | Original]:
        """The conditions, then what each branch does."""
        steps = [(number, item) for number, arm in enumerate(self.selection.arms) for item in _steps(arm.assignments)]
        parts: list[str | Original] = []
        if len(steps) > 1:
            parts += self._named()
        for number, item in steps:
            write = self.reader.writes.get(id(item.statement))
            parts += [self._written(number, write) if write else self.site.original(item.statement), "\n    "]
        return parts[:-1]

    def _named(self) -> Iterator[str]:
        several = len(self.conditions) > 1
        for position, text in enumerate(self.conditions):
            name = self.site.free_name(f"condition_{position + 1}" if several else "condition")
            self.conditions[position] = name
            yield f"{name} = {text}\n    "

    def _written(self, number: int, write: Write) -> str:
        site, target = self.site, self.site.text(write.target)
        value = self._value(write)
        if write.mask is not None:
            under = f"{site.operand(write.mask)} & {_tight(self._taken(number))}"
            return f"{site.text(write.target.value)}[{under}] = {value}"
        if number == 1 and len(self.conditions) == 1:
            return where(site, f"{target} = ", self.conditions, [target, value], 1)
        return where(site, f"{target} = ", [self._taken(number)], [value, target], 1)

    def _value(self, write: Write) -> str:
        site, text = self.site, self.site.text(write.given)
        tight = isinstance(write.given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
        if isinstance(write.statement, ast.AugAssign):
            sign = _OPERATORS[type(write.statement.op)]
            text, tight = f"{site.text(write.target)} {sign} {text if tight else f'({text})'}", False
        if id(write.statement) in self.judge.converted:
            return f"{text if tight else f'({text})'}.to({write.name}.dtype)"
        return text

    def _taken(self, number: int) -> str:
        """The condition under which this branch is taken."""
        several = len(self.conditions) > 1 or number > 0
        before = [f"~{_tight(each)}" for each in self.conditions[:number]]
        own = self.conditions[number : number + 1]
        return " & ".join([*before, *(_tight(each) if several else each for each in own)])


def _steps(items: Sequence[Assignment]) -> list[Assignment]:
    """One of the assignments that stand for a statement, in order."""
    return [item for item in items if not item.name.startswith((".tensor", ".place"))]


def _tight(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else f"({text})"


def _own(site: Site, text: str) -> str:
    """A condition in memory of its own: what is written below must not change it."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, (ast.Compare, ast.BinOp, ast.UnaryOp)):
        return text
    named = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    if named == "reshape" and isinstance(node.func.value, (ast.Compare, ast.BinOp, ast.UnaryOp)):  # type: ignore[attr-defined]
        return text
    return text if named in REDUCTIONS else f"{_tight(text)}.clone()"
