"""numpy-on-sizes (GM601): NumPy or a tensor division computes a Python number from sizes.

Dynamo traces `np.prod(x.shape[1:])` and `np.ceil(length / 2).astype(int)` as tensor operations, so numbers that were
Python all along become a tensor, and the graph breaks where the result is used as a number. The compile path does the
same with `math`, which Dynamo computes while it traces. Eager mode runs the original statement, word for word. Plain
`int(np.sqrt(length))` is computed while tracing already, and left alone. So is `int(np.floor(n))` of a float, but not
of an integer: where `n` may be one, the header asks for a number of Python.

`torch.div(x.size(1), n, rounding_mode="trunc")` breaks the graph as soon as sizes are dynamic, which `x.size(1) // n`
does not. Where the function asserts that the size is a multiple (`assert length % n == 0`), the compile path also cuts
the tensor to `length // n * n`, which is all of it: a view of `length // n` rows has n columns then, not
`length // (length // n)`, and Inductor takes less than half of the time over sizes that are made of it (one layer of
sliding attention: 285 s before, 128 s after on a busier machine). What is asserted, also that other tensors have the
same size, is asked for in the header, since `python -O` leaves assertions out.

Graphs with formulas for sizes compile a little longer than more and smaller ones: a model of one such layer took 77
CPU seconds for two lengths before and 86 after, and a call 3.4 ms before and 1.2 after.

`torch.prod(torch.tensor(x.shape[1:])).item()` goes through a tensor as well: it becomes `math.prod` of the sizes. So
does a product that is a size itself, `x.view(n, torch.tensor(x.shape[1:]).prod())`, also one with a name that is used
for nothing else.

An array of sizes, `shape = np.array(x.shape[2:])`, with which the next statement computes one array for each step of a
list, is kept as tuples of integers, where functions of the same file read elements of these for `np.arange` or slices.

`np.unique(axes)` of Python integers becomes `sorted(set(axes))`, where only `int(n)` of each element and their number
is used.

Only numbers that come from sizes, configuration and constants are taken over. The two libraries agree to the last digit
but one, and `math` raises for a logarithm of zero where numpy gives `-inf`.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_integer, is_name, is_shape, is_within, last_name, names_beyond
from graphmend_codemod.analysis.scope import dotted, parents_in, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, line_of, path_beside, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, own_definition
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import array_made, whole_numbers
from graphmend_codemod.rules.proofs.numbers.integers.number_uses import NumberUses
from graphmend_codemod.rules.proofs.sizes.numbers_in_math import asked_in_math, demand_no_array, in_math, is_number
from graphmend_codemod.rules.proofs.sizes.size_division import division_edit, divisions
from graphmend_codemod.rules.proofs.sizes.size_products import products_in_front, size_products

rule = Rule(
    __name__,
    __doc__,
    title="compute sizes with math instead of NumPy under torch.compile",
    contract=Contract(
        cost=Cost.NONE,
        cost_note="sizes that a break made constant become formulas, which take a little longer to compile",
    ),
)


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words=("np", "numpy"), here=True)
def numpy_number(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`n = int(np.ceil(size / 2))`, `x = x.reshape(-1, np.prod(x.shape[1:]))`, `loss /= float(np.prod(x.size()))`."""
    if node.value is None or "numpy" not in {site.evaluator.scope.resolve_global(name) for name in _NUMPY}:
        return None
    numbers = [part for part in walk_in_layers(node.value) if isinstance(part, ast.Call) and is_number(site, part)]
    numbers = [part for part in numbers if not any(part is not other and is_within(part, other) for other in numbers)]
    numbers = [part for part in numbers if not _is_beside_tensor(site, node.value, part)]
    if not numbers:
        return None
    message = f"computes a Python number with NumPy: `{speculation.short(numbers[0])}`"
    changes: list[tuple[ast.expr, str]] = []
    asked: list[str] = []
    for number in numbers:
        try:
            demand_no_array(site, node, numbers)
            changes.append((number, in_math(site, number)))
            asked += asked_in_math(site, number)
        except NotProven as reason:
            return Diagnostic(message, declined=str(reason))
    written = {id(part): (part, new) for part, new in changes}
    line = line_of(site.but(written=written), node)
    edit = two_paths(site, node, [site.compiling, *asked], [line], imports=(*site.imports, "math"))
    return Diagnostic(message, edit=edit)


_NUMPY = ("np", "numpy")


def _is_beside_tensor(site: Site, whole: ast.expr, number: ast.Call) -> bool:
    """True for `t * np.prod(self.rates)`, which Dynamo computes with a tensor as well."""
    if last_name(number.func) != "prod" or not number.args or is_shape(number.args[0]):
        return False
    sides = [(part.left, part.right) for part in walk_in_layers(whole) if isinstance(part, ast.BinOp)]
    beside = [other for pair in sides for one, other in (pair, pair[::-1]) if one is number]
    return any(site.value(other).kind is ValueKind.TENSOR for other in beside)


