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

`torch.prod(torch.tensor(x.shape[1:])).item()` goes through a tensor as well: it becomes `math.prod` of the sizes.

An array of sizes with which the next statement computes one for each step of a list is named, and left alone.

Only numbers that come from sizes, configuration and constants are taken over. The two libraries agree to the last digit
but one, and `math` raises for a logarithm of zero where numpy gives `-inf`.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name, is_shape, is_within, last_name, only_target
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, line_of, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import ARRAYS, whole_numbers
from graphmend_codemod.rules.proofs.sizes.numbers_in_math import asked_in_math, demand_no_array, in_math, is_number
from graphmend_codemod.rules.proofs.sizes.size_division import division_edit, divisions

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
    """`n = torch.prod(torch.tensor(x.shape[1:])).item()`."""
    found = read_products(site, node.value) if node.value is not None else []
    if not found:
        return None
    message = f"computes a Python number with a tensor (device sync): `{speculation.short(found[0][0])}`"
    return judged(message, lambda: products_in_front(site, node, found))


@rule.on(ast.Assign, words=("array", "asarray"), here=True)
def sizes_in_an_array(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`shape = np.array(x.shape[2:])` and `shapes = [shape // 2**level for level in self.levels]`."""
    target, call, following = only_target(node), node.value, next(iter(site.following()), None)
    made = following.value if isinstance(following, ast.Assign) else None
    if not isinstance(call, ast.Call) or site.resolve(call.func) not in ARRAYS or len(call.args) != 1 or call.keywords:
        return None
    named = isinstance(target, ast.Name) and isinstance(made, ast.ListComp)
    if not named or not any(is_name(part, target.id) for part in walk_in_layers(made)):  # type: ignore[union-attr, arg-type]
        return None
    message = f"computes sizes with an array, which is a tensor for Dynamo: `{short(call)}`"
    return Diagnostic(message, declined="its elements are no Python numbers; manually compute a tuple of integers")


# Products of sizes that are computed in a tensor and read back: `torch.prod(torch.tensor(x.shape[1:])).item()`


def read_products(site: Site, node: ast.expr) -> list[tuple[ast.Call, ast.expr]]:
    """The products that an expression reads back, each with the sizes."""
    calls = [part for part in walk_in_layers(node) if isinstance(part, ast.Call)]
    return [(part, sizes) for part in calls if (sizes := _read_product(site, part)) is not None]


def products_in_front(site: Site, node: ast.stmt, products: list[tuple[ast.Call, ast.expr]]) -> Edit:
    """The statement with `math.prod` under `torch.compile`; NotProven where that may be another number."""
    conditions: list[str] = []
    written: dict[int, tuple[ast.expr, str]] = {}
    for part, sizes in products:
        if not is_shape(sizes) and dotted(sizes) is None:
            raise NotProven(f"`{short(sizes)}` would be computed twice; assign it to a variable first")
        asked, text = whole_numbers(site, sizes), site.text(sizes)
        # No numbers at all make a floating tensor, whose product is 1.0; and integers have 64 bits.
        limit = f"-(2**63) <= math.prod({text}) < 2**63"
        conditions += [*([] if is_shape(sizes) else [*asked, limit]), f"len({text}) > 0"]
        written[id(part)] = (part, f"math.prod({text})")
    line = site.but(written=written).text(node)
    return two_paths(site, node, [site.compiling, *conditions], [line], imports=(*site.imports, "math"))


def _read_product(site: Site, node: ast.Call) -> ast.expr | None:
    """The sizes in `torch.prod(torch.tensor(sizes)).item()` and `int(torch.tensor(sizes).prod())`."""
    product = number_read(site, node, INTEGER_CAST)
    if not isinstance(product, ast.Call) or product.keywords or not isinstance(product.func, ast.Attribute):
        return None
    whole = site.resolve(product.func) == "torch.prod" and len(product.args) == 1
    made = product.args[0] if whole else product.func.value
    if product.func.attr != "prod" or len(product.args) != whole or not isinstance(made, ast.Call):
        return None
    integers = all(word.arg == "dtype" and site.resolve(word.value) in INT64_NAMES for word in made.keywords)
    return made.args[0] if site.resolve(made.func) in TENSOR_MAKERS and len(made.args) == 1 and integers else None
