"""Arrays of NumPy that are made of sizes, computed with element by element, and only read for sizes."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_integer, is_name
from graphmend_codemod.analysis.scope import dotted, parents_in, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, own_definition
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.numbers.integer_arrays import array_made, whole_numbers
from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult)
_COMMENT = "# Integers, element by element: an array would be a tensor, and its elements no sizes."


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
    array = array_made(site, node)
    if array is None:
        return None
    following = next(iter(site.following()), None)
    if not isinstance(following, ast.Assign) or len(following.targets) != 1:
        return None
    made, levels = following.value, following.targets[0]
    if not isinstance(made, ast.ListComp) or len(made.generators) != 1 or not isinstance(levels, ast.Name):
        return None
    uses = tuple(part for part in walk_in_layers(made) if is_name(part, array[0]))
    return SizeArray(*array, following, levels.id, made, uses) if uses else None


def integers_in_front(site: Site, node: ast.Assign, array: SizeArray) -> Edit:
    """Both statements with tuples of integers in place of arrays under `torch.compile`; NotProven with the reason."""
    _demand_names(site, node, array)
    steps = array.each.generators[0]
    if steps.ifs or not isinstance(steps.target, ast.Name) or dotted(steps.iter) is None:
        raise NotProven(f"`{short(array.each)}` is no list of one expression over a variable; assign the list to one")
    if not _is_cheap(array.given):
        raise NotProven(f"`{short(array.given)}` would be computed twice; assign it to a variable first")
    _demand_elementwise(array.each.elt, array.name, steps.target.id)
    classes = _demand_only_sizes(site, array)
    given, each = site.text(array.given), site.free_name("n", "number", "size")
    conditions = [*whole_numbers(site, array.given), *whole_numbers(site, steps.iter), *classes]
    first = [_COMMENT, f"{array.name} = tuple({given})"]
    written = {id(use): (use, each) for use in array.uses}
    element = site.but(written=written).text(array.each.elt)
    over = f"for {steps.target.id} in {site.text(steps.iter)}"
    second = [f"{array.levels} = [tuple({element} for {each} in {array.name}) {over}]"]
    replacements = (
        in_front(site, [node], [site.compiling, *conditions], first),
        in_front(site, [array.following], [site.compiling, f"isinstance({array.name}, tuple)"], second),
    )
    return Edit(replacements, imports=site.imports)


def _demand_names(site: Site, node: ast.Assign, found: SizeArray) -> None:
    """NotProven where one of the names means something else further down."""
    function = site.evaluator.scope.node
    if node not in function.body:
        raise NotProven("it is made in a loop or a branch; make it in the body of the function")
    own = {id(use) for use in found.uses}
    for part in walk(function):
        if not isinstance(part, ast.Name) or part.lineno <= (node.end_lineno or 0) or id(part) in own:
            continue
        bound = part.id == found.levels and not isinstance(part.ctx, ast.Load)
        if part.id == found.name or (bound and part is not found.following.targets[0]):
            raise NotProven(f"`{part.id}` may be used as an array; use a list of its numbers")


def _demand_elementwise(node: ast.expr, name: str, step: str) -> bool:
    """True for an expression with the array in it, False for integers; NotProven for what a list does differently."""
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
    raise NotProven(f"`{short(node)}` may give other numbers for an array than for its elements")


def _is_cheap(node: ast.expr) -> bool:
    """True for names, attributes, and slices of them with literal bounds, such as `x.shape[2:]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        return all(each is None or is_integer(each) for each in bounds) and dotted(node.value) is not None
    return dotted(node) is not None


def _is_positive(node: ast.expr) -> bool:
    """True for a positive literal, and powers of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def _demand_only_sizes(site: Site, found: SizeArray) -> list[str]:
    """Conditions under which the elements of the list are only read for sizes, in functions that get one of them."""
    sure = sure_calls(site)
    function = own_definition(site)
    parents = parents_in(function.node)
    for part in walk(function.node):
        if not is_name(part, found.levels) or not isinstance(part.ctx, ast.Load):
            continue
        element = parents[id(part)]
        call = parents.get(id(element))
        if not isinstance(element, ast.Subscript) or element.value is not part or not isinstance(call, ast.Call):
            raise NotProven(f"`{short(element)}` may need arrays; use lists of numbers")
        reached = sure.reached(function, call, element)
        uses = None if reached is None else NumberUses(sure, site.resolve_global, swapped=True).several(*reached)
        if uses is None or uses.reason is not None:
            raise NotProven(f"`{short(call)}` may need an array; use a list of its numbers")
    certain = CertainCalls(site, sure.calls)
    certain.follow_all(certain.start(), [function], sure.links)
    return certain.conditions()
