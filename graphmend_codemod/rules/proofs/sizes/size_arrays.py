"""Arrays of NumPy that are made of sizes, computed with element by element, and only read for sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, calls_in, tree_of
from graphmend_codemod.analysis.scope import children, dotted, parameters, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, assigned_outside, is_whole
from graphmend_codemod.rules.proofs.numbers.integer_arrays import ARRAYS

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult)
_COUNTS = frozenset({"numpy.arange", "torch.arange"})
_BUILTINS = ("all", "int", "isinstance", "list", "tuple")
_COMMENT = "# Integers, element by element: an array would be a tensor, and its elements no sizes."


class NotSizes(Exception):
    """Why the array stays; the text says what to do."""


class SizeArray(NamedTuple):
    """`sizes = np.array(given)` and, as the next statement, `levels = [sizes // 2 ** step for step in steps]`."""

    name: str
    given: ast.expr
    following: ast.Assign
    levels: str
    each: ast.ListComp
    uses: tuple[ast.Name, ...]


def size_array(site: Site, node: ast.Assign) -> SizeArray | None:
    """The array that a statement makes, where the next one computes with it for each step of a list."""
    target, call = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return None
    if site.resolve(call.func) not in ARRAYS or len(call.args) != 1 or call.keywords:
        return None
    following = next(iter(site.following()), None)
    if not isinstance(following, ast.Assign) or len(following.targets) != 1:
        return None
    made, levels = following.value, following.targets[0]
    if not isinstance(made, ast.ListComp) or len(made.generators) != 1 or not isinstance(levels, ast.Name):
        return None
    uses = tuple(part for part in walk_in_layers(made) if isinstance(part, ast.Name) and part.id == target.id)
    return SizeArray(target.id, call.args[0], following, levels.id, made, uses) if uses else None


def integers_in_front(site: Site, node: ast.Assign, found: SizeArray) -> Edit:
    """Both statements with tuples of integers in place of arrays under `torch.compile`; NotSizes with the reason."""
    _demand_names(site, node, found)
    steps = found.each.generators[0]
    if steps.ifs or not isinstance(steps.target, ast.Name) or dotted(steps.iter) is None:
        raise NotSizes(f"`{short(found.each)}` is no list of one expression over a variable; assign the list to one")
    if not _is_cheap(found.given):
        raise NotSizes(f"`{short(found.given)}` would be computed twice; assign it to a variable first")
    _demand_elementwise(found.each.elt, found.name, steps.target.id)
    classes = _demand_only_sizes(site, found)
    given, each = site.text(found.given), site.free_name("n", "number", "size")
    conditions = [
        site.compiling,
        f"isinstance({given}, (tuple, list))",
        f"all(isinstance({each}, int) for {each} in {given})",
        f"isinstance({site.text(steps.iter)}, (tuple, list))",
        f"all(isinstance({each}, int) for {each} in {site.text(steps.iter)})",
        *classes,
    ]
    first = f"{site.header('if', conditions)}\n    {_COMMENT}\n    {found.name} = tuple({given})\nelse:\n    "
    written = {id(use): (use, each) for use in found.uses}
    element = site.but(written=written).text(found.each.elt)
    over = f"for {steps.target.id} in {site.text(steps.iter)}"
    path = f"    {found.levels} = [tuple({element} for {each} in {found.name}) {over}]"
    second = f"if {site.compiling} and isinstance({found.name}, tuple):\n{path}\nelse:\n    "
    replacements = (
        Replacement(site.span(node), (first, site.original(node, 1))),
        Replacement(site.span(found.following), (second, site.original(found.following, 1))),
    )
    return Edit(replacements, imports=site.imports)


def _demand_names(site: Site, node: ast.Assign, found: SizeArray) -> None:
    """NotSizes where one of the names means something else further down, or a builtin something else here."""
    if site.torch is None:
        raise NotSizes(name_taken())
    if (taken := next((each for each in _BUILTINS if site.evaluator.scope.is_local(each)), None)) is not None:
        raise NotSizes(name_taken(taken))
    function = site.evaluator.scope.node
    if node not in function.body:
        raise NotSizes("it is made in a loop or a branch; make it in the body of the function")
    own = {id(use) for use in found.uses}
    for part in walk(function):
        if not isinstance(part, ast.Name) or part.lineno <= (node.end_lineno or 0) or id(part) in own:
            continue
        bound = part.id == found.levels and not isinstance(part.ctx, ast.Load)
        if part.id == found.name or (bound and part is not found.following.targets[0]):
            raise NotSizes(f"`{part.id}` may be used as an array; use a list of its numbers")


def _demand_elementwise(node: ast.expr, name: str, step: str) -> bool:
    """True for an expression with the array in it, False for integers; NotSizes for what a list does in another way."""
    if isinstance(node, ast.Name) and node.id in {name, step}:
        return node.id == name
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return False
    if isinstance(node, ast.BinOp):
        left, right = (_demand_elementwise(each, name, step) for each in (node.left, node.right))
        if isinstance(node.op, _ELEMENTWISE) and not (left and right):
            return left or right
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not right and _is_positive(node.right):
            return left
        if isinstance(node.op, ast.Pow) and not left and not right:
            return False
    raise NotSizes(f"`{short(node)}` may give other numbers for an array than for its elements")


def _is_cheap(node: ast.expr) -> bool:
    """True for names, attributes, and slices of them with literal bounds, such as `x.shape[2:]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        return all(each is None or is_whole(each) for each in bounds) and dotted(node.value) is not None
    return dotted(node) is not None


def _is_positive(node: ast.expr) -> bool:
    """True for a positive literal, and powers of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def _demand_only_sizes(site: Site, found: SizeArray) -> list[str]:
    """Conditions under which the elements of the list are only read for sizes, in functions that get one of them."""
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        raise NotSizes("it is in a nested function")
    sure = SureCalls(calls, assigned_outside(tree_of(site.source.text)))
    parents = {id(child): parent for parent in walk(function.node) for child in children(parent)}
    for part in walk(function.node):
        if not isinstance(part, ast.Name) or part.id != found.levels or not isinstance(part.ctx, ast.Load):
            continue
        element = parents[id(part)]
        call = parents.get(id(element))
        if not isinstance(element, ast.Subscript) or element.value is not part or not isinstance(call, ast.Call):
            raise NotSizes(f"`{short(element)}` may need arrays; use lists of numbers")
        reached = sure.reached(function, call, element)
        if reached is None or not all(_is_size(calls.qualified, *each) for each in _reads(*reached)):
            raise NotSizes(f"`{short(call)}` may need an array; use a list of its numbers")
    try:
        certain = CertainCalls(site, calls)
        certain.follow_all(certain.start(), [function], sure.links)
        return certain.conditions()
    except NotProven as reason:
        raise NotSizes(str(reason)) from None


def _reads(function: Definition, name: str) -> Iterator[tuple[ast.AST, ast.AST | None, ast.AST | None]]:
    """Each use of a parameter with the two nodes around it."""
    parents = {id(child): parent for parent in walk(function.node) for child in children(parent)}
    named = {each.arg: each for each in parameters(function.node)}
    for part in walk(function.node):
        if isinstance(part, ast.Name) and part.id == name and name in named:
            element = parents[id(part)]
            yield part, element, parents.get(id(element))


def _is_size(
    qualified: Callable[[ast.expr], str | None], part: ast.AST, element: ast.AST | None, around: ast.AST | None
) -> bool:
    """True for `shape[0]` that bounds a slice or says how many numbers `arange` makes."""
    whole = isinstance(element, ast.Subscript) and element.value is part and is_whole(element.slice)
    if not whole or not isinstance(getattr(element, "ctx", None), ast.Load):
        return False
    if isinstance(around, ast.Slice):
        return element is not around.step
    return isinstance(around, ast.Call) and element in around.args and qualified(around.func) in _COUNTS
