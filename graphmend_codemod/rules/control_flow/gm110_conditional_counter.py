"""conditional-counter (GM110): a data-dependent branch that changes a Python number.

`if mask.sum().item() < n: count = count + 1` breaks the graph, although all that is done with `count` below is
arithmetic with tensors, which takes a 0-dim tensor as well. Under `torch.compile` both forms of what the branch assigns
are computed, and the tensor decides: the number becomes `count + condition`, a tensor `torch.where`. Eager mode keeps
its branch.

Each later use of the number has to be `range + number`, `range * number` or the like, with a `torch.arange` on the
device of a tensor: it has a dimension, so that its dtype does not depend on whether the number is a tensor. What else
the branch assigns has to be a select between the old tensor and a number, of the old shape, and integer, so that no
gradient is concerned. What may raise where eager mode skips the branch is asked for: a bool mask that can be expanded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.analysis import shape_needs, speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.patterns import expanded_like, is_name, mentions, other_side
from graphmend_codemod.analysis.scope import SCOPES, dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import Edit, Original
from graphmend_codemod.rules.framework.edits import before_if
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write
from graphmend_codemod.rules.proofs.select.selection import Assignment, assignments

rule = Rule(
    __name__,
    __doc__,
    title="keep a conditional counter in a tensor",
    contract=Contract(
        cost=Cost.BOTH_ARMS, cost_note="both forms of what the branch assigns are computed, and one is selected"
    ),
)

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_OF_TENSORS = frozenset({"shape", "device", "dtype", "to", "masked_fill", "expand", "sum"})


@dataclass(frozen=True)
class _Growth:
    """A branch: numbers that grow, tensors that are selected, and names of what may be no tensor."""

    condition: Condition
    others: tuple[str, ...]
    numbers: dict[str, int]
    tensors: tuple[str, ...]
    asked: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Conditions without which the branch might raise where eager mode skips it."""


@rule.on(ast.If, candidate="test")
def growing_number(site: Site, node: ast.If) -> Diagnostic | None:
    """`if mask.sum().item() < n: count = count + 1`."""
    growing = [grown[0] for statement in node.body if (grown := _growth(statement)) is not None]
    if not growing or site.torch is None or all(site.value(ast.Name(name, ast.Load())).is_tensor for name in growing):
        return None
    tensors = {name for name in _used_as_tensors(node) if not site.value(ast.Name(name, ast.Load())).is_python}
    inner = site.with_env(_with_tensors(site, site.place.env, tensors))
    condition = split(inner, node.test)
    if condition is None:
        return None
    message = f"data-dependent branch that changes a Python number: `{speculation.short(node.test)}`"
    try:
        growth = _judged(site, node, condition, tensors)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))
    return Diagnostic(message, edit=_edit(site, node, growth))


