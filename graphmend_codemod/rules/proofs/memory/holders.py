"""What a function has put its tensors into when it returns: attributes and containers that outlive it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.scope import dotted, walk_scope
from graphmend_codemod.rules.proofs.memory.stores import meet, store_value

if TYPE_CHECKING:
    from graphmend_codemod.analysis.callgraph import Definition
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory


def holders(memory: ModuleMemory, function: Definition, names: set[str]) -> set[str]:
    """What may hold the tensors of some names: `self.last` for `self.last = y`, `seen` for `seen.append(y)`."""
    found: set[str] = set()
    same = memory.connected(function, memory.links(function), names) if names else names
    for store, bound in memory.stores(function):
        value = store_value(store)
        kept = {each for each in bound if "." in each}
        if kept and value is not None and meet(memory.sources(function, value), same):
            found |= kept
    for _, containers, sources in memory.filled(function):
        if meet(sources, same):
            found |= memory.connected(function, memory.links(function), containers)
    for part in walk_scope(function.node):
        callee = memory.calls.callee(function, part) if isinstance(part, ast.Call) else None
        if callee is None or not isinstance(part, ast.Call) or not _keeps(memory, callee, set()):
            continue
        given = {name for each in aliasing.operands(part) for name in memory.sources(function, each)}
        if meet(given, same):
            found |= given | {(dotted(part.func) or "").rpartition(".")[0] or "self"}
    return found


def _keeps(memory: ModuleMemory, function: Definition, seen: set[tuple[str, int]]) -> bool:
    """True where a function, or one that it calls, puts something into an attribute or a container."""
    key = (function.qualname, function.node.lineno)
    if key in seen:
        return False
    seen.add(key)
    if memory.filled(function) or any("." in each for _, bound in memory.stores(function) for each in bound):
        return True
    called = (memory.calls.callee(function, part) for part in walk_scope(function.node) if isinstance(part, ast.Call))
    return any(each is not None and _keeps(memory, each, seen) for each in called)
