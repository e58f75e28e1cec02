"""Names that a function uses as only tensors are used, for want of an annotation.

Most code has none. A parameter that is asked for `.argmax()`, or handed to `torch.relu`, is a tensor as far as one can
tell, as one that is annotated: a hint for what to write, which the header of a compile path has to ask for.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.scope import FunctionNode, Outline, parameters, walk_scope

_OF_PYTHON = {name for kind in (str, bytes, list, dict, set, tuple, int, float, range) for name in dir(kind)}
_METHODS = frozenset(
    (torch_api.RETURNS_TENSOR | torch_api.PYTHON_METHODS.keys())
    - _OF_PYTHON
    - {"where", "embedding", "linear", "normalize", "pad", "tensor", "as_tensor", "from_numpy", "stack", "concat"}
)
"""Methods of tensors that Python's own types lack."""
_ATTRIBUTES = frozenset({"shape", "ndim"})
_TORCH = frozenset({"torch", "F"})
_ARRAYS = frozenset({"np", "numpy", "scipy", "math", "random"})


def likely_tensors(function: FunctionNode, outline: Outline) -> Mapping[str, bool]:
    """Local names that are used as tensors; True for those that the function compares with None."""
    known: Mapping[str, bool] | None = outline.notes.get("likely tensors")
    if known is None:
        known = outline.notes["likely tensors"] = _look(function, outline)
    return known


def _look(function: FunctionNode, outline: Outline) -> Mapping[str, bool]:
    used: set[str] = set()
    others: set[str] = set()
    for call in outline.calls:
        called = call.func
        if called.__class__ is not ast.Attribute or called.value.__class__ is not ast.Name:  # type: ignore[attr-defined]
            continue
        owner, method = called.value.id, called.attr  # type: ignore[attr-defined]
        first = call.args[0] if call.args else None
        if owner in _TORCH:
            if first.__class__ is ast.Name and method in torch_api.RETURNS_TENSOR - torch_api.NOT_FIRST_TENSOR:
                used.add(first.id)  # type: ignore[union-attr]
        elif owner in _ARRAYS:
            others.update(each.id for each in call.args if each.__class__ is ast.Name)  # type: ignore[attr-defined]
        elif method in _METHODS or (method.endswith("_") and method[:-1] in _METHODS):
            used.add(owner)
    optional: set[str] = set()
    for node in walk_scope(function):
        if node.__class__ is ast.Attribute:
            if node.attr in _ATTRIBUTES and node.value.__class__ is ast.Name:  # type: ignore[attr-defined]
                used.add(node.value.id)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and right.value is None:
                optional.add(node.left.id)
    return {name: name in optional for name in (used & outline.names) - others}


def guessed_parameters(function: FunctionNode, likely: Mapping[str, bool]) -> dict[str, bool]:
    """The parameters without an annotation, and without a default other than None, that are likely tensors."""
    args = function.args
    named = [*args.posonlyargs, *args.args]
    pairs = [*zip(reversed(named), reversed(args.defaults), strict=False)]
    pairs += [(each, default) for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default]
    absent = {each.arg for each, default in pairs if isinstance(default, ast.Constant) and default.value is None}
    excluded = {each.arg for each, _ in pairs} - absent
    excluded |= {each.arg for each in (args.vararg, args.kwarg) if each is not None}
    return {
        each.arg: likely[each.arg] or each.arg in absent
        for each in parameters(function)
        if each.annotation is None and each.arg in likely and each.arg not in excluded
    }
