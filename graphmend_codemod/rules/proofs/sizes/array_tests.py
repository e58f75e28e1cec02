"""Tests of an array of NumPy that is computed from Python integers: `(np.array(x.shape[2:]) % 32 > 0).any()`.

Dynamo traces the array as a tensor, whose test it cannot decide. The same comparisons of the integers are Python.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_shape, only_target
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import ARRAYS, whole_numbers

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.FloorDiv: "//",
}  # fmt: skip
_COMPARES: dict[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_POWERS = frozenset({"numpy.power"})
_NAMES = ("any", "all", "isinstance", "int", "tuple", "list", "type")
_FACTOR = 2**15
"""Products with literals below this one: sizes, and other numbers below 2**48, times these fit into 64 bits."""
_LARGEST = 8
"""Powers up to this one of what is asked to be below 2**7 are integers of NumPy as well."""


def array_test(site: Site, node: ast.Call) -> tuple[tuple[str, ...], bool] | str | None:
    """What decides such a test, and how it comes out then; or the reason why nothing does; None for any other test."""
    try:
        return None if node.keywords else _decided(site, node)
    except NotProven as reason:
        return str(reason)


def _decided(site: Site, node: ast.Call) -> tuple[tuple[str, ...], bool] | None:
    called = site.resolve(node.func)
    if called in {"numpy.any", "numpy.all"} and len(node.args) == 1:
        name, array = called[6:], node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr in {"any", "all"} and not node.args:
        name, array = node.func.attr, node.func.value
    else:
        return None
    elements = _Elements(site)
    if not elements.is_array(array):
        return None
    number = site.free_name("n", "number", "size")
    text, computed = elements.text(array, number)
    if not computed or elements.given is None or not isinstance(elements.last, ast.Compare):
        raise NotProven(f"`{short(node)}` tests something else than a comparison of the numbers in an array")
    scope = site.evaluator.scope
    if any(scope.is_local(each) or scope.resolve_global(each) not in {None, f"builtins.{each}"} for each in _NAMES):
        raise NotProven("a name of Python's own means something else in this module")
    every = f"{name}({text} for {number} in {site.text(elements.given)})"
    asked = [*whole_numbers(site, elements.given), *elements.asked]
    return (*dict.fromkeys(asked), every if name == "all" else f"not {every}"), name == "all"


class _Elements:
    """Spells what an array holds at each place; `given` are the numbers that it is made of."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._bound = _statements_before(site)
        self.given: ast.expr | None = None
        self.last: ast.expr | None = None
        self.asked: dict[str, None] = {}
        self._multiplied = False

    def is_array(self, node: ast.expr) -> bool:
        """True where an array of NumPy is made somewhere in the expression, or right above."""
        parts = [self._value(part) for part in ast.walk(node) if isinstance(part, ast.expr)]
        inner = [each for part in parts for each in ast.walk(part) if isinstance(each, ast.expr)]
        inner += [part for each in inner for part in ast.walk(self._value(each)) if isinstance(part, ast.expr)]
        return any(isinstance(each, ast.Call) and self._site.resolve_global(each.func) in ARRAYS for each in inner)

    def _value(self, node: ast.expr) -> ast.expr:
        return self._bound.get(node.id, node) if isinstance(node, ast.Name) else node

    def text(self, node: ast.expr, number: str) -> tuple[str, bool]:
        """The text for one element, and whether it is one of the array's and not the same number for all."""
        self._demand_bound_before(node)
        value = self._value(node)
        self.last = value if self.last is None else self.last
        if isinstance(value, ast.Call) and self._site.resolve_global(value.func) in ARRAYS:
            return self._made(value, number), True
        if isinstance(value, ast.BinOp) and type(value.op) in _OPERATORS:
            (left, one), (right, other) = self.text(value.left, number), self.text(value.right, number)
            if isinstance(value.op, ast.Mult):
                self._demand_no_overflow(value, left, right, (one, other))
            if isinstance(value.op, (ast.Mod, ast.FloorDiv)):
                if other:
                    raise NotProven(f"`{short(value)}` divides by the numbers of an array")
                self.asked[f"{right} > 0"] = None
            return f"({left} {_OPERATORS[type(value.op)]} {right})", one or other
        if isinstance(value, ast.Compare) and len(value.ops) == 1 and type(value.ops[0]) in _COMPARES:
            if value is not self.last:
                raise NotProven(f"`{short(value)}` is computed with")
            (left, one), (right, other) = self.text(value.left, number), self.text(value.comparators[0], number)
            return f"{left} {_COMPARES[type(value.ops[0])]} {right}", one or other
        return self._scalar(value), False

    def _demand_no_overflow(self, node: ast.BinOp, left: str, right: str, of_array: tuple[bool, bool]) -> None:
        """NotProven for a product that may be too large for 64 bits: integers of Python have no end."""
        small = [text.lstrip("(-").rstrip(")") for text, each in zip((left, right), of_array, strict=True) if not each]
        if not small or not all(each.isdigit() and int(each) < _FACTOR for each in small) or self._multiplied:
            raise NotProven(f"`{short(node)}` may be too large for an integer of NumPy")
        self._multiplied = True

    def _made(self, call: ast.Call, number: str) -> str:
        given = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if given is None or not (dotted(given) is not None or is_shape(given)):
            raise NotProven(f"`{short(call)}` is not made of numbers that have a name")
        if self.given is not None and ast.dump(self.given) != ast.dump(given):
            raise NotProven("two arrays are compared")
        self._demand_bound_before(given)
        self.given = given
        return number

    def _demand_bound_before(self, node: ast.expr) -> None:
        """NotProven where a name of the expression has another value by the time of the test."""
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in self._bound]
        if any(self._bound[part.id].lineno >= part.lineno for part in names):
            raise NotProven(f"`{short(node)}` changes before the test")

    def _scalar(self, node: ast.expr) -> str:
        """A Python integer, or a small power of one."""
        power = node if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else None
        sides = [power.left, power.right] if power is not None else []
        if isinstance(node, ast.Call) and self._site.resolve_global(node.func) in _POWERS and len(node.args) == 2:
            sides = [] if node.keywords else node.args
        if len(sides) == 2:
            exponent = sides[1].value if isinstance(sides[1], ast.Constant) else None
            if type(exponent) is not int or not 0 <= exponent <= _LARGEST:
                raise NotProven(f"`{short(node)}` is no small power")
            base = self._scalar(sides[0])
            self.asked[f"0 <= {base} < 128"] = None
            return f"{base}**{exponent}"
        if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 2**31:
            return str(node.value) if node.value >= 0 else f"({node.value})"
        if dotted(node) is None:
            raise NotProven(f"cannot infer that `{short(node)}` is an integer; assign it to a variable first")
        self.asked[f"isinstance({self._site.text(node)}, int)"] = None
        return self._site.text(node)


def _statements_before(site: Site) -> dict[str, ast.expr]:
    """What the assignments right above the statement bind names to; none that comes before another statement."""
    found: dict[str, ast.expr] = {}
    body, position = site.place.blocks[-1]
    for each in reversed(body[:position]):
        target = only_target(each)
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name) or target.id in found:
            break
        calls = [part for part in ast.walk(each.value) if isinstance(part, (ast.Call, ast.NamedExpr, ast.Await))]
        known = ARRAYS | _POWERS
        if not all(isinstance(part, ast.Call) and site.resolve_global(part.func) in known for part in calls):
            break
        found[target.id] = each.value
    return found
