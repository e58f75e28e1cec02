"""Statements that bind names: what they bind, and where the values come from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.aliasing import Effect
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.patterns import owner_of
from graphmend_codemod.analysis.scope import dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.value_flow import names_holding, run_by
from graphmend_codemod.rules.framework.site import TORCH_NAMES
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of

if TYPE_CHECKING:
    from graphmend_codemod.analysis.callgraph import Definition
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory


Store = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.AsyncFor | ast.Match
_OVERLAPPING = frozenset("expand expand_as broadcast_to broadcast_tensors unfold as_strided einsum sum_to_size".split())
_APART = frozenset("chunk split split_with_sizes tensor_split hsplit vsplit dsplit unbind".split())


def store_value(store: Store) -> ast.expr | None:
    """What a statement takes the values of names from; None where there is none."""
    if isinstance(store, (ast.For, ast.AsyncFor)):
        return store.iter
    return store.subject if isinstance(store, ast.Match) else store.value


def pairs_in(store: Store, resolve: Callable[[ast.expr], str | None]) -> Iterator[tuple[set[str], ast.expr]]:
    """What a statement binds with what it takes the values from: `for a, b in zip(x, y)` binds `a` from `x` alone."""
    if isinstance(store, (ast.For, ast.AsyncFor)):
        for target, iterated in in_step(store.target, store.iter, resolve):
            yield names_in([target]), iterated
    elif (value := store_value(store)) is not None:
        yield bound_in(store), value


def given_to(store: Store, name: str, resolve: Callable[[ast.expr], str | None]) -> Iterator[ast.expr]:
    """What a statement gives to a name, or to an attribute of one."""
    return (value for bound, value in pairs_in(store, resolve) if name in bound or name.partition(".")[0] in bound)


def taken_apart(node: ast.AST) -> ast.expr | None:
    """`x` for `a, b = x.chunk(2)`; None for any other."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return None
    target, called = node.targets[0], node.value.func
    names = [each.id for each in target.elts if isinstance(each, ast.Name)] if isinstance(target, ast.Tuple) else []
    plain = isinstance(target, ast.Tuple) and len(node.targets) == 1 and len(set(names)) == len(target.elts)
    return viewed(node.value) if plain and isinstance(called, ast.Attribute) and called.attr in _APART else None


def viewed(call: ast.Call) -> ast.expr | None:
    """`x` for `x.chunk(2)` and `torch.chunk(x, 2)`; None for any other."""
    owner = owner_of(call)
    if isinstance(owner, ast.Name) and owner.id in TORCH_NAMES:
        return call.args[0] if call.args else None
    return owner


def bound_in(store: Store) -> set[str]:
    """The names, and the attributes of names, that a statement binds."""
    if isinstance(store, ast.Match):
        patterns = [part for case in store.cases for part in ast.walk(case.pattern)]
        kept = [part.name for part in patterns if isinstance(part, (ast.MatchAs, ast.MatchStar))]
        rest = [part.rest for part in patterns if isinstance(part, ast.MatchMapping)]
        return {name for name in (*kept, *rest) if name is not None}
    return names_in(_targets(store))


def names_in(targets: Collection[ast.expr]) -> set[str]:
    """The names, and the attributes of names, that some targets bind."""
    parts = [part for target in targets for part in walk_in_layers(target)]
    stored = [
        part for part in parts if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load)
    ]
    return {ast.unparse(part) for part in stored}


def _targets(store: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.AsyncFor) -> list[ast.expr]:
    return store.targets if isinstance(store, ast.Assign) else [store.target]


def sequences(function: Definition) -> frozenset[str]:
    """Names that may hold a list or a tuple."""
    stores = (
        (target.id, part.value)
        for part in walk_scope(function.node)
        if isinstance(part, (ast.Assign, ast.AugAssign))
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        if isinstance(target, ast.Name)
    )
    return names_holding(stores, aliasing.is_sequence)


def meet(names: Collection[str], others: Collection[str]) -> bool:
    """True when a name of some may stand for what one of others does."""
    return any(overlap(one, other) for one in names for other in others)


def overlap(one: str, other: str) -> bool:
    """True when two names may stand for one thing: they are equal, or one is an attribute of the other.

    `self.?` is any attribute of the instance.
    """
    if "self.?" in (one, other):
        return one.partition(".")[0] == other.partition(".")[0]
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


# What a function has put its tensors into when it returns: attributes and containers that outlive it


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
        if callee is None or not isinstance(part, ast.Call) or not _keeps(memory, callee):
            continue
        given = {name for each in aliasing.operands(part) for name in memory.sources(function, each)}
        if meet(given, same):
            found |= given | {(dotted(part.func) or "").rpartition(".")[0] or "self"}
    return found


def _keeps(memory: ModuleMemory, function: Definition) -> bool:
    """True where a function, or one that it calls, puts something into an attribute or a container."""
    return any(
        memory.filled(each) or any("." in name for _, bound in memory.stores(each) for name in bound)
        for each in run_by(memory.calls, function)
    )


def widest(effects: list[Effect]) -> Effect:
    """What any of several calls may do."""
    merged = Effect()
    for each in effects:
        merged = Effect(
            merged.shares + each.shares,
            merged.writes + each.writes,
            merged.keeps + each.keeps,
            merged.random or each.random,
            merged.known and each.known,
        )
    return merged


def unknown_call(call: ast.Call) -> Effect:
    """All that is given may be written and shared; what is called may hand out memory that it has."""
    given = aliasing.operands(call)
    return Effect((call.func, *given), given, given, random=True, known=False)


def takes_apart(memory: ModuleMemory, function: Definition, node: ast.AST) -> bool:
    """True for `a, b = x.chunk(2)` where each name gets other elements: rows of what was expanded are one."""
    source = taken_apart(node)
    if source is None or not isinstance(node, ast.Assign):
        return False
    return memory.remembered("apart", node, lambda: _is_dense(memory, function, node, source))


def _is_dense(memory: ModuleMemory, function: Definition, statement: ast.stmt, node: ast.expr) -> bool:
    """True for a tensor that was made here, and for its views, as long as no two elements are one."""
    if isinstance(node, ast.Name):
        bound = blocks_of(memory.calls, function).binding_before(statement, node.id)
        if bound is None or len(bound.targets) != 1:
            return False
        source = bound.value if isinstance(bound.targets[0], ast.Name) else taken_apart(bound)
        return source is not None and _is_dense(memory, function, bound, source)
    if isinstance(node, ast.Subscript):
        return _is_dense(memory, function, statement, node.value)
    if isinstance(node, (ast.BinOp, ast.Compare)):
        return not aliasing.is_sequence(node, memory.sequences(function))
    if not isinstance(node, ast.Call):
        return False
    effect, source = memory.effect(function, node), viewed(node)
    if effect.known and not effect.shares:
        return True
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    of_one = name in aliasing.VIEWS and name not in _OVERLAPPING and not effect.writes
    return of_one and source is not None and _is_dense(memory, function, statement, source)
