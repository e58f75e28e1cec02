"""Integers that Python's `random` draws and that sizes depend on: Dynamo draws them anew in each call, as a tensor.

Where the tensor is asked for its number the graph breaks, though eager mode asks for nothing. As a symbol the number
stays in the graph, and it is drawn as before: from the same generator, once.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_name, last_name, only_target
from graphmend_codemod.analysis.scope import walk, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.deciders import avoided
from graphmend_codemod.rules.proofs.outlining.symbols.unbacked import Captured, helpers
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import unanswered
from graphmend_codemod.rules.proofs.outlining.symbols.values_asked import why_value_is_asked
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced

DRAWS = frozenset({"random.randint", "random.randrange"})
_SIZED = torch_api.name_set("expand new_empty new_full new_ones new_zeros narrow repeat reshape tile unflatten view")
_MAKES = torch_api.name_set("empty full ones rand randn tile zeros")


def drawn(site: Site, statement: ast.Assign) -> Captured | None:
    """What draws a number that a size depends on, and its form in the graph; None for other statements."""
    call, target = statement.value, only_target(statement)
    if not isinstance(call, ast.Call) or site.resolve(call.func) not in DRAWS or not isinstance(target, ast.Name):
        return None
    if not _is_size(site, target.id) or any(isinstance(part, ast.NamedExpr) for part in walk(statement)):
        return None
    first = Untraced(call, "draws a random number that a size depends on", "")
    why, off = why_value_is_asked(site, [call]), list[str]()
    asked: list[str] = []
    if why is None:
        asked, why = avoided(site, statement, is_number=True)
    if why is None:
        why, off = unanswered(site, (), [call])
    reason = f"{why}; manually draw it before the compiled function" if why is not None else None
    text = f'_number_in_graph({site.torch}.as_tensor({site.text(call)}, device="cpu"))'
    needed = helpers(site, {"_number_in_graph"}) if site.torch is not None else ()
    return Captured(first, reason, ((call, text),), needed, tuple(dict.fromkeys([*asked, *off])), bool(off))


def _is_size(site: Site, name: str) -> bool:
    """True where the function cuts a tensor at the number, or gives it to an operator for a size."""
    for node in walk_scope(site.evaluator.scope.node):
        given: list[ast.expr] = []
        if isinstance(node, ast.Slice):
            given = [each for each in (node.lower, node.upper) if each is not None]
        elif isinstance(node, ast.Call):
            qualified = torch_api.torch_function(site.resolve(node.func))
            sized = last_name(node.func) in _SIZED if isinstance(node.func, ast.Attribute) else False
            given = list(node.args) if sized or qualified in _MAKES else []
        if any(is_name(part, name) for each in given for part in walk(each)):
            return True
    return False
