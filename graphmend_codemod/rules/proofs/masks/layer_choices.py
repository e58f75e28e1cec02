"""What is known of a layer by how it was chosen, and the branches of its code that this leaves out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_not, operands_of, without_numbers
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope


class LayerChoice(NamedTuple):
    """What is known of a layer: its class, or that an attribute of it has this value."""

    owner: str = ""
    attribute: str = ""
    value: str = ""


def iterated(node: ast.For, name: str) -> ast.expr | None:
    """What a loop over layers goes through: `self.layers`, a part of it, and the same with numbers."""
    target, iterated = without_numbers(node)
    if isinstance(iterated, ast.Subscript) and isinstance(iterated.slice, ast.Slice):
        iterated = iterated.value
    return iterated if is_name(target, name) else None


def is_numbered(node: ast.For, number: ast.expr) -> bool:
    """True for `for number, layer in enumerate(layers)`, where numbers begin with the first layer."""
    target, made = node.target, node.iter
    if not isinstance(target, ast.Tuple) or not all(isinstance(each, ast.Name) for each in target.elts):
        return False
    if not isinstance(number, ast.Name) or len(target.elts) != 2 or not is_name(target.elts[0], number.id):
        return False
    if not isinstance(made, ast.Call) or len(made.args) != 1 or made.keywords or not is_name(made.func, "enumerate"):
        return False
    cut = made.args[0].slice if isinstance(made.args[0], ast.Subscript) else None
    return cut is None or (isinstance(cut, ast.Slice) and cut.lower is None and cut.step is None)


def named_by(node: ast.For) -> tuple[str, str]:
    """The names of the number and the layer in a loop that `is_numbered`."""
    assert isinstance(node.target, ast.Tuple)
    number, layer = (each.id for each in node.target.elts if isinstance(each, ast.Name))
    return number, layer


def live(block: list[ast.stmt], own: LayerChoice, compiling: Callable[[ast.expr], bool]) -> Iterator[ast.AST]:
    """The nodes of statements, without branches that a layer does not take for which `own` is known.

    `compiling` says whether an expression asks if code is compiled; what runs only where it is not is left out.
    """
    for statement in block:
        taken = _taken(statement, own)
        if isinstance(statement, ast.If) and _is_eager(statement.test, compiling):
            taken = statement.orelse
        if taken is not None:
            yield from live(taken, own, compiling)
        elif isinstance(statement, ast.If):
            yield statement
            yield from walk_in_layers(statement.test)
            yield from live(statement.body, own, compiling)
            yield from live(statement.orelse, own, compiling)
        else:
            yield from [statement, *walk_scope(statement)]


def _is_eager(test: ast.expr, compiling: Callable[[ast.expr], bool]) -> bool:
    """True for `not is_compiling()`, also with other tests that have to hold."""
    tests = operands_of(test, ast.And)
    inverted = [each.operand for each in tests if is_not(each)]
    return any(compiling(each) for each in inverted)


def _taken(statement: ast.stmt, own: LayerChoice) -> list[ast.stmt] | None:
    """The branch of `if self.kind == "mamba":` that is taken, if that is known."""
    test = statement.test if isinstance(statement, ast.If) else None
    if not isinstance(statement, ast.If) or not isinstance(test, ast.Compare) or not own.attribute:
        return None
    right = test.comparators[0]
    plain = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and isinstance(right, ast.Constant)
    if not plain or not is_attribute(test.left, "self", own.attribute) or not isinstance(right, ast.Constant):
        return None
    return statement.body if repr(right.value) == own.value else statement.orelse


def called_by_name(call: ast.Call) -> ast.Call:
    """`layer(x)` for `checkpoint(layer.__call__, x)`, also where `partial` gives keywords."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call) and getattr(first.func, "id", "") == "partial" and len(first.args) == 1:
        first = first.args[0]
    if isinstance(first, ast.Attribute) and first.attr == "__call__":
        return ast.Call(func=first.value, args=call.args[1:], keywords=[])
    return call
