"""Names that hold several sizes of a tensor: `inner = x.shape[1:]`, `batch, *rest = x.shape`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import (
    elements_of,
    is_name,
    is_shape,
    stores_name,
)
from graphmend_codemod.analysis.scope import walk, walk_scope
from graphmend_codemod.analysis.torch_api import LAYOUT, RETURNS_TENSOR
from graphmend_codemod.rules.framework.site import Site

_READING = frozenset(
    {"builtins.len", "builtins.sum", "builtins.max", "builtins.min", "builtins.tuple", "builtins.list"}
)


def is_shape_here(site: Site, node: ast.expr) -> bool:
    """`x.shape[1:]`, `x.size()[1:]`, and names of nothing else, the `rest` of `batch, *rest = x.shape` among them."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_shape_here(site, node.value)
    if isinstance(node, ast.Name):
        values = list(_values(site, node.id))
        return bool(values) and all(value is not None and is_shape_here(site, value) for value in values)
    return is_shape(node)


def _is_changed(site: Site, name: str) -> bool:
    """True where a list that a name holds may get other elements, also by another name or in a function that gets it.

    Sizes are a tuple, but what a star takes of them is a list.
    """
    inside: list[ast.AST | None]
    for part in walk(site.evaluator.scope.node):
        if isinstance(part, ast.Call) and not _leaves_lists(site, part):
            inside = [*part.args, *(word.value for word in part.keywords), getattr(part.func, "value", None)]
        elif isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
            inside = [part.value]
        elif isinstance(part, (ast.Assign, ast.NamedExpr, ast.Return, ast.Yield, ast.Tuple, ast.List, ast.Dict)):
            inside = list(ast.iter_child_nodes(part))
            inside = [each for each in inside if isinstance(getattr(each, "ctx", None), ast.Load)]
        else:
            continue
        if any(is_name(each, name) for each in inside):
            return True
    return False


def _leaves_lists(site: Site, call: ast.Call) -> bool:
    """True for functions that only read a list that they are given."""
    called = site.resolve(call.func)
    if called is not None:
        return called.partition(".")[0] in {"torch", "numpy", "math"} or called in _READING
    return isinstance(call.func, ast.Attribute) and call.func.attr in {*LAYOUT, *RETURNS_TENSOR}


def _values(site: Site, name: str) -> Iterator[ast.expr | None]:
    """What a name is bound to in a function; None where that is not plain."""
    function = site.evaluator.scope.node
    if name in {each.arg for each in walk(function.args) if isinstance(each, ast.arg)}:
        yield None
    plain = set()
    for part in walk_scope(function):
        if not isinstance(part, ast.Assign) or len(part.targets) != 1:
            continue
        target = part.targets[0]
        stars = [each.value for each in elements_of(target) if isinstance(each, ast.Starred)]
        if is_name(target, name) or (any(is_name(star, name) for star in stars) and not _is_changed(site, name)):
            plain.add(id(stars[0] if stars else target))
            yield part.value
    for part in walk_scope(function):
        if stores_name(part, name) and id(part) not in plain:
            yield None
