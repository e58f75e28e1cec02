"""What a Python number is read from: `t` of `t.item()`, `int(t)` and `float(t)`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphmend_codemod.analysis.patterns import item_of
from graphmend_codemod.rules.framework.site import Site

NUMBER_CASTS = frozenset({"builtins.int", "builtins.float"})
INTEGER_CAST = frozenset({"builtins.int"})


def number_read(site: Site, node: ast.AST, casts: Collection[str] = NUMBER_CASTS) -> ast.expr | None:
    """What `t.item()` and a call of one of the casts read; None for anything else."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    return node.args[0] if len(node.args) == 1 and site.resolve(node.func) in casts else item_of(node)
