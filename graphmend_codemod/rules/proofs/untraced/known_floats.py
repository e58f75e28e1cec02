"""Floats that NumPy computes from Python numbers: `int(np.ceil(n / 2))` reads no tensor back."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import mentions
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import assigned
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor

_ALWAYS_FLOAT = frozenset("sqrt log log2 log10 log1p exp sin cos tan float16 float32 float64".split())
_AS_GIVEN = frozenset("abs absolute ceil clip fix floor maximum minimum power rint round square trunc".split())
"""Functions of NumPy that make a float of floats and, mostly, an integer of integers."""


def is_known_float(site: Site, node: ast.expr) -> bool:
    """True for a float that a function of NumPy computes from Python numbers alone."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        known = [each for each in sides if is_known_float(site, each)]
        return bool(known) and not any(seems_tensor(site, each) for each in sides if each not in known)
    if not isinstance(node, ast.Call) or not node.args or node.keywords:
        return False
    name = (site.resolve(node.func) or "").removeprefix("numpy.")
    if name not in _ALWAYS_FLOAT | _AS_GIVEN or (site.resolve(node.func) or "") == name:
        return False
    if any(_may_be_array(site, each) for each in node.args):
        return False
    return name in _ALWAYS_FLOAT or any(_is_float(site, each) for each in node.args)


def _may_be_array(site: Site, node: ast.expr) -> bool:
    plain = isinstance(node, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return not plain or (seems_tensor(site, node) and not is_known_float(site, node))


def _is_float(site: Site, node: ast.expr, names: int = 3) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is float
    if isinstance(node, ast.UnaryOp):
        return _is_float(site, node.operand, names)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return isinstance(node.op, ast.Div) or any(_is_float(site, each, names) for each in sides)
    if isinstance(node, ast.Call):
        return site.resolve(node.func) == "builtins.float" or is_known_float(site, node)
    if not isinstance(node, ast.Name) or not names:
        return False
    values = [each for each in assigned(site, node.id) if not mentions(each, node.id)]
    return bool(values) and all(_is_float(site, each, names - 1) for each in values)
