"""A number that a tensor chooses, kept in a 0-dim tensor: `scale = 1.0 if x.max() <= 1.0 else 255.0` (GM101)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_given, other_side, reads_name, written_number
from graphmend_codemod.analysis.scope import parents_in, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import in_front, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition
from graphmend_codemod.rules.proofs.conditions.trace_time_conditions import tensor_checks
from graphmend_codemod.rules.proofs.conditions.type_conditions import asked_below, tensor_facts, tensors_below
from graphmend_codemod.rules.proofs.numbers.kept.kept_operands import held_by_half
from graphmend_codemod.rules.proofs.numbers.kept.scalar_uses import why_not_local

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_OPERATIONS = frozenset("add sub mul div add_ sub_ mul_ div_ multiply divide subtract true_divide".split())
_MOVES = frozenset({"to", "cpu", "cuda"})
_WIDE = frozenset({"torch.float32", "torch.float64"})


class NumberChoice(NamedTuple):
    """`name` is `first` where the test holds, else `second`."""

    name: str
    first: float
    second: float


def chosen(site: Site, node: ast.If | ast.IfExp) -> NumberChoice | None:
    """The choice between two numbers that a branch or conditional expression is; None for any other."""
    if isinstance(node, ast.IfExp):
        first, second = node.body, node.orelse
        statement = site.place.statement
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is node else None
        name = target.id if isinstance(target, ast.Name) and len(statement.targets) == 1 else None  # type: ignore[attr-defined]
    else:
        before, position = site.place.blocks[-1]
        other = node.orelse or before[max(position - 1, 0) : position]
        arms = [_assigned(node.body), _assigned(list(other))]
        if None in arms or arms[0][0] != arms[1][0] or site.is_elif(node):  # type: ignore[index]
            return None
        (name, first), (_, second) = arms  # type: ignore[misc]
    numbers = [written_number(each) for each in (first, second)]
    if name is None or numbers[0] is None or numbers[1] is None:
        return None
    return NumberChoice(name, numbers[0], numbers[1])


def _assigned(body: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    only = body[0] if len(body) == 1 else None
    plain = isinstance(only, ast.Assign) and len(only.targets) == 1 and isinstance(only.targets[0], ast.Name)
    return (only.targets[0].id, only.value) if plain else None  # type: ignore[union-attr]


def kept_choice(site: Site, node: ast.If | ast.IfExp, condition: Condition, what: NumberChoice) -> Edit:
    """The edit that selects the number on the device. NotProven where some use needs the number."""
    if condition.hazards.impure is not None:
        raise NotProven(condition.hazards.impure)
    anchor = next(_tensors(site, condition), None)
    beside = _beside(site, node, what.name)
    if anchor is None:
        raise NotProven(f"`{what.name}` is a number, and no tensor in the test has a name")
    facts = [*tensor_checks(site, list(condition.tensors)), *condition.facts]
    for there, other in beside:
        if there.value(other).dtype == site.place.env[anchor].dtype:
            continue  # computed from what is asked for already
        same = all(there.place.env.get(each) == site.place.env.get(each) for each in _names_of(other))
        facts += tensor_facts(there, other) if same else [*asked_below(there, other), *tensors_below(there, other)]
    names, like = set(_names_of(node.test)), site.place.env[anchor].dtype
    if any(not names & set(_names_of(other)) and there.value(other).dtype != like for there, other in beside):
        # One dtype that nobody names is that of tensors computed from one another.
        raise NotProven(f"`{what.name}` may meet a tensor on another device than its test")
    dtype, asked = _dtype(site, anchor, what, [there.value(other) for there, other in beside])
    conditions = [*map(site.operand_of_and, condition.static), *dict.fromkeys([*facts, *asked])]
    full = site.call(f"{anchor}.new_full(", ["()", repr(what.first), *dtype])
    line = site.call(f"{what.name} = {site.torch}.where(", [condition.choice, full, repr(what.second)], deeper=1)
    if isinstance(node, ast.If):
        return in_front(site, node, conditions, [line])._replace(scriptable=False)
    return two_paths(site, site.place.statement, [site.compiling, *conditions], [line])


def _tensors(site: Site, condition: Condition) -> Iterator[str]:
    for tensor in condition.tensors:
        for part in walk_in_layers(tensor):
            if isinstance(part, ast.Name) and site.value(part).is_tensor:
                yield part.id


def _beside(site: Site, node: ast.If | ast.IfExp, name: str) -> list[tuple[Site, ast.expr]]:
    """The tensors that the number is in arithmetic with, each with its place. NotProven for any other use."""
    if (reason := why_not_local(site, name, 1 if isinstance(node, ast.IfExp) else 2)) is not None:
        raise NotProven(reason)
    reads = {id(each) for each in walk_scope(site.evaluator.scope.node) if reads_name(each, name)}
    found: list[tuple[Site, ast.expr]] = []
    for place in site.flow.places.values():
        parents = parents_in(place.statement)
        for part in walk_in_layers(place.statement) if not hasattr(place.statement, "body") else ():
            if id(part) in reads:
                there = site.at(place.statement)
                other = None if there is None else _other(there, parents.get(id(part)), part)
                if there is None or other is None or not there.value(other).is_tensor:
                    raise NotProven(f"`{name}` is used as a Python number in `{short(parents[id(part)])}`")
                found.append((there, other))
                reads.discard(id(part))
    if reads or not found:
        raise NotProven(f"`{name}` is used elsewhere than in arithmetic with tensors")
    if any(moves(site, each) for each in walk_scope(site.evaluator.scope.node)):
        raise NotProven(f"`{name}` may meet a tensor on another device than its test")
    return found


def moves(site: Site, node: ast.AST) -> bool:
    """True for `x.cpu()` and the like, but not for `x.to(torch.float32)` and `x.to(y.dtype)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _MOVES:
        return False
    given = all_given(node)
    dtypes = [isinstance(each, ast.Attribute) and (each.attr == "dtype" or site.resolve(each)) for each in given]
    return not given or not all(dtypes)


def _names_of(node: ast.AST) -> Iterator[str]:
    yield from (part.id for part in walk_in_layers(node) if isinstance(part, ast.Name))


def _other(site: Site, around: ast.AST | None, part: ast.AST) -> ast.expr | None:
    """The other side of arithmetic or of a comparison, with an operator or a function of torch."""
    if isinstance(around, ast.BinOp) and isinstance(around.op, _ARITHMETIC):
        return other_side(around, part)
    if isinstance(around, ast.Call) and not around.keywords:
        name, given = site.operation(around)
        return given[0] if name in _OPERATIONS and len(given) == 2 and given[1] is part else None
    return None


def _dtype(site: Site, anchor: str, what: NumberChoice, values: list[Value]) -> tuple[list[str], list[str]]:
    """The argument that gives the tensor the dtype of those beside it, and what has to be asked for."""
    names = {str(value.dtype) for value in values}
    wanted = names.pop()
    if names:
        raise NotProven(f"`{what.name}` meets tensors of several dtypes")
    exact = held_by_half(what.first) and held_by_half(what.second)
    if wanted.startswith("torch."):
        if not values[0].is_floating or not (exact or wanted in _WIDE):
            raise NotProven(f"`{what.name}` meets a tensor of {wanted}, which may not hold the number")
        return [f"dtype={site.torch}.{wanted.removeprefix('torch.')}"], []
    env = site.place.env
    same = [key for key, value in env.items() if value.is_tensor and value.dtype == wanted and key.isidentifier()]
    if not same:
        raise NotProven(f"`{what.name}` meets a tensor of a dtype that no tensor has before")
    spelled = anchor if anchor in same else same[0]
    asked = [] if values[0].is_floating else [f"{spelled}.is_floating_point()"]
    asked = [*asked] if exact else [f"{spelled}.dtype in ({site.torch}.float32, {site.torch}.float64)"]
    if env[spelled].hint:
        asked.insert(0, f"isinstance({spelled}, {site.torch}.Tensor)")
    return [] if spelled == anchor else [f"dtype={spelled}.dtype"], asked
