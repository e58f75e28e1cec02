"""What an expression holds where a function works on rows that a mask chose, and what operators of torch make of rows.

The first dimension of rows is their number. An operator keeps rows apart when each row of its result was computed from
the same row of its arguments: only then may it get all rows in the place of those that the mask chooses.
"""

from __future__ import annotations

import ast
import enum
import operator as operators
from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_constant, is_literal, is_none, is_whole, written_integer
from graphmend_codemod.rules.framework.reasons import NotProven

_ALONG = frozenset("softmax log_softmax softmin cumsum cumprod logcumsumexp".split())
_REDUCES = frozenset("sum mean prod amax amin logsumexp any all argmax argmin count_nonzero".split())
_MORE = frozenset(
    """where lerp addcmul addcdiv xlogy logaddexp zeros_like ones_like full_like square heaviside copysign rad2deg
    deg2rad to type_as bitwise_and bitwise_or bitwise_xor bitwise_not true_divide float_power asinh acosh atanh erfinv
    sinc hardshrink softshrink threshold""".split()
)
ELEMENTWISE = (
    torch_api.SAME_ANY_DTYPE
    | torch_api.SAME_IF_FLOATING
    | torch_api.BINARY
    | torch_api.TO_BOOL
    | frozenset(torch_api.CASTS)
    | _MORE
) - (_ALONG | frozenset("flip normalize tril triu isin".split()))
"""Operators that look at each element alone, or at the elements in one place of several tensors."""

_EXTREMES = frozenset("min max amin amax".split())
WHOLE = frozenset("min max amin amax any all".split())
"""Of all rows: a row that is there twice changes nothing."""

BOOLEAN = torch_api.TO_BOOL | {"bool"}


class NotRowwise(NotProven):
    """Raised where rows may depend on each other; another form may still be proven."""


class What(enum.Enum):
    """What an expression holds."""

    ROWS = "rows"
    NUMBER = "number"
    """A Python value that no row enters."""
    DECIDES = "decides"
    """A single element that says something of all rows, whichever stand twice among them."""
    SHAPE = "shape"
    TUPLE = "tuple"
    OTHER = "other"
    """What no row enters, and of which nothing else is known."""


class _Unknown:
    pass


UNKNOWN = _Unknown()


class Held(NamedTuple):
    """One abstract value: `rank` of rows and of shapes, `constant` of a number that is known, `parts` of a tuple.

    `spelled` is what has the same value in the function of the site, `boolean` says that rows are bool. Where no row is
    chosen, rows of zeros stand in: `zero` says that all elements are 0 then (`spelled` is the tensor that they come
    from), `falsy` and `truthy` under which conditions of the site's function they are all false or true, `whole` under
    which rows are int64 (None where nothing is known).
    """

    what: What
    rank: int = 0
    constant: object = UNKNOWN
    spelled: str = ""
    parts: tuple[Held, ...] = ()
    boolean: bool = False
    zero: bool = False
    falsy: tuple[str, ...] | None = None
    truthy: tuple[str, ...] | None = None
    whole: tuple[str, ...] | None = None

    @property
    def known(self) -> bool:
        """True for a number whose value is known."""
        return self.what is What.NUMBER and self.constant is not UNKNOWN


NUMBER = Held(What.NUMBER)
OTHER = Held(What.OTHER)


def rows(rank: int, *, boolean: bool = False) -> Held:
    """Rows of `rank` dimensions, the number of rows among them."""
    return Held(What.ROWS, rank, boolean=boolean)


def constant(value: object) -> Held:
    """A number whose value is known."""
    return Held(What.NUMBER, constant=value)


def joined(one: Held, other: Held) -> Held:
    """What is held where either may be."""
    if one == other:
        return one
    if one.what is other.what is What.NUMBER:
        return NUMBER
    if one.what is other.what is What.ROWS and one.rank == other.rank:
        return rows(one.rank)
    if one.what is other.what is What.TUPLE and len(one.parts) == len(other.parts):
        return Held(What.TUPLE, parts=tuple(map(joined, one.parts, other.parts)))
    return OTHER


def elementwise(held: list[Held], text: str, *, boolean: bool = False) -> Held:
    """What an operation gives that works on elements in one place; NotRowwise where broadcasting may mix rows."""
    ranks = {each.rank for each in held if each.what is What.ROWS}
    if any(each.what not in {What.ROWS, What.NUMBER} for each in held):
        raise NotRowwise(f"`{text}` combines rows with something other than rows and numbers")
    if not ranks:
        return NUMBER
    if len(ranks) > 1:
        raise NotRowwise(f"`{text}` broadcasts rows of {min(ranks)} and {max(ranks)} dimensions")
    return rows(ranks.pop(), boolean=boolean)