def _growth(statement: ast.stmt) -> tuple[str, int] | None:
    """The name and the number for `count = count + 1`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name, value = statement.targets[0].id, statement.value
    if len(statement.targets) != 1 or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    if not isinstance(value.right, ast.Constant) or type(value.right.value) is not int:
        return None
    return (name, value.right.value) if is_name(value.left, name) else None


def _used_as_tensors(node: ast.If) -> set[str]:
    """Names of which the branch reads what only a tensor has."""
    found = set()
    for statement in node.body:
        for part in walk_in_layers(statement):
            if isinstance(part, ast.Attribute) and part.attr in _OF_TENSORS and isinstance(part.value, ast.Name):
                found.add(part.value.id)
    return found


def _with_tensors(site: Site, env: Env, names: set[str]) -> Env:
    known = dict(env)
    for name in names:
        value = known.get(name)
        if value is None or not value.is_tensor:
            known[name] = site.evaluator.names.tensor()
    return known


def _judged(site: Site, node: ast.If, condition: Condition, tensors: set[str]) -> _Growth:
    if condition.several is not None:
        raise NotProven(f"`{condition.several}` may have more than one element; reduce it with `.any()` or `.all()`")
    if why := condition.hazards.impure or condition.skipped:
        raise NotProven(why)
    inside = site.at(node.body[0])
    if inside is None or site.is_elif(node) or _in_loop(site):
        raise NotProven("the branch is an `elif` or is inside a loop")
    found = assignments(node.body)
    numbers = dict(growth for item in found if (growth := _growth(item.statement)) is not None)
    selected: list[str] = []
    skipped = _Skipped(site, _with_tensors(site, inside.place.env, tensors))
    for position, item in enumerate(found):
        if any(item.name == other.name for other in found[:position]):
            raise NotProven(f"`{item.name}` is assigned twice")
        if item.name not in numbers and site.live_after(item.name):
            skipped.judge_mask(_mask_of_select(site, item, found[:position], set(numbers)))
            selected.append(item.name)
        elif item.name not in numbers and any(part.id == item.name for part in _names(node.test)):
            raise NotProven(f"`{item.name}` is also read by the test")
        elif item.name not in numbers:
            skipped.judge(item.value)
        skipped.bind(item.name, item.value)
    for name in numbers:
        _demand_arithmetic(site, node, name)
    if selected:
        demand_no_write(site, node, set(selected))  # without the branch, eager mode has no copy of them
    bound = {item.name for item in found}
    values = {name: site.place.env.get(name) for name in sorted({*tensors, *selected})}
    unsure = [name for name, value in values.items() if value is None or not value.is_tensor or value.hint]
    asked = tuple(name for name in unsure if name not in bound or name in selected)
    return _Growth(condition, tuple(_others(site, node)), numbers, tuple(selected), asked, skipped.conditions)


class _Skipped:
    """What eager mode skips and compiled code computes: nothing of it may act, and the header asks what may raise."""

    def __init__(self, site: Site, env: Env) -> None:
        self.env = dict(env)
        """What names hold at the value that is judged."""
        self._site, self._before = site, env
        self._bound: set[str] = set()
        self._conditions: dict[str, None] = {}

    def bind(self, name: str, node: ast.expr) -> None:
        """From here on `name` holds what the branch has computed, of which a header cannot ask."""
        self.env[name] = self._site.evaluator.value(node, self.env)
        self._bound.add(name)

    def judge(self, node: ast.expr) -> None:
        """NotProven for what may act or raise."""
        found = speculation.judge(self._site.evaluator, node, self.env)
        if why := found.where_skipped:
            raise NotProven(why)
        for need in shape_needs.in_order(found.needs_shapes):
            text = shape_needs.asked(need, self._before)
            if text is None or self._site.scripted or shape_needs.names_in(need) & self._bound:
                raise NotProven(f"`{speculation.short(node)}` may raise for some shapes where eager mode skips it")
            self._conditions[text] = None
        for text in sorted(each for each in found.strict if not _is_only_cast(node, each)):
            self._ask_dtype(ast.parse(text, mode="eval").body if "..." not in text else node, ".is_floating_point()")

    def judge_mask(self, node: ast.Call) -> None:
        """The same for `mask.expand(x.shape)`, which has to be bool for `torch.where`."""
        self.judge(node)
        mask = _whole(node.func.value)  # type: ignore[attr-defined]
        value = self._site.evaluator.value(mask, self.env)
        if value.dtype != BOOL or (value.hint and not shape_needs.casts(mask)):
            self._ask_dtype(mask, f".dtype == {self._site.torch}.bool")

    def _ask_dtype(self, node: ast.expr, what: str) -> None:
        """NotProven where no header can ask it."""
        node = _whole(node)
        text = dotted(node)
        if text is None or text.partition(".")[0] in self._bound:
            raise NotProven(f"cannot infer the dtype of `{speculation.short(node)}`; convert it first: `.to(dtype)`")
        self._conditions[f"{text}{what}"] = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the header asks, in an order in which each may be asked."""
        return tuple(self._conditions)


