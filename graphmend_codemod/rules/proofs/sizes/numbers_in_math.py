"""Numbers that NumPy computes from sizes, written with `math`."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import (
    is_literal,
    is_name,
    is_shape,
    is_size,
    item_of,
    rebinds,
    values_given,
)
from graphmend_codemod.analysis.scope import dotted, walk, walk_in_layers
from graphmend_codemod.analysis.values import Origin, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import number_read
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import is_builtin
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import whole_numbers
from graphmend_codemod.rules.proofs.sizes.shapes_here import is_shape_here

_SAME_IN_MATH = frozenset({"ceil", "floor", "log", "log1p", "log2", "log10", "sqrt", "exp", "prod"})


_TELL_TYPES = frozenset({"builtins.isinstance", "builtins.type", "builtins.repr", "builtins.ascii"})
_AS_WRITTEN = frozenset(map(ord, "ra"))
"""Conversions of `f"{n!r}"`, which NumPy answers with `np.int64(3)`."""
_INTEGERS = frozenset({"builtins.int", "numpy.int32", "numpy.int64"})


_OF_TWO = frozenset({"lcm", "gcd"})

_WHOLE_OF = (ast.Add, ast.Sub, ast.FloorDiv, ast.Mod)
_WHOLE = {
    **{"floor": "math.floor({})", "ceil": "math.ceil({})", "abs": "int(abs({}))", "absolute": "int(abs({}))"},
    **dict.fromkeys(("rint", "round", "around"), "round({})"),
}
"""What `int` of such a function of NumPy is for a number of Python. Dynamo traces the function of floats alone."""


def _numpy_function(site: Site, node: ast.expr) -> str | None:
    """`ceil` for a call of `np.ceil` with one argument."""
    return _function_among(site, node, _SAME_IN_MATH, 1)


def _function_of_two(site: Site, node: ast.expr) -> str | None:
    """`lcm` for a call of `np.lcm` with two arguments, integers as both libraries want them."""
    return _function_among(site, node, _OF_TWO, 2)


def _function_among(site: Site, node: ast.expr, names: frozenset[str], arguments: int) -> str | None:
    if not isinstance(node, ast.Call) or len(node.args) != arguments or node.keywords:
        return None
    module, _, name = (site.resolve(node.func) or "").rpartition(".")
    return name if module == "numpy" and name in names else None


def is_number(site: Site, node: ast.Call) -> bool:
    """True for a product of sizes, `np.lcm(a, b)`, and a call that makes a Python number of a cast numpy number.

    And for `int(np.floor(n))` where `n` may be an integer.
    """
    if _rounded(site, node) is not None:
        return True
    whole = site.resolve(node.func) == "builtins.int" and len(node.args) == 1 and not node.keywords
    inside = node.args[0] if whole else node
    if isinstance(inside, ast.Call) and _function_of_two(site, inside) is not None:
        # Without `int` it is traced, while `math.lcm` breaks the graph for sizes that vary: attributes do not.
        fixed = all(isinstance(argument, (ast.Constant, ast.Attribute)) for argument in inside.args)
        return (whole or fixed) and all(_python_number(site, argument) for argument in inside.args)
    if _numpy_function(site, node) == "prod":
        return is_shape_here(site, node.args[0]) or _is_held(site, node.args[0])
    inner = number_read(site, node)
    if inner is None:
        return False
    return _core(site, inner) is not inner and _numpy_function(site, _core(site, inner)) is not None


def _rounded(site: Site, node: ast.expr) -> tuple[str, ast.expr] | None:
    """The function and the number of `int(np.floor(n))`; None where `n` is no integer, whatever its names hold."""
    call = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
    if call is None or site.resolve(node.func) != "builtins.int":  # type: ignore[attr-defined]
        return None
    name = _function_among(site, call, frozenset(_WHOLE), 1)
    return (name, call.args[0]) if name is not None and _may_be_integer(site, call.args[0]) else None  # type: ignore[attr-defined]


def _may_be_integer(site: Site, node: ast.expr) -> bool:
    """False for tensors, quotients, what is computed with a fraction or by a call, and products: mostly with a rate."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return isinstance(node.op, _WHOLE_OF) and all(_may_be_integer(site, each) for each in sides)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Name) and _is_quotient(site, node.id):
        return False
    return (dotted(node) is not None or is_size(node) or is_shape(node)) and not site.value(node).is_tensor


def _is_quotient(site: Site, name: str) -> bool:
    """True for a name to which only quotients and products are assigned."""
    values = values_given(site.evaluator.scope.node, name)
    return bool(values) and all(isinstance(each, ast.BinOp) and not isinstance(each.op, _WHOLE_OF) for each in values)


def _is_held(site: Site, node: ast.expr) -> bool:
    """True for a name or attribute that may hold a tuple of integers, which the header then asks."""
    return dotted(node) is not None and site.value(node).kind is not ValueKind.TENSOR


