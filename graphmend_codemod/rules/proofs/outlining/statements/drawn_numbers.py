"""A number that NumPy draws, and that is only compared in tests, as an operator that draws it outside of the graph.

`p = np.random.uniform(0, 1)` breaks the graph where the number is drawn, although often nothing asks for it:
`if self.training and p < self.layerdrop:`. Where a test does ask, the graph breaks there, as before.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import only_target, reads_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import asks_compiler, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import only_tested, truth_of
from graphmend_codemod.rules.proofs.conditions.random_draws import DRAWN_IN_GRAPH, OF_NUMPY
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING
from graphmend_codemod.rules.proofs.outlining.texts.arrays import ARRAY_OPERATOR, DRAWN, FITS, LIKE_DRAWN

_TESTS = (ast.If, ast.While, ast.IfExp, ast.Assert)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def bounds(site: Site, statement: ast.stmt) -> tuple[float, float] | None:
    """Between what NumPy draws the number that the statement assigns; None for all other statements."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    called = site.resolve(call.func)
    if called in OF_NUMPY and not call.args:
        return 0.0, 1.0
    given = [each.value for each in call.args if isinstance(each, ast.Constant)]
    if called != "numpy.random.uniform" or len(given) != len(call.args) or len(given) not in (0, 2):
        return None
    low, high = given or (0, 1)
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    return (float(low), float(high)) if numbers else None  # type: ignore[arg-type]


def edit(site: Site, statement: ast.stmt, between: tuple[float, float]) -> Edit:
    """The compile path in front of the statement; NotProven where more is done with the number than compare it."""
    demand_torch(site)
    target = only_target(statement)
    if not isinstance(target, ast.Name):
        raise NotProven(f"`{short(statement)}` binds more than a name")
    _demand_only_compared(site, target.id)
    line = f"{target.id} = {DRAWN_IN_GRAPH}({between[0]}, {between[1]})"
    helpers = (
        NAMING,
        Helper("_fits_arrays", FITS, shared=True),
        Helper("_array_operator", ARRAY_OPERATOR, after=("_operator_name", "_fits_arrays"), shared=True),
        Helper("_uniform_like", LIKE_DRAWN, shared=True),
        Helper(DRAWN_IN_GRAPH, DRAWN, after=("_array_operator", "_uniform_like"), shared=True),
    )
    header = asks_compiler(site.compiling)
    return two_paths(site, statement, header, [line], imports=("torch",), helpers=helpers)


def _demand_only_compared(site: Site, name: str) -> None:
    """NotProven unless each use of the name is a side of a comparison of which only the truth counts."""
    function = site.evaluator.scope.node
    nodes = list(walk(function))
    truths = [part for node in nodes if isinstance(node, _TESTS) for part in truth_of(node.test)]
    for node in nodes:
        target = only_target(node)
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and only_tested(site, target.id):
            truths += truth_of(node.value)
    compared = [each for each in truths if isinstance(each, ast.Compare) and len(each.ops) == 1]
    sides = {
        id(side) for each in compared for side in (each.left, *each.comparators) if isinstance(each.ops[0], _ORDERS)
    }
    for node in nodes:
        read = reads_name(node, name)
        if read and id(node) not in sides:
            raise NotProven(f"`{name}` is used for more than a test")
