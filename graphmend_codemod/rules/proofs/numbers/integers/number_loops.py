"""Loops over tensors and lists of numbers: which names get the elements, and where those mean it; ends of ranges."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from graphmend_codemod.analysis.patterns import is_literal, is_name, last_name, written_integer
from graphmend_codemod.analysis.scope import FunctionNode, walk


def iterated(target: ast.expr, loop: ast.expr, name: str, named: Callable[[ast.Call], str | None]) -> ast.expr | None:
    """The part of a loop's target that gets the elements of what `name` holds, where it goes through those.

    `named` tells what a call in the head of the loop runs: `builtins.zip`.
    """
    if is_name(loop, name):
        return target
    given = loop.args if isinstance(loop, ast.Call) and not loop.keywords else []
    place = next((place for place, each in enumerate(given) if is_name(each, name)), None)
    means = named(loop) if isinstance(loop, ast.Call) and place is not None else None
    if place is None or means == "builtins.reversed":
        return target if place == 0 else None
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    place += means == "builtins.enumerate"
    return parts[place] if means in {"builtins.enumerate", "builtins.zip"} and place < len(parts) else None


def loop_around(target: ast.AST, parents: Mapping[int, ast.AST]) -> ast.AST | None:
    """The loop or comprehension whose target this is part of; None inside of another loop, which comes back to it."""
    while not isinstance(target, (ast.For, ast.comprehension)):
        target = parents[id(target)]
    loop = target if isinstance(target, ast.For) else parents[id(target)]
    above = parents.get(id(loop))
    while above is not None:
        if isinstance(above, (ast.For, ast.While)):
            return None
        above = parents.get(id(above))
    return loop


def behind(function: FunctionNode, loop: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a loop, and those behind it, where its names still mean what they did last."""
    yield from walk(loop)
    if isinstance(loop, ast.For):
        yield from (node for node in walk(function) if getattr(node, "lineno", 0) > (loop.end_lineno or 0))


def is_end(node: ast.AST) -> bool:
    """True for `name[-1] + 1`."""
    last = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else None
    named = isinstance(last, ast.Subscript) and isinstance(last.value, ast.Name)
    return named and written_integer(last.slice) == -1 and is_literal(node.right, 1)  # type: ignore[attr-defined, union-attr]


def is_table(function: FunctionNode, owner: ast.expr) -> bool:
    """True for a local dict: it finds equal numbers at one key, and keeps a key for each tensor."""
    given = (part for part in walk(function) if isinstance(part, ast.Assign) and isinstance(owner, ast.Name))
    values = (each.value for each in given if any(is_name(target, owner.id) for target in each.targets))  # type: ignore[attr-defined]
    return any(
        isinstance(each, (ast.Dict, ast.DictComp))
        or (isinstance(each, ast.Call) and (last_name(each.func) or "").lower().endswith("dict"))
        for each in values
    )
