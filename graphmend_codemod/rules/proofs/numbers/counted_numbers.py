"""Single numbers that are read of positions which `torch.arange` counted, in the function that counts or below it.

Whoever is handed the positions has to be known down to the last use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_integer, is_name, is_not
from graphmend_codemod.analysis.scope import parameter_names, walk_scope
from graphmend_codemod.rules.proofs.calls.unique_callee import beside_compile_paths
from graphmend_codemod.rules.proofs.numbers.number_uses import COMPARED


@dataclass(frozen=True)
class Counted:
    """`name = torch.arange(...)` in a function that hands the positions, or keeps them, to where one decides."""

    function: Definition
    name: str
    assignment: ast.Assign
    call: ast.Call


def is_element_of(test: ast.expr) -> Iterator[str]:
    """The names of which a test reads a number: `p` for `p is not None and p[0] > 0`."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from is_element_of(value)
    elif is_not(test):
        yield from is_element_of(test.operand)
    else:
        element = test
        if isinstance(test, ast.Compare):
            if not isinstance(test.ops[0], COMPARED):
                return
            element = test.left
        if isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and is_integer(element.slice):
            yield element.value.id


def counted(calls: ModuleCalls, reader: Definition, name: str) -> list[Counted]:
    """Where positions are counted that get to `name` in `reader`, in order of the source."""
    found: list[Counted] = []
    todo, seen = [(reader, name)], set()
    while todo:
        function, held = todo.pop()
        if (function, held) in seen:
            continue
        seen.add((function, held))
        found += _counted_here(calls, function, held)
        if held not in parameter_names(function.node):
            continue
        for caller, call in calls.callers(function):
            given = function.arguments(call).get(held)
            if isinstance(given, ast.Name):
                todo.append((caller, given.id))
    return sorted(found, key=lambda each: each.assignment.lineno)


def _counted_here(calls: ModuleCalls, function: Definition, name: str) -> Iterator[Counted]:
    for node in walk_scope(function.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, call = node.targets[0], node.value
        held = is_name(target, name)
        counts = held and isinstance(call, ast.Call) and calls.qualified(call.func) == "torch.arange"
        if counts and isinstance(call, ast.Call) and id(node) not in beside_compile_paths(function.node):
            yield Counted(function, name, node, call)
