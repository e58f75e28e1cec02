"""Statements that pack a sequence, run a layer on it and pad it, and what may stand between them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    asks_for_compiler,
    asks_for_none,
    elements_of,
    is_attribute,
    is_literal,
    is_name,
    is_not,
    last_name,
    mentions,
    same,
)
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_PACKS, _PADS = "torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pad_packed_sequence"


class PackingCall(NamedTuple):
    """`targets = call`, or `targets[0] = call[0]` where only the first result is taken."""

    statement: ast.Assign
    call: ast.Call
    targets: list[ast.expr]

    @property
    def is_whole(self) -> bool:
        """True where one target gets all that the call gives, as in `padded = pad_packed_sequence(out)`."""
        return len(self.targets) == 1 and self.statement.value is self.call


class Lengths(NamedTuple):
    """The tensor whose numbers are lengths, the `name` that it is made of, and how a compile path spells it."""

    tensor: ast.expr
    name: str
    text: str


def lengths_of(site: Site, given: ast.expr) -> Lengths | None:
    """The tensor `x` of `x.tolist()` and `x.cpu().numpy()`, which packing takes as well; None for what reads none."""
    called = given.func if isinstance(given, ast.Call) and not (given.args or given.keywords) else None
    if not isinstance(called, ast.Attribute) or called.attr not in _READS or site.resolve(called) is not None:
        return None
    tensor, scope = called.value, site.evaluator.scope
    names = {part.id for part in walk(tensor) if isinstance(part, ast.Name) and site.resolve(part) is None}
    if len(names) != 1 or scope.self_name in names or not all(map(scope.is_local, names)) or not is_plain(site, tensor):
        return None
    moved = isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and tensor.func.attr == "cpu"
    plain = moved or called.attr == "numpy"  # an array is asked of the CPU alone
    return Lengths(tensor, names.pop(), site.text(tensor) if plain else f"{site.operand(tensor)}.cpu()")


def demand_lengths(site: Site, given: ast.expr) -> None:
    """NotProven for a call that may give an array of NumPy: no operator takes one."""
    listed = isinstance(given, ast.Call) and is_name(given.func, "list")
    if isinstance(given, ast.Call) and not listed and not site.value(given).is_tensor:
        raise NotProven(f"cannot infer that `{short(given)}` is a Tensor; pass a Tensor of lengths: `.cpu()`")


_READS = frozenset({"tolist", "numpy"})


def read_by(site: Site, statement: ast.stmt) -> Lengths | None:
    """What `lengths = x.tolist()` reads; None for other statements."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    return lengths_of(site, statement.value) if isinstance(statement.targets[0], ast.Name) else None


def before(site: Site, body: Sequence[ast.stmt], position: int, given: ast.expr) -> tuple[int, ast.expr | None] | None:
    """Where a statement before `position` packs what is given, and under which test; others may stand between them."""
    for number in range(position - 1, -1, -1):
        test = _test_around(site, body[number])
        packed = taken(only(body[number], test))
        if packed is not None and site.resolve(packed.call.func) == _PACKS:
            target = packed.statement.targets[0]
            named = packed.is_whole and isinstance(target, ast.Name) and is_one_name([given], target.id)
            return (number, test) if named else None
        if not isinstance(given, ast.Name) or not (flattens(body[number]) or _is_apart(site, body[number], given.id)):
            return None
    return None


def after(site: Site, body: Sequence[ast.stmt], position: int, ran: PackingCall, test: ast.expr | None) -> int | None:
    """Where a statement behind `position`, under the same test, pads what the layer gave, none between using it.

    Of `out = self.lstm(packed)` that is `out[0]`.
    """
    target = ran.targets[0]
    out = target.id if isinstance(target, ast.Name) else ""
    for number in range(position + 1, len(body)):
        around = _test_around(site, body[number])
        if around is not None and len(body[number].body) > 1:  # type: ignore[attr-defined]
            return None
        alike = (around is None) == (test is None) and (around is None or test is None or same(around, test))
        padded = taken(only(body[number], around)) if alike else None
        if padded is not None and site.resolve(padded.call.func) == _PADS and padded.call.args:
            given = padded.call.args[0]
            first = given.value if isinstance(given, ast.Subscript) and is_literal(given.slice, 0) else None
            if is_name(first if ran.is_whole else given, out):
                return number
        if not _is_apart(site, body[number], out):
            return None
    return None