def _whole(node: ast.expr) -> ast.expr:
    """The tensor for some of its elements: it has their dtype."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_only_cast(node: ast.expr, text: str) -> bool:
    """True where a part of an expression is cast wherever it stands, which no dtype fails."""
    parts = [each for each in ast.walk(node) if isinstance(each, ast.expr)]
    cast = {id(each.func.value) for each in parts if shape_needs.casts(each)}  # type: ignore[attr-defined]
    return all(id(each) in cast for each in parts if speculation.short(each) == text)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    yield from (part for part in walk_in_layers(node) if isinstance(part, ast.Name))


def _in_loop(site: Site) -> bool:
    return any(isinstance(each, (ast.For, ast.AsyncFor, ast.While, ast.Try)) for each in site.place.parents)


def _others(site: Site, node: ast.If) -> Iterator[str]:
    """What must be false for the branches below not to be taken."""
    if not node.orelse:
        return
    other = node.orelse[0]
    if len(node.orelse) > 1 or not isinstance(other, ast.If) or other.orelse or not isinstance(other.test, ast.Name):
        raise NotProven("there is an `else` branch")
    yield site.text(other.test)


def _mask_of_select(site: Site, item: Assignment, before: tuple[Assignment, ...], numbers: set[str]) -> ast.Call:
    """`mask.expand(x.shape)` of `x = torch.where(mask.expand(x.shape), x, number)`; NotProven for anything else."""
    value, name = item.value, item.name
    reason = f"`{speculation.short(item.statement)}` is not a select between `{name}` and a number"
    if not isinstance(value, ast.Call) or value.keywords or len(value.args) != 3:
        raise NotProven(reason)
    chosen, kept, other = value.args
    if site.resolve(value.func) != "torch.where" or not is_name(kept, name):
        raise NotProven(reason)
    made = [each.value for each in before if isinstance(chosen, ast.Name) and each.name == chosen.id]
    mask = made[0] if made else chosen
    if isinstance(mask, ast.Call) and is_name(expanded_like(mask), name) and _is_integer(site, other, numbers):
        return mask
    raise NotProven(reason)


def _is_integer(site: Site, node: ast.expr, numbers: set[str]) -> bool:
    """True for an integer that is computed from these numbers, and for `torch.tensor(integer, dtype=torch.long)`."""
    if isinstance(node, ast.Call):
        dtypes = {site.resolve(word.value) for word in node.keywords if word.arg == "dtype"}
        whole = dtypes <= {"torch.long", "torch.int64"} and len(node.args) == 1
        return whole and site.resolve(node.func) == "torch.tensor" and _is_integer(site, node.args[0], numbers)
    if isinstance(node, ast.BinOp):
        kept = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
        return kept and _is_integer(site, node.left, numbers) and _is_integer(site, node.right, numbers)
    return (isinstance(node, ast.Name) and node.id in numbers) or (
        isinstance(node, ast.Constant) and type(node.value) is int
    )


def _demand_arithmetic(site: Site, node: ast.If, name: str) -> None:
    """NotProven where a use of the number below the branch cannot be one of a tensor."""
    function = site.evaluator.scope.node
    blocks = Blocks(function)
    for inner in walk_scope(function):
        if isinstance(inner, SCOPES) and mentions(inner, name):
            raise NotProven(f"`{name}` is used in a nested function")
    after = [part for part in walk_in_layers(function) if getattr(part, "lineno", 0) > (node.end_lineno or 0)]
    for part in after:
        for use in ast.iter_child_nodes(part):
            if not is_name(use, name):
                continue
            if not isinstance(use.ctx, ast.Load):
                raise NotProven(f"`{name}` is assigned again below")
            other = _other_operand(part, use)
            if other is None or not _has_dimensions(site, blocks, part, other):
                raise NotProven(f"`{speculation.short(part)}` may need a Python number")


def _other_operand(node: ast.AST, use: ast.Name) -> ast.expr | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, _OPERATORS):
        return None
    return other_side(node, use)


def _has_dimensions(site: Site, blocks: Blocks, node: ast.AST, other: ast.expr) -> bool:
    """True for `torch.arange(n, device=x.device)`: a tensor with dimensions, where the other tensors are."""
    bound = blocks.binding_before(blocks.statement_of(node), other.id) if isinstance(other, ast.Name) else None
    made = bound.value if bound is not None else other
    if not isinstance(made, ast.Call) or site.resolve(made.func) != "torch.arange":
        return False
    devices = [word.value for word in made.keywords if word.arg == "device"]
    return len(devices) == 1 and isinstance(devices[0], ast.Attribute) and devices[0].attr == "device"


def _edit(site: Site, node: ast.If, growth: _Growth) -> Edit:
    names = [*growth.numbers, *growth.tensors]
    condition = site.free_name("condition")
    before = {name: site.free_name(f"{name}_before") for name in names}
    conditions = [
        site.compiling,
        *(site.operand_of_and(each) for each in growth.condition.static),
        *(f"not {each}" for each in growth.others),
        *(f"isinstance({name}, {site.torch}.Tensor)" for name in growth.asked),
        *growth.condition.facts,
        *growth.needs,
        *(f"type({name}) is int" for name in growth.numbers),
        *(f"{name}.dtype == {site.torch}.int64" for name in growth.tensors),
    ]
    numbers = " and ".join(f"`{name}`" for name in growth.numbers)
    is_one = "is a tensor" if len(growth.numbers) == 1 else "are tensors"
    first, last = site.span(node.body[0]), site.span(node.body[-1])
    body = Original(first.through(last))
    ahead = [
        f"# The tensor decides, so {numbers} {is_one} of one element from here on.",
        f"{condition} = {growth.condition.text}",
        f"{', '.join(before.values())} = {', '.join(names)}",
    ]
    behind = [
        f"{name} = {before[name]} + {condition if by == 1 else f'{by} * {condition}'}"
        for name, by in growth.numbers.items()
    ]
    behind += [f"{name} = {site.torch}.where({condition}, {name}, {before[name]})" for name in growth.tensors]
    header = "if (\n    " + "\n    and ".join(conditions) + "\n):\n    "
    return before_if(site, node, (header, "\n    ".join(ahead), "\n    ", body, "\n    ", "\n    ".join(behind)))
