"""Variables that a function uses the way only tensors are used, where annotations are missing.

Most code has none. A parameter that is asked for `.argmax()`, or handed to `torch.relu`, is a tensor as far as one can
tell, as one that is annotated: a hint for what to write, which the header of a compile path has to ask for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.outline import Outline
from graphmend_codemod.analysis.patterns import is_name, is_none, last_name
from graphmend_codemod.analysis.scope import FunctionNode, defaults_of, parameters, walk_scope

_OF_PYTHON = frozenset(name for kind in (str, bytes, list, dict, set, tuple, int, float, range) for name in dir(kind))
_METHODS = frozenset(
    torch_api.RETURNS_TENSOR.union(torch_api.PYTHON_METHODS)
    - _OF_PYTHON
    - {"where", "embedding", "linear", "normalize", "pad", "tensor", "as_tensor", "from_numpy", "stack", "concat"}
)
"""Methods of tensors that Python's own types lack."""
_ATTRIBUTES = frozenset({"shape", "ndim"})
_TAKES_TENSOR = torch_api.FUNCTIONS_RETURNING_TENSOR - torch_api.NOT_FIRST_TENSOR
_OF_TENSORS = _METHODS.union(
    _ATTRIBUTES, torch_api.PYTHON_ATTRIBUTES, torch_api.TENSOR_ATTRIBUTES, torch_api.CASTS
).union({"to", "cpu", "cuda", "type", "detach", "clone", "contiguous", "index", "split", "copy_"})
_ASKING_OTHERS = frozenset({"isinstance", "is_tensor", "range", "arange", "len", "list", "tuple", "enumerate"})
"""What is asked of other objects than tensors, or because something may be another; a range ends at a number."""
_ARRAYS = ("numpy.", "scipy.", "math.", "random.")
Resolve = Callable[[str], "str | None"]


def likely_tensors(function: FunctionNode, outline: Outline, resolve: Resolve) -> Mapping[str, bool]:
    """Local names that are used as tensors; True for those that the function compares with None.

    `resolve` gives the qualified name of a global one.
    """
    known: Mapping[str, bool] | None = outline.notes.get("likely tensors")
    if known is None:
        known = outline.notes["likely tensors"] = _look(function, outline, resolve)
    return known


def _look(function: FunctionNode, outline: Outline, resolve: Resolve) -> Mapping[str, bool]:
    used: set[str] = set()
    others: set[str] = set()
    for call in outline.calls:
        called = call.func
        if not isinstance(called, ast.Attribute):
            continue
        if not isinstance(called.value, ast.Name):
            used.update(_asked(called.value) if called.attr in _METHODS else ())
            continue
        owner, method = called.value.id, called.attr
        module = "" if owner in outline.names else f"{resolve(owner) or ''}."
        if module.startswith("torch."):
            if method in _TAKES_TENSOR and call.args and isinstance(call.args[0], ast.Name):
                used.add(call.args[0].id)
        elif module.startswith(_ARRAYS):
            others.update(each.id for each in call.args if isinstance(each, ast.Name))
        elif method in _METHODS or (method.endswith("_") and method[:-1] in _METHODS):
            used.add(owner)
    optional: set[str] = set()
    first = first_input(function)
    for node in walk_scope(function):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in _ATTRIBUTES:
                used.add(owner)
            elif owner == first and node.attr not in _OF_TENSORS:
                first = None
        elif first is not None and is_no_tensor(node, first):
            first = None
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            right = node.comparators[0]
            if is_none(right):
                optional.add(node.left.id)
    if first is not None:
        used.add(first)
    return {name: name in optional for name in (used & outline.names) - others}


def _asked(node: ast.expr) -> Iterator[str]:
    """The names that an expression with a method of tensors is made of: `x` for `x == 0`, `x[:, 2:] >= x[:, :2]`.

    What it is compared or combined with may be a number.
    """
    compared = isinstance(node, ast.Compare)
    while isinstance(node, (ast.Compare, ast.BinOp, ast.UnaryOp)):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.left
        if isinstance(node, ast.Name):
            yield node.id
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        # No list takes an index of several slices, and lists compare to a bool.
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice] if compared else []
        if any(isinstance(each, ast.Slice) for each in index):
            yield node.value.id


def first_input(function: FunctionNode) -> str | None:
    """The first argument of a `forward`, which is the one that modules pass on to each other."""
    named = [*function.args.posonlyargs, *function.args.args]
    given = len(named) - len(function.args.defaults)
    return named[1].arg if function.name == "forward" and min(len(named), given) > 1 else None


def is_no_tensor(node: ast.AST, name: str) -> bool:
    """True for what nobody does to a tensor: `for a in x`, `x["key"]`, `x(...)`, `len(x)`, `f(*x)`, `x == "text"`."""
    if isinstance(node, ast.Subscript):
        index = node.slice
        return is_name(node.value, name) and isinstance(index, ast.Constant) and isinstance(index.value, str)
    if isinstance(node, ast.Call):
        called = node.func
        asked = last_name(called) in _ASKING_OTHERS
        return is_name(called, name) or (asked and any(is_name(each, name) for each in node.args))
    if isinstance(node, (ast.For, ast.comprehension)):
        return is_name(node.iter, name)
    if isinstance(node, ast.Compare):
        return any(is_name(each, name) for each in (node.left, *node.comparators))
    return (
        isinstance(node, (ast.Starred, ast.keyword))
        and is_name(node.value, name)
        and getattr(node, "arg", None) is None
    )


def guessed_parameters(function: FunctionNode, likely: Mapping[str, bool]) -> dict[str, bool]:
    """The parameters without an annotation, and without a default other than None, that are likely tensors."""
    args, pairs = function.args, defaults_of(function)
    absent = {each.arg for each, default in pairs if is_none(default)}
    excluded = {each.arg for each, _ in pairs} - absent
    excluded |= {each.arg for each in (args.vararg, args.kwarg) if each is not None}
    return {
        each.arg: likely[each.arg] or each.arg in absent
        for each in parameters(function)
        if each.annotation is None and each.arg in likely and each.arg not in excluded
    }