def _test_around(site: Site, statement: ast.stmt) -> ast.expr | None:
    """`lengths is not None` where one statement stands under that, or also one that reads its lengths before.

    Attributes of the instance may stand there as well, and several such tests under `and`, `or` and `not`.
    """
    if not isinstance(statement, ast.If) or statement.orelse or not _is_one(site, statement.body):
        return None
    return statement.test if _is_decided(site, statement.test) else None


def _is_one(site: Site, body: list[ast.stmt]) -> bool:
    return len(body) == 1 or (len(body) == 2 and read_by(site, body[0]) is not None)


def _is_decided(site: Site, test: ast.expr) -> bool:
    """True for tests that Dynamo decides, and that say the same when they are asked again."""
    if isinstance(test, ast.BoolOp):
        return all(_is_decided(site, each) for each in test.values)
    if is_not(test):
        return _is_decided(site, test.operand)
    asked = test.left if asks_for_none(test) else test
    if is_attribute(asked, site.evaluator.scope.self_name):
        return not is_loud_property(site.evaluator, asked.attr)
    return isinstance(asked, ast.Name) and asked is not test


def only(statement: ast.stmt, test: ast.expr | None) -> ast.stmt:
    """The statement itself, or the one that stands under the test, behind what reads its lengths."""
    return statement.body[-1] if test is not None and isinstance(statement, ast.If) else statement


def _is_apart(site: Site, statement: ast.stmt, name: str) -> bool:
    """True for assignments to names that change nothing else and do not touch a packed sequence."""
    if mentions(statement, name):
        return False
    if not isinstance(statement, ast.Assign) or not is_plain(site, statement.value):
        return False
    names = (part for each in statement.targets for part in elements_of(each))
    return all(isinstance(each, ast.Name) for each in names)


def is_plain(site: Site, node: ast.expr) -> bool:
    """True where an expression certainly computes and does nothing else: it may run earlier or later."""
    for part in walk(node):
        if isinstance(part, ast.Attribute) and is_loud_property(site.evaluator, part.attr):
            return False
        if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(part, ast.Call):
            name = last_name(part.func) or ""
            called = site.resolve(part.func) or ""
            method = isinstance(part.func, ast.Attribute) and not called and name in _METHODS
            plain = method or (called.startswith("torch.") and called.count(".") == 1)
            if not plain or name.endswith("_") or any(word.arg in {None, "out", "inplace"} for word in part.keywords):
                return False
    return True


_METHODS = torch_api.RETURNS_TENSOR | torch_api.LAYOUT | set("size dim new_zeros new_ones new_full cpu tolist".split())


def flattens(statement: ast.stmt) -> bool:
    """True for `self.rnn.flatten_parameters()`, also where torch.compile passes it by."""
    if isinstance(statement, ast.If) and asks_for_compiler(statement.test):
        eager = statement.body if is_not(statement.test) else statement.orelse
        return len(statement.body) == len(eager) == 1 and flattens(eager[0])
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "flatten_parameters"


def taken(statement: ast.stmt) -> PackingCall | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(value, ast.Call):
        return PackingCall(statement, value, list(target.elts) if isinstance(target, ast.Tuple) else [target])
    zero = isinstance(value, ast.Subscript) and is_literal(value.slice, 0)
    if zero and isinstance(value.value, ast.Call) and isinstance(target, ast.Name):  # type: ignore[attr-defined]
        return PackingCall(statement, value.value, [target])  # type: ignore[attr-defined]
    return None


def is_one_name(nodes: list[ast.expr], name: str) -> bool:
    return len(nodes) == 1 and is_name(nodes[0], name)
