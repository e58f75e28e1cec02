"""Whether a method that changes tensors reads an argument after it changed something.

An argument may be a view of what the method changes, and what its operator gets is not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import FunctionNode, parameter_names, walk
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.held_functions import Followed, given_as


def check(function: FunctionNode, names: Sequence[str], effects: FunctionEffects) -> None:
    """NotProven where the function, or one that it calls, reads an argument after a change."""
    handed: dict[int, set[str]] = {id(function): set(names)}
    order = [function]
    for each in reversed(effects.followed):  # the outer calls first
        if id(each.function) not in handed:
            order.append(each.function)
        handed.setdefault(id(each.function), set()).update(_handed(each, handed.get(id(each.caller))))
    for each_function in order:
        _check_order(each_function.body, handed[id(each_function)], effects.writes)


def _handed(each: Followed, own: set[str] | None) -> set[str]:
    """The parameters of a called function that may be tensors which somebody else holds, too.

    `own` are those of the caller; a parameter that got no argument, or a constant, is none.
    """
    stored = {
        part.id for part in walk(each.caller) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    }
    plain = parameter_names(each.caller) - stored - own if own is not None else set()
    found = set()
    for name in parameter_names(each.function) - each.known:
        for value in given_as(each.function, each.call, frozenset({name}), skipped=each.skipped):
            constant = isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in plain)
            found |= set() if constant else {name}
    return found


def _check_order(body: Sequence[ast.stmt], names: Collection[str], writes: set[int], after: bool = False) -> bool:
    """Whether tensors are changed by the end of `body`; NotProven where an argument is read after that.

    An argument may be a view of what the method changes, and the operator's is not.
    """
    for statement in body:
        heads, blocks = _parts(statement)
        for _ in range(2 if isinstance(statement, (ast.For, ast.While)) else 1):
            inside = [part for each in heads for part in walk(each)]
            sizes = {id(size) for part in inside for size in _measured(part)}
            read = [part.id for part in inside if isinstance(part, ast.Name) and id(part) not in sizes]
            known = next((name for name in read if name in names), None) if after else None
            if known is not None:
                raise NotProven(f"`{known}` is read after a change, and may share memory with what is changed")
            after = after or any(id(part) in writes for part in inside)
            after = any([after, *(_check_order(block, names, writes, after) for block in blocks)])
    return after


def _measured(node: ast.AST) -> list[ast.expr]:
    """The `x` of `len(x)` and `x.shape`."""
    if isinstance(node, ast.Call) and is_name(node.func, "len"):
        return node.args
    return [node.value] if isinstance(node, ast.Attribute) and node.attr in torch_api.PYTHON_ATTRIBUTES else []


def _parts(statement: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """What a statement evaluates itself, and the blocks below it."""
    blocks = [block for name in ("body", "orelse") if (block := getattr(statement, name, None))]
    if not blocks:
        return [statement], []
    return [each for name in ("test", "iter") if (each := getattr(statement, name, None)) is not None], blocks