@rule.on(ast.Assign, words=("div", "floor_divide"), here=True)
def divided_sizes(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`x = x.view(torch.div(x.size(0), n, rounding_mode="trunc"), -1)`."""
    found = divisions(site, node.value)
    if not found:
        return None
    message = f"divides a size with a tensor op: `{speculation.short(found[0])}`"
    return judged(message, lambda: division_edit(site, node, found))


@rule.on(ast.Assign, ast.Return, words=("prod",), here=True)
def product_of_sizes(site: Site, node: ast.Assign | ast.Return) -> Diagnostic | None:
    """`n = torch.prod(torch.tensor(x.shape[1:])).item()`, and a product that is a size itself."""
    found = size_products(site, node)
    if not found:
        return None
    message = f"computes a Python number with a tensor (device sync): `{speculation.short(found[0][0])}`"
    return judged(message, lambda: products_in_front(site, node, found))


@rule.on(ast.Assign, words=("unique",), here=True)
def numbers_made_unique(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`axes = np.unique(axes).astype(int)`."""
    given = unique_numbers(site, node)
    if given is None or site.value(given).kind is ValueKind.TENSOR:
        return None
    message = f"computes Python numbers with an array, which is a tensor for Dynamo: `{speculation.short(node.value)}`"
    return judged(message, lambda: list_in_front(site, node, given))


@rule.on(ast.Assign, words=("array", "asarray"), here=True)
def sizes_in_an_array(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`shape = np.array(x.shape[2:])` and `shapes = [shape // 2**level for level in self.levels]`."""
    found = size_array(site, node)
    if found is None:
        return None
    message = f"computes sizes with an array, which is a tensor for Dynamo: `{speculation.short(node.value)}`"
    return judged(message, lambda: integers_in_front(site, node, found))


# Integers that NumPy sorts and makes unique, where only their numbers are used: `for axis in np.unique(axes)`

_COMMENT = "# The same integers in a list: an array would be a tensor, and its elements no numbers."
_INTEGERS = frozenset({"builtins.int", "numpy.int64"})
_ITERATES = frozenset({"builtins.sorted", "builtins.reversed", "builtins.list", "builtins.tuple"})


def unique_numbers(site: Site, node: ast.Assign) -> ast.expr | None:
    """`axes` in `unique = np.unique(axes).astype(int)`."""
    call = node.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "astype":
        whole = len(call.args) == 1 and not call.keywords and site.resolve(call.args[0]) in _INTEGERS
        call = call.func.value if whole else call
    if not isinstance(call, ast.Call) or site.resolve(call.func) != "numpy.unique":
        return None
    plain = len(call.args) == 1 and not call.keywords and len(node.targets) == 1
    named = plain and isinstance(node.targets[0], ast.Name) and dotted(call.args[0]) is not None
    return call.args[0] if named else None


def list_in_front(site: Site, node: ast.Assign, given: ast.expr) -> Edit:
    """The statement with a list in place of the array under `torch.compile`; NotProven if anything can tell."""
    target = node.targets[0]
    assert isinstance(target, ast.Name)
    each = site.free_name("n", "number", "axis")
    exact = f"all(-(2**63) <= {each} < 2**63 for {each} in {site.text(given)})"  # else an array of floats, or unsigned
    conditions = [site.compiling, *whole_numbers(site, given), exact]
    if (taken := next((each for each in ("sorted", "set") if not _is_builtin(site, each)), None)) is not None:
        raise NotProven(name_taken(taken))
    _demand_only_numbers(site, node, target.id)
    lines = [_COMMENT, f"{target.id} = sorted(set({site.text(given)}))"]
    return two_paths(site, node, conditions, lines)


def _is_builtin(site: Site, name: str) -> bool:
    return site.resolve(ast.Name(name, ast.Load())) == f"builtins.{name}"


def _demand_only_numbers(site: Site, node: ast.Assign, name: str) -> None:
    """NotProven unless the function reads only `int(n)` of each element `n`, and the number of elements."""
    function = site.evaluator.scope.node
    parents = parents_in(function)
    steps: set[str] = set()
    for part in names_beyond(function, {name}, [node]):
        above = parents[id(part)]
        if isinstance(above, ast.Call) and site.resolve(above.func) == "builtins.len":
            continue
        iterates = isinstance(above, ast.Call) and site.resolve(above.func) in _ITERATES and above.args[:1] == [part]
        loop = parents[id(above)] if iterates else above
        iterated = isinstance(loop, (ast.For, ast.comprehension)) and loop.iter in (above, part)
        if not isinstance(part.ctx, ast.Load) or not iterated or not isinstance(loop.target, ast.Name):  # type: ignore[attr-defined]
            raise NotProven(f"`{short(above)}` may need an array; use a list of its numbers")
        steps.add(loop.target.id)  # type: ignore[attr-defined]
    for part in names_beyond(function, steps, ()):
        if isinstance(part.ctx, ast.Load):
            call = parents[id(part)]
            if not isinstance(call, ast.Call) or site.resolve(call.func) != "builtins.int" or len(call.args) != 1:
                raise NotProven(f"`{short(call)}` may need a number of NumPy; write `int({part.id})`")


# Arrays of NumPy that are made of sizes, computed with element by element, and only read for sizes

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult)
_AS_TUPLES = "# Integers, element by element: an array would be a tensor, and its elements no sizes."


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
    first = [_AS_TUPLES, f"{array.name} = tuple({given})"]
    written = {id(use): (use, each) for use in array.uses}
    element = site.but(written=written).text(array.each.elt)
    over = f"for {steps.target.id} in {site.text(steps.iter)}"
    second = [f"{array.levels} = [tuple({element} for {each} in {array.name}) {over}]"]
    replacements = (
        path_beside(site, node, [site.compiling, *conditions], first),
        path_beside(site, array.following, [site.compiling, f"isinstance({array.name}, tuple)"], second),
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
        uses = None if reached is None else NumberUses(sure, site.resolve_global).several(*reached)
        if uses is None or uses.reason is not None:
            raise NotProven(f"`{short(call)}` may need an array; use a list of its numbers")
    certain = CertainCalls(site, sure.calls)
    certain.follow_all(certain.start(), [function], sure.links)
    return certain.conditions()
