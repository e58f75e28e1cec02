"""Operators whose kernels want a number of Python: given a symbol, they break the graph that was to be kept whole."""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_given, is_attribute, values_assigned
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import rows_of

# Each of them was compiled with torch 2.13.
_TAKE_NONE = torch_api.name_set(
    """adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d bartlett_window blackman_window chunk diag diag_embed diagonal
    hamming_window hann_window kaiser_window linspace logspace lp_pool2d max_pool1d max_pool2d one_hot tensor_split
    unfold"""
)
_METHODS = torch_api.name_set("chunk diag diag_embed diagonal tensor_split unfold")
_ASKED = ("mode", "align_corners")
_SCALES = torch_api.name_set("interpolate upsample")


def why_not_taken(site: Site, numbers: Collection[ast.expr]) -> str | None:
    """Why what a function does with these numbers breaks the graph where they are symbols."""
    if not numbers:
        return None
    scope = site.evaluator.scope.node
    folded = next((each for each in numbers if _is_folded(site, each)), None)
    if folded is not None:
        return f"`{short(folded)}` follows from numbers of Python alone, which Dynamo computes itself"
    rows = rows_of(scope, (), numbers)
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        if _wants_numbers(site, call) and rows.takes_number(all_given(call)):
            return f"`{short(call)}` takes no symbol, and the graph breaks there"
    return None


def _is_folded(site: Site, node: ast.expr) -> bool:
    """True for what torch computes of numbers of Python: `torch.div(x.size(1), 4) - 1`, or a name that holds it.

    Dynamo knows such a tensor while it traces, and takes an operator that reads its number for a number, not a symbol.
    """
    if isinstance(node, ast.Name):
        values = values_assigned(site.evaluator.scope.node, node.id)
        return len(values) == 1 and _is_computed(site, values[0])
    return _is_computed(site, node)


def _is_computed(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        parts = (node.left, node.right)
        computed = [each for each in parts if _is_computed(site, each)]
        return bool(computed) and all(each in computed or site.value(each).is_python for each in parts)
    if not isinstance(node, ast.Call) or torch_api.torch_function(site.resolve(node.func)) not in torch_api.BINARY:
        return False
    others = [word for word in node.keywords if word.arg != "rounding_mode"]
    return not others and bool(node.args) and all(site.value(each).is_python for each in node.args)


def _wants_numbers(site: Site, call: ast.Call) -> bool:
    called = site.resolve(call.func)
    if called is None:
        own = site.evaluator.scope.self_name
        method = call.func if isinstance(call.func, ast.Attribute) and not is_attribute(call.func, own) else None
        return method is not None and method.attr in _METHODS
    name = torch_api.torch_function(called)
    return name in _TAKE_NONE or (name in _SCALES and _asks_for_size(call))


def _asks_for_size(call: ast.Call) -> bool:
    """True for `mode="area"`, and for `align_corners=True`, which divides by the size unless that is 1."""
    words = {word.arg: word.value for word in call.keywords}
    mode, corners = (each.value if isinstance(each, ast.Constant) else None for each in map(words.get, _ASKED))
    return mode == "area" or corners is True
