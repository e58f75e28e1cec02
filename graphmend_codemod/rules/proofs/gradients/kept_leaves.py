"""Where a function keeps a tensor that it made as it is: in an attribute, a container or a global name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.aliasing import operands
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.analysis.scope import of_kind, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of

_PUT_INTO = frozenset("append appendleft extend insert setdefault update".split())
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.NamedExpr, ast.Starred, ast.keyword)


def where_kept(site: Site, node: ast.Assign, name: str) -> ast.AST | None:
    """The first place at which what an assignment gives a name is kept, and not what is computed of it; None if none.

    It is also kept where a function of the module that gets it does so, or where it may be this one or another.
    """
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return None
    blocks = blocks_of(calls, function)
    held = {name}
    for part in sorted(walk_scope(function.node), key=lambda each: getattr(each, "lineno", 0)):
        if not isinstance(part, (ast.Assign, ast.NamedExpr, ast.Call)) or part.lineno < node.lineno:
            continue
        for kept in _kept(calls, function, part):
            if kept not in held:
                continue
            bound = blocks.bindings_before(blocks.statement_of(part), kept) if kept == name else None
            if bound is None or any(each is None or each.lineno == node.lineno for each in bound):
                targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", part)]
                plain = [each.id for each in targets if isinstance(each, ast.Name)]
                globals_ = {one for each in of_kind(walk_scope(function.node), ast.Global) for one in each.names}
                if isinstance(part, ast.Call) or len(plain) < len(targets) or not globals_.isdisjoint(plain):
                    return part
                held |= set(plain)
    return None


def _kept(calls: ModuleCalls, function: Definition, part: ast.Assign | ast.NamedExpr | ast.Call) -> Iterator[str]:
    """The names whose values a statement or call keeps as they are."""
    if not isinstance(part, ast.Call):
        yield from _names(part.value)
        return
    called = last_name(part.func)
    if called in _PUT_INTO or called == "setattr":
        yield from (name for each in operands(part) for name in _names(each))
        return
    callee = calls.callee(function, part)
    for parameter, given in callee.arguments(part).pairs() if callee is not None else ():
        if isinstance(given, ast.Name) and callee is not None and _keeps(calls, callee, parameter):
            yield given.id


def _names(value: ast.expr) -> Iterator[str]:
    """`a` and `b` of `(a, [b])`: what a display holds, not what is computed with."""
    todo: list[ast.AST] = [value]
    for each in todo:
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, _DISPLAYS):
            todo += [part for part in ast.iter_child_nodes(each) if not isinstance(part, ast.expr_context)]


def _keeps(calls: ModuleCalls, callee: Definition, parameter: str) -> bool:
    """True for a function that assigns a parameter to an attribute or an element, or puts it into a container.

    So it is for one that hands it to such a function.
    """

    def look() -> bool:
        for part in walk_scope(callee.node):
            named = isinstance(part, ast.Assign) and all(isinstance(each, ast.Name) for each in part.targets)
            if isinstance(part, (ast.Assign, ast.Call)) and not named and parameter in _kept(calls, callee, part):
                return True
        return False

    return calls.remembered("keeps", (callee.key, parameter), look, False)