def asked_in_math(site: Site, node: ast.expr) -> list[str]:
    """What has to hold for a number computed with `math` to be the one of NumPy; NotProven where a name is taken."""
    calls = [part for part in walk_in_layers(node) if isinstance(part, ast.Call)]
    products = [part for part in calls if _numpy_function(site, part) == "prod"]
    held = [each.args[0] for each in products if not is_shape_here(site, each.args[0])]
    conditions = [asked for each in held for asked in whole_numbers(site, each)]
    rounded = [
        number for part in calls if (found := _rounded(site, part)) and not _python_number(site, number := found[1])
    ]
    conditions += [f"isinstance({site.text(each)}, (int, float))" for each in rounded]
    # NumPy counts on from the smallest number behind the largest of 64 bits; sizes are not as many.
    conditions += [f"-(2**63) <= math.prod({site.text(each)}) < 2**63" for each in held]
    # Of no numbers NumPy makes 1.0, and `math` 1.
    several = [each for each in products if not _is_float(site, each)]
    if several and not is_builtin(site, "len"):
        raise NotProven(name_taken("len"))
    return [*conditions, *(f"len({site.text(each.args[0])}) > 0" for each in several)]


def _is_float(site: Site, product: ast.Call) -> bool:
    """True for the product in `float(np.prod(sizes))`, where it makes no difference."""
    calls = (part for part in walk_in_layers(site.place.statement) if isinstance(part, ast.Call))
    casts = [call for call in calls if len(call.args) == 1 and call.args[0] is product]
    return any(site.resolve(part.func) in {"builtins.float", "builtins.int"} for part in casts)


def demand_no_array(site: Site, statement: ast.stmt, numbers: list[ast.Call]) -> None:
    """NotProven where something asks the number what only one of NumPy knows: `n.astype(int)`, `isinstance(n, int)`."""
    function = site.evaluator.scope.node
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    kept = target.id if isinstance(target, ast.Name) and any(statement.value is each for each in numbers) else None  # type: ignore[attr-defined]
    for part in walk(function):
        shown = isinstance(part, ast.FormattedValue) and part.conversion in _AS_WRITTEN
        inner = [part.value] if isinstance(part, ast.Attribute) or shown else []  # type: ignore[attr-defined]
        if isinstance(part, ast.Call) and site.resolve(part.func) in _TELL_TYPES:
            inner = part.args[:1]
        for each in inner:
            if any(each is number for number in numbers) or (kept is not None and is_name(each, kept)):
                raise NotProven(f"`{speculation.short(part)}` may need a number of NumPy; write `int(...)` around it")


def _core(site: Site, node: ast.expr) -> ast.expr:
    """`x` for `x.astype(int)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "astype":
        return node
    dtype = node.args[0] if len(node.args) == 1 else None
    named = is_literal(dtype, "int")
    whole = named or (dtype is not None and site.resolve(dtype) in _INTEGERS)
    return node.func.value if whole else node


def in_math(site: Site, node: ast.expr) -> str:
    """The text that computes the same number with `math`."""
    if (rounded := _rounded(site, node)) is not None:
        return _WHOLE[rounded[0]].format(site.text(rounded[1]))
    name = _numpy_function(site, node)
    if name is not None:
        assert isinstance(node, ast.Call)
        held = name == "prod" and _is_held(site, node.args[0])
        return f"math.{name}({site.text(node.args[0]) if held else in_math(site, node.args[0])})"
    name = _function_of_two(site, node)
    if name is not None:
        assert isinstance(node, ast.Call)
        return f"math.{name}({', '.join(in_math(site, argument) for argument in node.args)})"
    if (read := item_of(node)) is not None:
        inner = _core(site, read)
        return _as_type(site, "int", inner) if inner is not read else in_math(site, inner)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _as_type(site, node.func.id, _core(site, node.args[0]))
    if not _python_number(site, node):
        raise NotProven(f"cannot infer that `{speculation.short(node)}` is a Python number")
    return site.text(node)


def _as_type(site: Site, name: str, node: ast.expr) -> str:
    whole = name == "int" and _numpy_function(site, node) in {"ceil", "floor"}
    return in_math(site, node) if whole else f"{name}({in_math(site, node)})"


def _python_number(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _python_number(site, node.left) and _python_number(site, node.right)
    if isinstance(node, ast.UnaryOp):
        return _python_number(site, node.operand)
    if isinstance(node, (ast.Subscript, ast.Attribute)) and is_shape(node):
        return True
    if is_size(node):
        return True
    if isinstance(node, ast.Name) and (given := _given(site, node.id)) is not None:
        return _python_number(site, given)
    value = site.value(node)
    if isinstance(node, ast.Attribute) and dotted(node.value) in {"config", "self.config"}:
        return not value.is_tensor
    return value.is_python and value.origin in {Origin.SHAPE, Origin.CONFIG, Origin.CONSTANT}


def _given(site: Site, name: str) -> ast.expr | None:
    """What a name was assigned last, in a block around the statement, when that is the size of something."""
    last = next((each for each in site.place.above() if rebinds(each, name)), None)
    value = last.value if isinstance(last, ast.Assign) and is_name(last.targets[0], name) else None
    sized = isinstance(value, ast.Subscript) or getattr(getattr(value, "func", None), "attr", "") == "size"
    return value if sized else None
