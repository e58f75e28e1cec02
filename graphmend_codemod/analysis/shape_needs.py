"""Shapes for which an operation cannot raise, as trace-time conditions: `x.dim() > 1` for `x.softmax(dim=1)`.

A need is a shape, by its name, and a condition on a tensor of that shape, which stands for `{0}`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from graphmend_codemod.analysis.patterns import expanded_like, is_constant, is_integer, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.torch_api import CASTS, NOT_FOR_EMPTY
from graphmend_codemod.analysis.values import SCALAR, Value

_ALONG = frozenset("softmax log_softmax cumsum cumprod normalize argmax argmin prod count_nonzero".split())
_OVER = frozenset("sum mean amax amin any all std var logsumexp flip".split())
"""These take several dimensions as well."""
_NO_DIMENSION = frozenset({"normalize", "std", "var"})
"""Another argument than the dimension comes first, or may."""
_TURNS = frozenset("transpose swapaxes swapdims unsqueeze squeeze flatten".split())
_TALLEST_NEW = frozenset({"unsqueeze"})
"""A new dimension may come behind the last one."""


class ShapeNeed(NamedTuple):
    """A condition on the tensors of one shape; `{0}` stands for one of them.

    Where `shape` is `NAMED`, the condition is whole: it names its tensors, and asks nothing before what is in it.
    """

    shape: str
    condition: str


NAMED = "~"
"""Sorts behind the names of shapes: what such a condition computes, others may have to ask for first."""


def of_call(node: ast.Call, name: str, first: ast.expr, tensor: Value) -> frozenset[ShapeNeed] | None:
    """What a function over dimensions of `first` needs in order not to raise; None where nothing spells it."""
    if tensor.shape is None or not tensor.is_tensor:
        return None
    rest = [each for each in node.args if each is not first]
    if name in _TURNS:
        return _of_turn(name, tensor, [*rest, *(word.value for word in node.keywords)])
    if name in NOT_FOR_EMPTY and not rest and not node.keywords:
        return _needs(tensor, ["{0}.numel() > 0"])
    if name not in _ALONG | _OVER or len(rest) > 1 or (rest and name in _NO_DIMENSION):
        return None
    given = [*rest, *(word.value for word in node.keywords if word.arg in {"dim", "axis"})]
    others = [word for word in node.keywords if word.arg not in {"dim", "axis"}]
    if len(given) != 1 or not all(each.arg == "keepdim" and isinstance(each.value, ast.Constant) for each in others):
        return None
    dimensions = _dimensions(given[0], name)
    if dimensions is None and name in _OVER - NOT_FOR_EMPTY and (text := dotted(given[0])) is not None:
        listed = f"[*{text}] == [each for each in range({{0}}.dim()) if each in {text}]"
        return _needs(tensor, [f"isinstance({text}, (list, tuple)) and {listed}"])
    if dimensions is None:
        return None
    rank = max(each + 1 if each >= 0 else -each for each in dimensions)
    empty = ["{0}.numel() > 0"] if name in NOT_FOR_EMPTY else []
    return _needs(tensor, [*([f"{{0}}.dim() > {rank - 1}"] if rank > 1 else []), *empty])


def _of_turn(name: str, tensor: Value, given: list[ast.expr]) -> frozenset[ShapeNeed] | None:
    """`x.transpose(-1, -2)`, `x.unsqueeze(1)`: the dimensions exist."""
    dimensions = [number for each in given if (number := written_integer(each)) is not None]
    if not dimensions or len(dimensions) != len(given) or (name == "flatten" and len(given) > 1):
        return None
    rank = max(each + 1 if each >= 0 else -each for each in dimensions) - (name in _TALLEST_NEW)
    return _needs(tensor, [f"{{0}}.dim() > {rank - 1}"] if rank > 0 else [])


def of_operands(left: ast.expr, right: ast.expr) -> frozenset[ShapeNeed] | None:
    """What an elementwise operation needs in order to broadcast; None where it is too much to ask.

    What was turned has the shape of the other one or does not fit; others may have ones where the other has more.
    """
    one, other = ast.unparse(left), ast.unparse(right)
    if len(one) + len(other) > _LONGEST or dotted(left) is dotted(right) is None:
        return None
    if any(isinstance(part, (ast.Lambda, ast.NamedExpr)) for each in (left, right) for part in ast.walk(each)):
        return None
    one, other = (text if _binds_tightly(node) else f"({text})" for node, text in ((left, one), (right, other)))
    if _is_turned(left) or _is_turned(right):
        return frozenset({ShapeNeed(NAMED, f"{one}.shape == {other}.shape")})
    pairs = f"zip({one}.shape[::-1], {other}.shape[::-1])"
    return frozenset({ShapeNeed(NAMED, f"all(m == n or 1 in (m, n) for m, n in {pairs})")})


def of_expansion(node: ast.Call, tensor: ast.expr) -> frozenset[ShapeNeed] | None:
    """What `x.expand(y.shape)` and `x.expand_as(y)` need: each size of `x` is one, or that of `y`, which may have more.

    `tensor` is `x`. None where no text spells it.
    """
    like, tensor = expanded_like(node), _without_casts(tensor)
    if like is None or (other := dotted(like)) is None or len(one := ast.unparse(tensor)) > _LONGEST:
        return None
    one = one if _binds_tightly(tensor) else f"({one})"
    sizes = f"all(m in (1, n) for m, n in zip({one}.shape[::-1], {other}.shape[::-1]))"
    return frozenset({ShapeNeed(NAMED, f"{one}.dim() <= {other}.dim()"), ShapeNeed(NAMED, sizes)})


def _without_casts(node: ast.expr) -> ast.expr:
    """`x[:, None]` for `x.bool()[:, None]`, which has the same shape."""
    if casts(node) and isinstance(node.func, ast.Attribute):
        return _without_casts(node.func.value)
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_without_casts(node.value), node.slice, node.ctx)
    return node


def casts(node: ast.expr) -> TypeGuard[ast.Call]:
    """True for `x.to(dtype)`, `x.bool()` and the like: of the shape of `x`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in CASTS or (node.func.attr == "to" and len(node.args) == 1 and not node.keywords)


