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


# Numbers that are written into tensors, as far as their text tells what they are

_INFINITE = frozenset({"torch.inf", "torch.nan", "math.inf", "math.nan", "numpy.inf", "numpy.nan"})


def plain_number(site: Site, node: ast.expr) -> type | None:
    """`int` for `-1` and `True`, `float` for `1e9`, `float("-inf")`, `torch.finfo(x.dtype).min`; None for the rest."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return plain_number(site, node.operand)
    if isinstance(node, ast.Constant):
        return int if isinstance(node.value, int) else float if isinstance(node.value, float) else None
    if isinstance(node, ast.Call):
        literal = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and not node.keywords
        return float if literal and site.resolve(node.func) == "builtins.float" else None
    if not isinstance(node, ast.Attribute):
        return None
    if node.attr in {"min", "max"} and isinstance(node.value, ast.Call):
        of_dtype = [each for each in node.value.args if isinstance(each, ast.Attribute)]
        whole = len(of_dtype) == len(node.value.args) == 1 and not node.value.keywords
        return float if whole and site.resolve(node.value.func) == "torch.finfo" else None
    return float if site.resolve(node) in _INFINITE else None