def dimension(node: ast.expr | None, rank: int, *, more: int = 0) -> int:
    """The number of a dimension, counted from the front; NotRowwise where it may be that of the rows."""
    number = written_integer(node)
    if number is None:
        raise NotRowwise("the dimension that it works on is not written out")
    number += rank + more if number < 0 else 0
    if not 0 < number < rank + more:
        raise NotRowwise("it works along the rows")
    return number


def indexed(held: Held, parts: list[ast.expr]) -> Held:
    """`x[..., 0]`, `x[:, None]` of rows; NotRowwise for an index that looks at the number of rows."""
    if not parts or not (is_whole(parts[0]) or is_constant(parts[0], ...)):
        raise NotRowwise("it selects among the rows")
    ellipsis = is_constant(parts[0], ...)
    taken, rank = 0 if ellipsis else 1, held.rank
    for part in parts[1:]:
        if is_none(part):
            rank += 1
        elif isinstance(part, ast.Slice):
            taken += 1
        elif written_integer(part) is not None:
            taken, rank = taken + 1, rank - 1
        else:
            raise NotRowwise("its index is not written out")
    if taken > held.rank - (1 if ellipsis else 0):
        raise NotRowwise("it selects among the rows")
    return rows(rank, boolean=held.boolean)


def operator(name: str, first: Held, rest: list[Held], words: dict[str, Held], call: ast.Call, text: str) -> Held:
    """What an operator of torch makes of rows, `first` among its arguments; NotRowwise if it may mix them.

    `call` has its arguments as they are written, without the tensor whose method it is.
    """
    given = dict(zip(("dim", "keepdim"), call.args[len(call.args) - len(rest) :], strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
    if "out" in given:
        raise NotRowwise(f"`{text}` writes into another tensor")
    stem = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if stem in ELEMENTWISE and (stem != "where" or len(rest) == 2):
        held = [each for each in (first, *rest, *words.values()) if each.what is not What.TUPLE]
        return elementwise(held, text, boolean=stem in BOOLEAN)
    if stem in {"cat", "concat", "stack"} and first.what is What.TUPLE:
        return _side_by_side(first.parts, given, text, more=1 if stem == "stack" else 0)
    if first.what is not What.ROWS or any(each.what is What.ROWS for each in words.values()):
        raise NotRowwise(f"`{text}` may not process each row independently")
    try:
        return _along(stem, first, rest, given, call)
    except NotRowwise as why:
        raise NotRowwise(f"`{text}` may not process each row independently: {why}") from None


def _side_by_side(parts: tuple[Held, ...], given: dict[str, ast.expr], text: str, more: int) -> Held:
    """`torch.cat([x, y], dim=-1)` of rows."""
    ranks = {each.rank if each.what is What.ROWS else 0 for each in parts}
    if len(ranks) != 1 or 0 in ranks:
        raise NotRowwise(f"`{text}` joins rows with something other than rows")
    rank = ranks.pop()
    dimension(given.get("dim"), rank, more=more)
    return rows(rank + more)


def opposite(held: Held) -> Held:
    """`not held` of a single element, `~held` of bools."""
    return held._replace(falsy=held.truthy, truthy=held.falsy, zero=False, spelled="")


def decision(held: Sequence[Held], *, either: bool) -> Held:
    """`a or b`, `a and b` of single elements that say something of all rows."""
    sides = [each.falsy if either else each.truthy for each in held]
    known = None if None in sides else tuple(part for each in sides if each is not None for part in each)
    return Held(What.DECIDES, falsy=known if either else None, truthy=None if either else known)


def compared(left: Held, sign: ast.cmpop, right: Held) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """When `left < right` is false, and when it is true, where no row is chosen and zeros stand in.

    Zero is compared with a number alone, by bounds that a number keeps when it gets the dtype of the rows.
    """
    zero, number, name = left, right, type(sign)
    if right.zero:
        zero, number, name = right, left, _MIRRORED.get(name, name)
    text = spelling(number)
    if left.zero is right.zero or number.what is not What.NUMBER or not (text and zero.spelled):
        return None, None
    if name not in _STRICT and name not in _LOOSE:
        return None, None
    asked = at_zero(_STRICT.get(name, name), number.constant if number.known else UNKNOWN, text)
    # In an unsigned dtype -1 is a large number.
    found = None if asked is None else (f"{zero.spelled}.is_floating_point()", *asked)
    return (found, None) if name in _STRICT else (None, found)


def at_zero(sign: type[ast.cmpop], number: object, text: str) -> tuple[str, ...] | None:
    """The condition `0 < number`, none where that is known to be true, and None where it is known to be false."""
    word, compare = _SIGNS[sign]
    if isinstance(number, (int, float)):
        return () if compare(0, number) else None
    return (f"0 {word} {text}",)


def calculated(node: ast.expr, values: Sequence[Held]) -> Held:
    """What arithmetic and comparisons of known numbers give."""
    given = [each.constant for each in values]
    first = given[0]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(first, (int, float)):
        return constant(-first)
    numbers = [each for each in given if isinstance(each, (int, float))]
    if len(numbers) == len(given) == 2:
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SIGNS:
            return constant(_SIGNS[type(node.ops[0])][1](numbers[0], numbers[1]))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return constant(ARITHMETIC[type(node.op)](numbers[0], numbers[1]))
    return NUMBER


def spelling(held: Held) -> str:
    """The expression that has this value in the function of the site; empty if there is none."""
    plain = held.known and (held.constant is None or isinstance(held.constant, (bool, int, float, str)))
    return repr(held.constant) if plain else held.spelled


ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operators.add,
    ast.Sub: operators.sub,
    ast.Mult: operators.mul,
}
_SIGNS: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.Lt: ("<", operators.lt),
    ast.Gt: (">", operators.gt),
    ast.LtE: ("<=", operators.le),
    ast.GtE: (">=", operators.ge),
}
_STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.GtE, ast.Gt: ast.LtE}
_LOOSE = frozenset({ast.LtE, ast.GtE})
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}


