"""Trace-time conditions for what a compile path takes for granted and the source does not prove.

An annotation, a default, or the class that a constructor gives a layer are hints: code elsewhere can make them false.
What is only hinted at becomes a condition in the header of the compile path, where Dynamo folds it at no cost.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import asks_identity, is_not, sides_of
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import ValueKind, is_certainly_no_byte
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_OF_BYTES = frozenset({"any", "all"})


def tensor_checks(site: Site, nodes: list[ast.expr]) -> list[str]:
    """`isinstance` conditions under which these tensor expressions are tensors. Raises NotProven.

    Only names and attributes are asked about: to evaluate anything else twice may cost, or have effects.
    """
    found: list[str] = []
    for node in nodes:
        for leaf in _hinted(site, node):
            if dotted(leaf) is None:
                text = site.text(leaf)
                raise NotProven(
                    f"cannot infer that `{text}` is a Tensor; "
                    "assign it to an annotated variable first: `value: torch.Tensor = ...`"
                )
            found.append(f"isinstance({site.text(leaf)}, {site.torch}.Tensor)")
    return list(dict.fromkeys(found))


def _hinted(site: Site, node: ast.expr) -> list[ast.expr]:
    """The innermost parts that have to be tensors for `node` to be one, and of which only a hint says so."""
    value = site.value(node)
    if value.kind is not ValueKind.TENSOR or isinstance(node, ast.BoolOp):
        return [leaf for part in _deciding(node) for leaf in _hinted(site, part)]
    # Beside a compile path that has conditions, a name may hold something else for the compiler as well.
    if not value.hint and not site.flow.splits:
        return []
    if isinstance(node, (ast.Compare, ast.BinOp)):
        tensors = [each for each in sides_of(node) if site.value(each).kind is ValueKind.TENSOR]
        return [leaf for each in tensors for leaf in _hinted(site, each)]
    if isinstance(node, ast.UnaryOp):
        return _hinted(site, node.operand)
    if isinstance(node, (ast.Subscript, ast.Attribute)) and site.value(node.value).kind is ValueKind.TENSOR:
        return _hinted(site, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = site.value(node.func.value)
        if owner.kind is ValueKind.TENSOR:
            return _hinted(site, node.func.value)
    return [node] if value.hint or isinstance(node, ast.Name) else []


def _deciding(node: ast.expr) -> list[ast.expr]:
    """The parts that decide a Python value which was read from tensors, as in `x.sum().item() > 3`."""
    if isinstance(node, ast.Call):
        return [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]
    return sides_of(node) if not isinstance(node, ast.BinOp) else []


def asked_of_bytes(site: Site, node: ast.expr) -> tuple[ast.expr, bool] | None:
    """`x.any()` for `x.any()` and `not x.any()`, with whether it is negated, where that may be uint8; else None."""
    negated = False
    while True:
        if is_not(node):
            node, negated = node.operand, not negated
        elif isinstance(node, ast.Call) and site.resolve(node.func) == "builtins.bool" and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    reduced = _reduced(site, node) if isinstance(node, ast.Call) else None
    if reduced is None or _never_bytes(site, reduced):
        return None
    return node, negated


def _reduced(site: Site, call: ast.Call) -> ast.expr | None:
    """`x` for `x.any()` and `torch.any(x)`."""
    name, given = site.operation(call)
    return given[0] if name in _OF_BYTES and given else None


def _never_bytes(site: Site, node: ast.expr) -> bool:
    compares = isinstance(node, ast.Compare) and not asks_identity(node)
    return compares or is_certainly_no_byte(site.value(node).dtype)
