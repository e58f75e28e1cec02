"""Assignment problems as operators: SciPy solves them outside of torch, and how many pairs it finds is known before.

`linear_sum_assignment(cost)` gives two arrays as long as the shorter side of `cost`. The statement gets a compile path
in which an operator calls the same function; it gives arrays for Dynamo as well, so what follows stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import asks_compiler, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, decorator
from graphmend_codemod.rules.proofs.outlining.texts import assignments as texts

_SOLVES = "scipy.optimize.linear_sum_assignment"
_SCHEMA = "(Tensor cost, bool maximize) -> (Tensor, Tensor)"
HELPERS = frozenset({"_assignment_as_operator", "_assignment_in_graph"})
"""Functions of the module that call SciPy for the rewritten statements."""
_ONCE = (ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)


def calls_in(site: Site, statement: ast.stmt) -> list[ast.Call]:
    """The calls in a statement that solve assignment problems."""
    return [part for part in walk(statement) if isinstance(part, ast.Call) and site.resolve(part.func) == _SOLVES]


def edit(site: Site, statement: ast.stmt, calls: list[ast.Call]) -> Edit:
    """The compile path in front of the statement; NotProven where it cannot be written twice."""
    demand_torch(site)
    if any(isinstance(part, _ONCE) for part in walk(statement)):
        raise NotProven("the statement binds a name inside an expression")
    written: dict[int, tuple[ast.expr, str]] = {}
    for call in calls:
        starred = any(isinstance(each, ast.Starred) for each in call.args)
        if starred or len(call.args) > 2 or any(word.arg not in {"cost_matrix", "maximize"} for word in call.keywords):
            raise NotProven("the arguments of the call are not known")
        written[id(call.func)] = (call.func, "_assignment_in_graph")
    for outer in _collected(site, statement, calls):
        written[id(outer.func)] = (outer.func, "_stacked_in_graph")
    inner = site.but(written=written).text(statement)
    helpers = _helpers(site, len(written) > len(calls))
    header = asks_compiler(site.compiling)
    return two_paths(site, statement, header, [inner], imports=("torch",), helpers=helpers)


def _collected(site: Site, statement: ast.stmt, calls: list[ast.Call]) -> Iterator[ast.Call]:
    """`np.array([...])` of one side of each assignment."""
    for part in walk(statement):
        if not isinstance(part, ast.Call) or site.resolve(part.func) != "numpy.array":
            continue
        given = part.args[0] if len(part.args) == 1 and not part.keywords else None
        made = given.elt if isinstance(given, ast.ListComp) else None
        if isinstance(made, ast.Subscript) and any(made.value is call for call in calls):
            yield part


def _helpers(site: Site, stacks: bool) -> tuple[Helper, ...]:
    lines = decorator(site, "assignment_as_operator", _SCHEMA)
    made = {
        "_assignment_as_operator": texts.OPERATOR.replace("{operator}", "\n".join(lines)),
        "_assignment_fake": texts.FAKE,
        "_assignment_in_graph": texts.IN_GRAPH,
    }
    if stacks:
        made["_stacked_in_graph"] = texts.STACKED
    return (NAMING, *(Helper(name, text.strip("\n"), shared=True) for name, text in made.items()))
