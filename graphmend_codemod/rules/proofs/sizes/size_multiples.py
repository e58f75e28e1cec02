"""Sizes that a function asserts to be multiples of something, and how the compiler is told.

Where `length` is dynamic, a view of `length // 8` rows of eight has `length // (length // 8)` columns for the compiler,
and every size made of it grows from there. Cut to `length // 8 * 8`, which is all of it, the columns are eight again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_literal, is_name, stores_name
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.rules.framework.site import Site

_COMMENT = "# All of it, as asserted above: sizes that are made of a product stay short for the compiler."


class _Size(NamedTuple):
    """`name = tensor.size(dimension)`, in the statement at `position` of the function's body."""

    name: str
    tensor: str
    dimension: int
    position: int


def told_multiples(site: Site, node: ast.stmt, divided: Sequence[ast.Call]) -> tuple[list[str], list[str]]:
    """Conditions, and lines that cut tensors to the multiple that their size is, before its first division.

    The conditions say what was asserted once more: `python -O` leaves assertions out.
    """
    body = site.evaluator.scope.node.body
    if node not in body:
        return [], []
    position = body.index(node)
    for name in dict.fromkeys(each.args[0].id for each in divided if isinstance(each.args[0], ast.Name)):
        size = _size(body[:position], name)
        if size is None or _stores(walk(site.evaluator.scope.node), name) != 1:
            continue
        between = body[size.position + 1 : position]
        factor = _factor(site, between, name)
        if factor is None or _divides(body[:position], name):
            continue
        tensors = [each for each in _same(between, size) if not _stores(_parts(between), each)]
        if size.tensor in tensors:
            text = site.text(factor)
            text = text if isinstance(factor, (ast.Name, ast.Constant)) else f"({text})"
            cut = [f"{each} = {each}.narrow({size.dimension}, 0, {name})" for each in tensors]
            others = [f"{each}.size({size.dimension}) == {name}" for each in tensors if each != size.tensor]
            return [f"{name} % {text} == 0", *others], [_COMMENT, f"{name} = {name} // {text} * {text}", *cut]
    return [], []


def _parts(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from walk(statement)


def _stores(nodes: Iterator[ast.AST], name: str) -> int:
    return sum(stores_name(each, name) for each in nodes)


def _size(body: Sequence[ast.stmt], name: str) -> _Size | None:
    """Where `name` is bound to a size: `rows, name = x.size()`, `name = x.size(1)`."""
    for position, statement in enumerate(body):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        tensor = _sized(value)
        if tensor is None or not isinstance(value, ast.Call):
            continue
        if isinstance(target, ast.Tuple) and not value.args and all(isinstance(each, ast.Name) for each in target.elts):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            if names.count(name) == 1 and tensor not in names:
                return _Size(name, tensor, names.index(name), position)
        elif is_name(target, name) and len(value.args) == 1:
            dimension = value.args[0]
            if isinstance(dimension, ast.Constant) and isinstance(dimension.value, int):
                return _Size(name, tensor, dimension.value, position)
    return None


def _sized(node: ast.expr) -> str | None:
    """`x` for `x.size()` and `x.size(1)`."""
    sized = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    owner = node.func.value if sized and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else None


def _factor(site: Site, statements: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """`m` of `assert name % m == 0`, made of numbers and of parameters that nothing binds."""
    for statement in statements:
        test = statement.test if isinstance(statement, ast.Assert) else None
        left = test.left if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) else None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(left, ast.BinOp):
            continue
        zero = is_literal(test.comparators[0], 0)
        by = isinstance(left.op, ast.Mod) and is_name(left.left, name)
        if zero and by and all(_is_fixed(site, part) for part in walk_in_layers(left.right)):
            return left.right
    return None


def _is_fixed(site: Site, node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        function = site.evaluator.scope.node
        arguments = {each.arg for each in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}
        return node.id in arguments and not _stores(walk(function), node.id)
    number = isinstance(node, ast.Constant) and isinstance(node.value, int)
    return number or isinstance(node, (ast.BinOp, ast.Mult, ast.Add, ast.Load))


def _divides(statements: Sequence[ast.stmt], name: str) -> bool:
    """True when `name` is divided before, where the compiler is told already."""
    return any(
        isinstance(part, ast.Call) and any(is_name(each, name) for each in part.args[:1])
        for part in _parts(statements)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        if part.func.attr in {"div", "floor_divide"}
    )


def _same(statements: Sequence[ast.stmt], size: _Size) -> list[str]:
    """The tensor, and those that are asserted to have the same size in that dimension."""
    found = [size.tensor]
    for statement in statements:
        test = statement.test if isinstance(statement, ast.Assert) else None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            continue
        sides = [_whole(test.left, size.dimension), _whole(test.comparators[0], size.dimension)]
        if size.tensor in sides:
            found += [each for each in sides if each is not None and each not in found]
    return found


def _whole(node: ast.expr, dimension: int) -> str | None:
    """`x` for `x.size()` and for `x.size()[:n]` with the dimension in it."""
    inner: ast.expr = node
    if isinstance(node, ast.Subscript):
        part, inner = node.slice, node.value
        upper = part.upper if isinstance(part, ast.Slice) and part.lower is part.step is None else None
        count = upper.value if isinstance(upper, ast.Constant) and isinstance(upper.value, int) else -1
        if not 0 <= dimension < count:
            return None
    return _sized(inner) if isinstance(inner, ast.Call) and not inner.args else None
