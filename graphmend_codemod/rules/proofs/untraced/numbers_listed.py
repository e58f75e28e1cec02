"""Tensors that are made of a list of numbers which a graph knows as symbols."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import assigned
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced

_DOES = "makes a tensor of numbers that only the data tells"


def made_of_list(site: Site, node: ast.expr) -> Untraced | None:
    """`x.new(lengths)` where `lengths = t.tolist()`: the old constructor asks each number for its value.

    `x.new_tensor(lengths)` gives the same tensor and does not.
    """
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1 or dotted(node.func) is None:
        return None
    made = isinstance(node.func, ast.Attribute) and node.func.attr == "new" and site.resolve(node.func) is None
    given = node.args[0]
    if not made or not isinstance(given, ast.Name) or not any(map(_is_read, assigned(site, given.id))):
        return None
    return Untraced(node, _DOES, f"write `new_tensor({given.id})`")


def _is_read(value: ast.expr) -> bool:
    """True for `t.tolist()`."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "tolist"
