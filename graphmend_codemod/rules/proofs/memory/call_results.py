"""What a function does with the result of a call: which names get it."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import asks_identity, elements_of, only_target
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope


def is_operand(statement: ast.stmt, call: ast.Call) -> bool:
    """True for `2 * f(x)`, `f(x) > 0`: the result is read at once, and nothing has its memory afterwards."""
    for part in walk_in_layers(statement):
        if isinstance(part, ast.Compare) and not asks_identity(part):
            operands = [part.left, *part.comparators]
        elif isinstance(part, ast.BinOp) and not isinstance(part.op, ast.Add):  # lists add up to one that has both
            operands = [part.left, part.right]
        else:
            continue
        if any(each is call for each in operands):
            return True
    return False


def is_result(call: ast.Call, targets: set[str], node: ast.expr) -> bool:
    """True for the call itself and for a name that gets its result."""
    return node is call or (isinstance(node, ast.Name) and node.id in targets)


def assigned(caller: Definition, call: ast.Call) -> str | None:
    """The name that alone gets the result of a call; None where there is none."""
    target = _target(caller, call)
    return target.id if isinstance(target, ast.Name) else None


def assigned_names(caller: Definition, call: ast.Call) -> set[str]:
    """The names that alone get the result of a call, or its elements."""
    target = _target(caller, call)
    targets = elements_of(target) if target is not None else []
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    return names if len(names) == len(targets) else set()


def _target(caller: Definition, call: ast.Call) -> ast.expr | None:
    made = (each for each in walk_scope(caller.node) if isinstance(each, ast.Assign) and each.value is call)
    return only_target(next(made, None))
