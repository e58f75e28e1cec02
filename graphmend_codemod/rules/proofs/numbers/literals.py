"""Numbers that are written into tensors, as far as their text tells what they are."""

from __future__ import annotations

import ast

from graphmend_codemod.rules.framework.site import Site

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
