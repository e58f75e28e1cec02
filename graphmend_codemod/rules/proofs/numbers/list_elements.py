"""The numbers that a loop takes out of a tensor that was built from a list, and what is done with them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property

from graphmend_codemod.analysis.scope import FunctionNode, walk_in_layers, walk_scope

_COUNTING = frozenset({"enumerate", "zip", "reversed"})


_SIZES = frozenset(
    """arange linspace zeros ones full empty eye view reshape expand repeat new_zeros new_ones new_full new_empty
    range split narrow unflatten interpolate rand randn""".split()
)


def why_not_a_list(function: FunctionNode, parameter: str) -> str | None:
    """Why `function` may not get the list for its tensor `parameter`; an empty string where it needs no list.

    None when it iterates over the parameter and uses the numbers in it as sizes and in arithmetic, nothing else.
    """
    counted: set[int] = set()
    loops: list[Numbers] = []
    for node in walk_scope(function):
        if isinstance(node, (ast.For, ast.comprehension)):
            found, element = _iterated(node.target, node.iter, parameter)
            if found is not None:
                counted.add(id(found))
                around = node if isinstance(node, ast.For) else _around(function, node)
                loops.append(Numbers(function, around, element))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            counted |= {id(each) for each in node.args}
    if not any(loop.are_sizes for loop in loops):
        return ""
    for node in walk_scope(function):
        if isinstance(node, ast.Name) and node.id == parameter and id(node) not in counted:
            return f"`{function.name}` does more than iterate over `{parameter}`"
    return next((reason for loop in loops if (reason := loop.why_not_python) is not None), None)


def _around(function: FunctionNode, part: ast.comprehension) -> ast.AST:
    for node in walk_scope(function):
        if part in getattr(node, "generators", ()):
            return node
    raise AssertionError("a comprehension is outside any expression")


def _iterated(target: ast.expr, iterated: ast.expr, name: str) -> tuple[ast.Name | None, ast.expr]:
    """The name in the head of a loop over it, with the part of the target that gets its elements."""
    if isinstance(iterated, ast.Name) and iterated.id == name:
        return iterated, target
    if not (isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name)) or iterated.keywords:
        return None, target
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    offset = 1 if iterated.func.id == "enumerate" else 0
    if iterated.func.id not in _COUNTING:
        return None, target
    for position, argument in enumerate(iterated.args):
        inner = argument
        if isinstance(inner, ast.Name) and inner.id == name:
            if iterated.func.id == "reversed":
                return inner, target
            if position + offset < len(parts):
                return inner, parts[position + offset]
    return None, target


def iterated_name(node: ast.For, names: Mapping[str, str]) -> tuple[ast.Name, ast.expr] | None:
    """The first of `names` that a loop runs over, with the target of its elements."""
    for name in names:
        found, element = _iterated(node.target, node.iter, name)
        if found is not None:
            return found, element
    return None


class Numbers:
    """The numbers that a loop takes out of what it runs over: the names in its `target`, and what they alone make."""

    def __init__(self, function: FunctionNode, loop: ast.AST, target: ast.expr) -> None:
        self.function = function
        self.loop = loop
        self.target = target

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that hold them."""
        names = {part.id for part in walk_in_layers(self.target) if isinstance(part, ast.Name)}
        while True:
            known = len(names)
            for node in walk_scope(self.loop):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    target, value = node.targets[0], node.value
                elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    target, value = node.target, node.value
                else:
                    continue
                if _is_made_of(value, names):
                    names.add(target.id)
            if len(names) == known:
                return frozenset(names)

    @cached_property
    def _uses(self) -> list[ast.AST]:
        """Nodes in which they may be read: those of the loop, and after it if nothing binds the names again."""
        inside = list(walk_scope(self.loop))
        end = getattr(self.loop, "end_lineno", 0)
        after = [node for node in walk_scope(self.function) if getattr(node, "lineno", 0) > end]
        stored = {each.id for each in after if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        return inside if self.names & stored else [*inside, *after]

    @property
    def are_sizes(self) -> bool:
        """True where one is given as a size, a bound of a slice, or a count: what reads a tensor back to Python."""
        return any(self._is_size(node) for node in self._uses)

    def _is_size(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return _called(node) in _SIZES and any(self._in(argument) for argument in node.args)
        bounds = (node.lower, node.upper) if isinstance(node, ast.Slice) else ()
        return any(self._in(bound) for bound in bounds if bound is not None)

    def _in(self, node: ast.expr) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self.names for part in walk_in_layers(node))

    @property
    def why_not_python(self) -> str | None:
        """The use that integers may not serve as well as tensors."""
        allowed = {id(each) for node in self._uses for each in _operands(node)}
        for node in self._uses:
            read = isinstance(node, ast.Name) and node.id in self.names and isinstance(node.ctx, ast.Load)
            if read and isinstance(node, ast.Name) and id(node) not in allowed:
                return f"`{self.function.name}` may use `{node.id}` as a tensor"
        return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_made_of(node: ast.expr, names: set[str]) -> bool:
    """True for arithmetic with these names and numbers only."""
    if isinstance(node, ast.BinOp):
        return _is_made_of(node.left, names) and _is_made_of(node.right, names)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in names)


def _operands(node: ast.AST) -> list[ast.expr]:
    """Expressions in `node` whose place takes an integer as well as a 0-dim tensor."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Slice):
        return [bound for bound in (node.lower, node.upper) if bound is not None]
    if isinstance(node, (ast.AugAssign, ast.FormattedValue)):
        return [node.value]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return [node.value]
    if isinstance(node, ast.Call) and (_called(node) in _SIZES or _called(node) == "int"):
        return [each for argument in node.args for each in getattr(argument, "elts", [argument])]
    return []
