"""What a tensor that is joined of sizes holds, as the elements of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    is_integer,
    is_literal,
    is_name,
    is_shape,
    is_size,
    stores_name,
)
from graphmend_codemod.analysis.scope import FunctionNode, walk, walk_scope
from graphmend_codemod.analysis.torch_api import INT64_NAMES, LAYOUT, RETURNS_TENSOR, TENSOR_MAKERS
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import binds

AS_SIZE = "_as_size"
_READING = frozenset(
    {"builtins.len", "builtins.sum", "builtins.max", "builtins.min", "builtins.tuple", "builtins.list"}
)


def listed_elements(site: Site, node: ast.Assign, part: ast.expr) -> str:
    """What one of the joined tensors adds to the list; NotProven if it is not made of sizes."""
    made = made_of_sizes(site, part)
    typed = isinstance(part, ast.Call) and any(word.arg == "dtype" for word in part.keywords)
    if isinstance(made, (ast.List, ast.Tuple)):
        if any(isinstance(each, ast.Starred) for each in made.elts):
            raise NotProven(f"`{speculation.short(made)}` has a star")
        if typed or all(is_integer(each) or is_size(each) for each in made.elts):
            return ", ".join(_number(site, each) for each in made.elts)
    elif made is not None and typed:  # without a dtype, no sizes at all are a floating tensor
        return f"*{site.text(made)}" if is_shape_here(site, made) else f"*map({AS_SIZE}, {site.text(made)})"
    if isinstance(part, ast.Name) and _is_made(site, node, part.id):
        return f"*{part.id}"
    if isinstance(part, ast.Call) and site.resolve(part.func) == "torch.ones_like" and len(part.args) == 1:
        like = part.args[0]
        words = {word.arg: word.value for word in part.keywords}
        whole = "dtype" in words and site.resolve(words["dtype"]) in INT64_NAMES and words.keys() <= {"dtype", "device"}
        if whole and isinstance(like, ast.Name) and _is_made(site, node, like.id):
            return f"*[1] * len({like.id})"
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "unsqueeze":
        given = all_given(part)
        inner = part.func.value
        first = len(given) == 1 and is_literal(given[0], 0)
        if first and isinstance(inner, ast.Name) and _is_made(site, node, inner.id):
            return f"{AS_SIZE}({inner.id})"
    raise NotProven(f"cannot infer that `{speculation.short(part)}` is made of sizes")


def made_of_sizes(site: Site, node: ast.expr) -> ast.expr | None:
    """`sizes` for `torch.as_tensor(sizes, dtype=torch.long)`; None for any other."""
    if not isinstance(node, ast.Call) or site.resolve(node.func) not in TENSOR_MAKERS or len(node.args) != 1:
        return None
    words = {word.arg: word.value for word in node.keywords}
    if not words.keys() <= {"dtype", "device"} or (
        "dtype" in words and site.resolve(words["dtype"]) not in INT64_NAMES
    ):
        return None
    simple = all(isinstance(word, (ast.Name, ast.Attribute, ast.Constant)) for word in words.values())
    return node.args[0] if simple else None


def _number(site: Site, node: ast.expr) -> str:
    return site.text(node) if is_integer(node) or is_size(node) else f"{AS_SIZE}({site.text(node)})"


def is_shape_here(site: Site, node: ast.expr) -> bool:
    """`x.shape[1:]`, `x.size()[1:]`, and names of nothing else, the `rest` of `batch, *rest = x.shape` among them."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_shape_here(site, node.value)
    if isinstance(node, ast.Name):
        values = list(_values(site, node.id))
        return bool(values) and all(value is not None and is_shape_here(site, value) for value in values)
    return is_shape(node)


def _is_made(site: Site, node: ast.Assign, name: str) -> bool:
    """True when the name holds a tensor that was made of sizes, above in the same block."""
    body = site.place.blocks[-1][0]
    found = [each for each in body if each.lineno < node.lineno and binds(each, name)]
    last = found[-1] if found else None
    changed = next(_changes_in_place(site.evaluator.scope.node, name), None)
    if changed is not None:
        raise NotProven(f"`{speculation.short(changed)}` changes a value that is joined")
    return isinstance(last, ast.Assign) and made_of_sizes(site, last.value) is not None and len(last.targets) == 1


def _changes_in_place(function: FunctionNode, name: str) -> Iterator[ast.AST]:
    """Where the tensor that a name holds is written into: a list would hold its elements, not copies of them."""
    for part in walk(function):
        written: ast.AST | None = None
        if isinstance(part, ast.AugAssign):
            written = part.target
        elif (
            (isinstance(part, ast.Attribute) and (part.attr.endswith("_") or part.attr == "data"))
            or (isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load))
            or (isinstance(part, ast.keyword) and part.arg == "out")
        ):
            written = part.value
        if is_name(written, name):
            yield part


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
