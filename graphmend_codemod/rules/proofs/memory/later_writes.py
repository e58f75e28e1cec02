"""Whether a tensor is written in place behind a statement after which it would be a copy."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.identity import asked_of_names
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write


def demand_no_later_write(site: Site, kept: Sequence[ast.expr], names: Sequence[str]) -> None:
    """NotProven where a tensor that eager mode leaves as it is may be written in place afterwards."""
    if (told := asked_of_names(site, names)) is not None:
        raise NotProven(f"`{told}` tells one tensor from another, and `torch.where` returns a new one")
    if calls_in(site.source.text).at(site.evaluator.scope.node.lineno) is None:
        raise NotProven("it is in a nested function, and the outer function may write in place later")
    found = {part.id for node in kept for part in walk_in_layers(node) if isinstance(part, ast.Name)}
    found |= {ast.unparse(part) for node in kept for part in walk_in_layers(node) if is_attribute(part, "self")}
    try:
        demand_no_write(site, site.place.statement, (found | set(names)) - {"self"}, set(names))
    except NotProven as reason:
        raise NotProven(f"`torch.where` would copy a tensor that is written in place later: {reason}") from None
