"""Compile paths whose header would read a name that only a comprehension of the statement binds."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import reads_name, stored_names
from graphmend_codemod.analysis.scope import parameter_names, walk, walk_scope
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.engine.never_taken import header_conditions
from graphmend_codemod.rules.framework.site import Site


def why_not(edit: Edit, site: Site) -> str | None:
    """The reason where a condition of the edit's header reads the variable of a comprehension.

    `if is_compiling() and len(s) > 0:` in front of `n = [np.prod(s) for s in sizes]` would end in a NameError.
    """
    steps = site.evaluator.scope.outline.comprehensions
    if not steps:
        return None
    inside = {id(part) for each in steps for part in walk(each.target)}
    own = stored_names(part for each in steps for part in walk(each.target))
    own -= stored_names(part for part in walk_scope(site.evaluator.scope.node) if id(part) not in inside)
    own -= {*site.evaluator.scope.closure, *parameter_names(site.evaluator.scope.node)}
    for condition in header_conditions(edit, site):
        missing = next((name for name in sorted(own) if _reads(condition, name)), None)
        if missing is not None:
            return f"`{missing}` is bound only by a comprehension, so no condition can ask about it; write a loop"
    return None


def _reads(condition: ast.expr, name: str) -> bool:
    """True where the condition reads the name and does not bind it itself."""
    parts = list(walk(condition))
    return any(reads_name(part, name) for part in parts) and name not in stored_names(parts)
