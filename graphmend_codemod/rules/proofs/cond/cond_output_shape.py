"""Whether a function returns tensors of the same sizes for either value of a flag, which `torch.cond` asks for."""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.proofs.memory.module_memory import is_name
from graphmend_codemod.rules.proofs.rowwise.packed_rows import COUNT, Packed


def why_not_one_result(
    decider: Definition, returns: list[ast.Return], flag: str, guards: Collection[str], packed: Packed | None
) -> str | None:
    """Both values of the flag must give tensors of the same sizes, which assertions in the function say."""
    last = decider.node.body[-1]
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        return f"`{decider.qualname}` returns in several places"
    value = last.value
    if isinstance(value, ast.IfExp) and any(
        isinstance(part, ast.Name) and part.id in guards for part in walk_in_layers(value.test)
    ):
        value = value.orelse
    if isinstance(value, ast.Name) and not _is_sized(decider, value.id, flag, packed):
        value = _bound_unguarded(decider, value.id, guards) or value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    for part in parts:
        inner: ast.expr = part
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            inner = inner.func.value
        if not isinstance(inner, ast.Name) or not _is_sized(decider, inner.id, flag, packed):
            return f"`{short(part)}` may have a different size for each value of `{flag}`"
    return None


def _bound_unguarded(decider: Definition, name: str, guards: Collection[str]) -> ast.expr | None:
    """What a name is bound to, once, where the guards are false."""
    guarded = {
        id(part)
        for node in walk_scope(decider.node)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id in guards
        for statement in node.body
        for part in walk_in_layers(statement)
    }
    bound = [
        node
        for node in walk_scope(decider.node)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and id(node) not in guarded
        if is_name(node.targets[0] if isinstance(node, ast.Assign) else node.target, name)
    ]
    return bound[0].value if len(bound) == 1 and isinstance(bound[0], ast.Assign) else None


def _is_sized(decider: Definition, name: str, flag: str, packed: Packed | None) -> bool:
    """True when an assertion at the top of the function tells a tensor's size, and no branch binds it below."""
    asserted = [
        statement.lineno
        for statement in decider.node.body
        if isinstance(statement, ast.Assert)
        if _tells_size(statement.test, name)
        if not any(
            isinstance(part, ast.Name) and packed is not None and packed.roles.get(part.id) == COUNT
            for part in walk_in_layers(statement.test)
        )
    ]
    if not asserted:
        return False
    return not any(
        isinstance(part, ast.Name)
        and part.id == name
        and isinstance(part.ctx, ast.Store)
        and part.lineno > asserted[-1]
        for node in walk_scope(decider.node)
        if isinstance(node, ast.If)
        for part in walk_in_layers(node)
    )


def _tells_size(test: ast.expr, name: str) -> bool:
    """True for `x.size() == (rows, columns)`, `list(x.size()) == [...]` and `x.shape == y.shape`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    left = test.left
    if isinstance(left, ast.Call) and getattr(left.func, "id", "") in {"list", "tuple"} and len(left.args) == 1:
        left = left.args[0]
    if isinstance(left, ast.Call) and not left.args and not left.keywords:
        left = left.func
    return isinstance(left, ast.Attribute) and left.attr in {"size", "shape"} and is_name(left.value, name)
