"""`and`, `or`, `not` and chained comparisons outside of tests: operands become Python bools all the same."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.untraced.guessed import seeming
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.tests import tested

_BRANCHES = (ast.If, ast.While, ast.Assert)


def decided(site: Site, node: ast.BoolOp | ast.Compare | ast.UnaryOp) -> Untraced | None:
    """`ok = (x > 0).all() and (y > 0).all()`, `0 < x.sum() < 1`, `empty = not mask.any()`.

    What a test of its own decides by has rules.
    """
    statement = site.place.statement
    if isinstance(statement, _BRANCHES) or any(_holds(each, node) for each in _tests(site, statement)):
        return None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return None
    way_out = "combine tensors with `&`"
    if isinstance(node, ast.BoolOp):
        deciding: list[ast.expr] = node.values[:-1]
        way_out = way_out if isinstance(node.op, ast.And) else "combine tensors with `|`"
    elif isinstance(node, ast.UnaryOp):
        deciding, way_out = [node.operand], "write `torch.logical_not(...)`"
    else:
        deciding = [ast.copy_location(ast.Compare(node.left, node.ops[:1], node.comparators[:1]), node)]
    for each in deciding:
        found = tested(site, each) or seeming(site, each)
        if found is not None or reads_tensor(site, each):
            advice = f"`{speculation.short(each)}` is a tensor, or may be one; manually {way_out}"
            return Untraced(node, "converts a tensor to a Python bool (data-dependent branch)", advice)
    return None


def _tests(site: Site, statement: ast.stmt) -> list[ast.expr]:
    """The conditions of conditional expressions and comprehensions, which are judged as such."""
    found = [each.test for each in ast.walk(statement) if isinstance(each, ast.IfExp)]
    return [*found, *(test for each in site.evaluator.scope.outline.comprehensions for test in each.ifs)]


def _holds(test: ast.expr, node: ast.expr) -> bool:
    return any(each is node for each in ast.walk(test))