_LONGEST = 60


def _is_turned(node: ast.expr) -> bool:
    """`x.transpose(-1, -2)`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TURNS - {"flatten"}
    )


def _binds_tightly(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def _dimensions(node: ast.expr, name: str) -> list[int] | None:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) and name in _OVER else [node]
    found = [number for each in parts if (number := written_integer(each)) is not None]
    return found if found and len(found) == len(parts) == len(set(found)) and _one_sign(found) else None


def _one_sign(numbers: list[int]) -> bool:
    """Dimensions counted from both ends may be the same one."""
    return all(each >= 0 for each in numbers) or all(each < 0 for each in numbers)


def of_index(index: ast.expr, tensor: Value) -> frozenset[ShapeNeed] | None:
    """What `x[1]`, `x[:, -1]` and `x[i, :n]` need in order not to raise; None where the index is not spelled out."""
    if tensor.shape is None or not tensor.is_tensor:
        return None
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    dots = [number for number, each in enumerate(parts) if is_constant(each, ...)]
    if len(dots) > 1:
        return None
    before = [each for each in parts[: dots[0] if dots else len(parts)] if not is_constant(each, None)]
    after = [each for each in parts[dots[0] + 1 if dots else len(parts) :] if not is_constant(each, None)]
    placed = [*enumerate(before), *((number - len(after), each) for number, each in enumerate(after))]
    conditions = [f"{{0}}.dim() > {len(placed) - 1}"] if placed else []
    for place, each in placed:
        asked = _in_range(place, each)
        if asked is None:
            return None
        conditions += asked
    return _needs(tensor, conditions)


def of_size(index: ast.expr, tensor: Value) -> frozenset[ShapeNeed] | None:
    """What `x.shape[1]` needs of `tensor`, which is `x`; None where the index is no written integer."""
    number = written_integer(index)
    if number is None or tensor.shape is None or not tensor.is_tensor:
        return None
    return _needs(tensor, [f"{{0}}.dim() > {number if number >= 0 else -number - 1}"])


def _in_range(place: int, node: ast.expr) -> list[str] | None:
    if isinstance(node, ast.Slice):
        bounds = [each for each in (node.lower, node.upper) if each is not None]
        names = [each.id for each in bounds if isinstance(each, ast.Name)]
        plain = node.step is None and all(is_integer(each) or isinstance(each, ast.Name) for each in bounds)
        return [f"type({name}) is int" for name in names] if plain else None
    if isinstance(node, ast.Name):
        return [f"type({node.id}) is int", f"-{{0}}.shape[{place}] <= {node.id} < {{0}}.shape[{place}]"]
    number = written_integer(node)
    if number is None:
        return None
    return [f"{{0}}.shape[{place}] > {number if number >= 0 else -number - 1}"]


def in_order(needs: Iterable[ShapeNeed]) -> list[ShapeNeed]:
    """The needs in an order in which each may be asked: what computes a part of another one comes before it."""
    return sorted(needs, key=lambda need: (need.shape == NAMED, len(need.condition), need))


def asked(need: ShapeNeed, env: Mapping[str, Value], *, attributes: bool = False) -> str | None:
    """The condition, of a name that holds a tensor of the shape, or an attribute; None where there is none."""
    if need.shape == NAMED:
        return need.condition
    for name, value in env.items():
        if value.is_tensor and value.shape == need.shape and (attributes or "." not in name):
            return need.condition.format(name)
    return None


def names_in(need: ShapeNeed) -> set[str]:
    """The names that a condition reads, but for the tensor."""
    text = need.condition if need.shape == NAMED else need.condition.format("None")
    return {part.id for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Name)}


def either(test: str, needs: frozenset[ShapeNeed]) -> Iterator[ShapeNeed]:
    """The needs of what runs only where a Python `test` is false."""
    for each in needs:
        yield each._replace(condition=f"({test} or {each.condition})")


def _needs(tensor: Value, conditions: list[str]) -> frozenset[ShapeNeed] | None:
    if not conditions:
        return frozenset()
    if tensor.shape is None or tensor.shape == SCALAR:
        return None
    return frozenset({ShapeNeed(tensor.shape, " and ".join(conditions))})