def _along(name: str, first: Held, rest: list[Held], given: dict[str, ast.expr], call: ast.Call) -> Held:
    """An operator that looks at several elements of each row."""
    rank, others = first.rank, [each for each in rest if each.what is What.ROWS]
    if name in WHOLE and not given:
        if name in _EXTREMES:
            return Held(What.DECIDES, zero=first.zero, spelled=first.spelled)
        return Held(What.DECIDES, falsy=first.falsy, truthy=first.truthy)
    if name in {"gather", "take_along_dim"} and len(rest) == 2:
        place = call.args[-2:] if name == "gather" else call.args[:-3:-1]
        dimension(place[0], rank)
        if len(others) == 1 and others[0].rank == rank:
            return rows(rank)
    if others:
        if name == "searchsorted" and rank > 1 and len(rest) == 1 and others[0].rank == rank:
            return rows(rank)
        if name in {"min", "max"} and len(rest) == 1 and others[0].rank == rank:
            return rows(rank)
        raise NotRowwise("it gets several tensors")
    if name in _ALONG or name in {"unsqueeze", "sort", "argsort", "max", "min", "median", *_REDUCES}:
        dimension(given.get("dim"), rank, more=1 if name == "unsqueeze" else 0)
    if name in _ALONG or name == "argsort":
        return rows(rank, boolean=first.boolean)
    if name == "unsqueeze":
        return rows(rank + 1, boolean=first.boolean)
    kept = given.get("keepdim")
    if kept is not None and not (isinstance(kept, ast.Constant) and isinstance(kept.value, bool)):
        raise NotRowwise("whether it keeps the dimension is not written out")
    lower = rank if isinstance(kept, ast.Constant) and kept.value else rank - 1
    if name in _REDUCES:
        return rows(lower, boolean=name in {"any", "all"})
    if name in {"max", "min", "median"}:
        return Held(What.TUPLE, parts=(rows(lower), rows(lower)))
    if name == "sort":
        return Held(What.TUPLE, parts=(rows(rank), rows(rank)))
    if name == "pad":
        return _padded(rank, rest, given, call)
    raise NotRowwise("it is not known to")


def _padded(rank: int, rest: list[Held], given: dict[str, ast.expr], call: ast.Call) -> Held:
    sizes = given.get("pad", call.args[1] if len(call.args) > 1 else None)
    mode = given.get("mode", call.args[2] if len(call.args) > 2 else ast.Constant("constant"))
    plain = is_literal(mode, "constant")
    if not plain or not isinstance(sizes, (ast.Tuple, ast.List)) or len(sizes.elts) > 2 * (rank - 1):
        raise NotRowwise("it may add rows")
    return rows(rank)
