"""Code that does not run where a test of Python says so: `if self.training:`, `n is not None and len(rows) > n`.

What depends on data there is no reason against a compile path that asks for the opposite of the test.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_none, is_not, is_within
from graphmend_codemod.analysis.scope import FunctionNode, parameters, parents_in, walk
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import negated
from graphmend_codemod.rules.proofs.conditions.condition_parts import OPPOSITES
from graphmend_codemod.rules.proofs.number_read import plain_number

_NEVER_TENSORS = frozenset({AttributeKind.CONSTANT, AttributeKind.CONFIG})
_STAYS = _NEVER_TENSORS | {AttributeKind.ARGUMENT}


def condition_to_skip(site: Site, statement: ast.stmt, node: ast.AST, test: ast.expr) -> str | None:
    """A condition of Python under which `test` in `node` is not asked after the statement; None if none is known.

    It can be asked in front of the statement and means the same there.
    """
    found = _in_and(site, node, test)
    if found is not None:
        return found
    parents = _parents(site)
    inner = node
    while (outer := parents.get(id(inner))) is not None and not is_within(statement, outer):
        if isinstance(outer, ast.If) and not is_within(inner, outer.test):
            taken = any(each is inner for each in outer.body)
            if taken and _is_settled(site, outer.test):
                return negated(site, outer.test)
            if not taken and _is_settled(site, outer.test):
                return site.operand_of_and(outer.test)
            first = outer.test.values[0] if isinstance(outer.test, ast.BoolOp) else None
            conjunction = first is not None and isinstance(outer.test.op, ast.And)  # type: ignore[attr-defined]
            if taken and conjunction and first is not None and _is_settled(site, first):
                return negated(site, first)
        inner = outer
    return None


def never_read(site: Site, statement: ast.stmt, name: str) -> list[str]:
    """Conditions of Python under which nothing reads what the statement gives the name; none where it is read.

    What else the name is given is another value: only `name += 1` reads this one.
    """
    function = site.evaluator.scope.node
    parents = _parents(site)
    found: dict[str, None] = {}
    for use in (part for part in walk(function) if is_name(part, name)):
        if isinstance(use.ctx, ast.Del):
            return []
        if not isinstance(use.ctx, ast.Load) and not isinstance(parents[id(use)], ast.AugAssign):
            continue
        inner: ast.AST = use
        while not isinstance(inner, ast.stmt):
            inner = parents[id(inner)]
        condition = condition_to_skip(site, statement, inner, use)
        if condition is None:
            return []
        found[condition] = None
    return [] if is_seen_elsewhere(function.body, name) else list(found)


def _in_and(site: Site, node: ast.AST, test: ast.expr) -> str | None:
    """The opposite of what is asked before `test` in `a and test`."""
    whole = getattr(node, "test", None)
    if not isinstance(whole, ast.BoolOp) or not isinstance(whole.op, ast.And):
        return None
    for each in whole.values:
        if is_within(test, each):
            return None
        if _is_settled(site, each):
            return negated(site, each)
    return None


def _is_settled(site: Site, test: ast.expr) -> bool:
    """True for a test of the arguments and of the instance that means the same all through the function.

    It asks for None, for `training`, or for numbers and words that the constructor got.
    """
    if is_not(test):
        return _is_settled(site, test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        other = test.comparators[0]
        return is_none(other) and _stays(site, test.left)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in OPPOSITES:
        left, asked = test.left, plain_number(site, test.comparators[0])
        own = site.evaluator.scope.attribute(left.attr) if isinstance(left, ast.Attribute) else None
        return asked is not None and own is not None and own.kind in _STAYS and _stays(site, left)
    if not isinstance(test, ast.Attribute) or not _stays(site, test):
        return False
    fact = site.evaluator.scope.attribute(test.attr)
    return test.attr == "training" or (fact is not None and fact.kind in _NEVER_TENSORS)


def _stays(site: Site, node: ast.expr) -> bool:
    """True for an argument and an attribute of the instance that the function does not assign."""
    function = site.evaluator.scope.node
    stored = [part for part in walk(function) if isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del))]
    if isinstance(node, ast.Name):
        given = any(each.arg == node.id for each in parameters(function))
        return given and not any(is_name(part, node.id) for part in stored)
    if not is_attribute(node, site.evaluator.scope.self_name):
        return False
    return not any(isinstance(part, ast.Attribute) and part.attr == node.attr for part in stored)


def _parents(site: Site) -> dict[int, ast.AST]:
    function: FunctionNode = site.evaluator.scope.node

    def look() -> dict[int, ast.AST]:
        return parents_in(function)

    return site.remembered("parents", function, look, anywhere=True)
