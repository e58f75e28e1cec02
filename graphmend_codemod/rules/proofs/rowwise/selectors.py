"""What selects rows: masks, and the indices of their true elements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.analysis.patterns import all_given, elements_of, is_whole, same
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.substitution import exchanged

if TYPE_CHECKING:
    from typing import TypeGuard

_CASTS = frozenset("to bool contiguous detach cpu cuda float long int logical_not".split())
_TESTS = frozenset("eq ne gt lt ge le".split())
_VIEWS = frozenset("view reshape flatten squeeze unsqueeze expand_as".split())
_SAME = _CASTS | _TESTS | _VIEWS | {"type_as"}
_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class _Method(ast.Call):
    func: ast.Attribute


class Selection(NamedTuple):
    """`base[mask]`, with `more` whole dimensions behind the mask, or `base.masked_select(mask)`, `by_element`."""

    base: ast.expr
    mask: ast.expr
    more: int = 0
    by_element: bool = False


def selection(node: ast.AST) -> Selection | None:
    """The rows that `node` selects, if what selects them is a mask; None for anything else."""
    if isinstance(node, ast.Subscript):
        parts = elements_of(node.slice)
        if parts and _may_be_mask(parts[0]) and all(map(is_whole, parts[1:])):
            return Selection(node.value, parts[0], len(parts) - 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "masked_select":
        given = [node.func.value, *node.args][-2:]
        if len(node.args) in {1, 2} and not node.keywords and _may_be_mask(given[1]):
            return Selection(given[0], given[1], by_element=True)
    return None


class Element(NamedTuple):
    """`base[mask, place]`: an element of each row."""

    base: ast.expr
    mask: ast.expr
    place: ast.expr


def element(node: ast.AST) -> Element | None:
    """What `x[mask, labels[mask]]` and `x[mask, 4]` are made of, by their look; None for anything else."""
    parts = elements_of(node.slice) if isinstance(node, ast.Subscript) else []
    if len(parts) != 2 or not _may_be_mask(parts[0]) or isinstance(parts[1], (ast.Slice, ast.Starred)):
        return None
    if isinstance(parts[1], ast.Constant) and type(parts[1].value) is not int:
        return None
    return Element(node.value, parts[0], parts[1])  # type: ignore[attr-defined]


def chosen_by(node: ast.AST) -> ast.expr | None:
    """What selects rows in `x[mask]`, or elements of them in `x[mask, index]`, if it is a mask."""
    found = masked_by(node)
    picked = element(node) if found is None else None
    return picked.mask if picked is not None else found


def is_plain(selection: Selection, reduction: str) -> bool:
    """True for `x[mask].mean()` and `f(x).masked_select(mask).sum()`, which `torch.where` gives without a proof."""
    named = dotted(selection.base) is not None or (selection.by_element and reduction == "sum")
    return named and dotted(selection.mask) is not None


def masked_by(node: ast.AST) -> ast.expr | None:
    """What selects rows in `x[mask]`, `x[mask, :]`, `x[y > 0]`, if it is a mask."""
    found = selection(node)
    return None if found is None else found.mask


def _may_be_mask(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) or is_expression(node)


def is_viewed(node: ast.expr) -> bool:
    """True for `x.view(-1, n)`, `x[..., :-1, :].float()`: parts and casts of a tensor that has a name."""
    if isinstance(node, ast.Subscript):
        parts = elements_of(node.slice)
        return _is_named(node.value) and all(map(_is_basic, parts)) and not is_item(node)
    if not _is_call_of(node, _SAME):
        return False
    given = all_given(node)
    return _is_named(node.func.value) and all(map(_is_size, given))


def is_part(node: ast.expr) -> bool:
    """True for `x[..., 0]` and `x.view(-1)`, which have a shape of their own; `x[0]` rather broadcasts."""
    if isinstance(node, ast.Subscript) and is_viewed(node):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return isinstance(first, ast.Slice) or (isinstance(first, ast.Constant) and first.value is Ellipsis)
    return is_viewed(node) and _is_call_of(node, _VIEWS)


def viewed_name(node: ast.expr) -> ast.expr:
    """`x` for `x[..., 1:].view(-1)`."""
    while is_viewed(node):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return node


def is_view_of_name(node: ast.expr) -> bool:
    """True for `mask.view(n, -1)`."""
    return isinstance(node, ast.Call) and is_viewed(node) and isinstance(viewed_name(node), ast.Name)


def of_same_shape(mask: ast.expr) -> ast.expr:
    """`x` for `x.to(device) != 0`, which has the same shape."""
    while True:
        if isinstance(mask, ast.Compare) and isinstance(mask.comparators[0], (ast.Constant, ast.UnaryOp)):
            mask = mask.left
        elif _is_call_of(mask, _CASTS) or (_is_call_of(mask, _TESTS) and isinstance(mask.args[0], ast.Constant)):
            mask = mask.func.value
        else:
            return mask


def gives_bool(mask: ast.expr) -> bool:
    """True for `x != 0` and `x.bool()`, where `x` is a tensor."""
    return isinstance(mask, ast.Compare) or _is_call_of(mask, _TESTS | {"bool", "logical_not"})


def _is_call_of(node: ast.expr, names: frozenset[str]) -> TypeGuard[_Method]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _is_named(node: ast.expr) -> bool:
    return dotted(node) is not None or is_viewed(node) or is_item(node)


def is_item(node: ast.expr) -> bool:
    """True for `batch["labels"]`."""
    key = node.slice if isinstance(node, ast.Subscript) and dotted(node.value) is not None else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_basic(part: ast.expr) -> bool:
    """True for a slice, an ellipsis, a number, `None`."""
    if isinstance(part, ast.Slice):
        return all(each is None or _is_size(each) for each in (part.lower, part.upper, part.step))
    return isinstance(part, (ast.Constant, ast.UnaryOp)) and _is_size(part)


def _is_size(node: ast.expr) -> bool:
    """True for a number, a name, `x.shape[1] - 1`, `x.size(0)`, `x.device`."""
    if isinstance(node, (ast.Constant, ast.Name, ast.Attribute)):
        return isinstance(node, ast.Constant) or dotted(node) is not None
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_size(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) and _is_size(node.right)
    if isinstance(node, ast.Subscript):
        shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and dotted(node.value) is not None
        return shape and isinstance(node.slice, (ast.Constant, ast.UnaryOp))
    sized = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"size", "dim"}
    return sized and dotted(node.func) is not None and all(map(_is_size, node.args))  # type: ignore[attr-defined]


def same_mask(one: ast.expr, other: ast.expr) -> bool:
    """True for two spellings of one mask, wherever it is: `mask.to(x.device) != 0` and `mask.to(y.device) != 0`."""
    return same(one, other) or same(on_any_device(one), on_any_device(other))


def on_any_device(mask: ast.expr) -> ast.expr:
    """The mask without `.to(x.device)`."""

    def stays(part: ast.expr) -> ast.expr | None:
        moved = _is_moved(part) and isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        return on_any_device(part.func.value) if moved else None  # type: ignore[attr-defined]

    return exchanged(mask, stays) if any(map(_is_moved, ast.walk(mask))) else mask


def _is_moved(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
        return False
    given = [*node.args, *(word.value for word in node.keywords if word.arg == "device")]
    return len(given) == len(node.args) + len(node.keywords) == 1 and (dotted(given[0]) or "").endswith(".device")


def is_expression(mask: ast.expr) -> bool:
    """True for `x > 0`, `~mask`, `a & b` and `mask.view(-1)`, which give the same wherever they are evaluated."""
    if isinstance(mask, ast.Call):
        return is_viewed(mask)
    if isinstance(mask, ast.UnaryOp):
        return isinstance(mask.op, ast.Invert) and _may_be_mask(mask.operand)
    if isinstance(mask, ast.BinOp):
        return isinstance(mask.op, (ast.BitAnd, ast.BitOr)) and all(map(_may_be_mask, (mask.left, mask.right)))
    if not isinstance(mask, ast.Compare) or len(mask.ops) > 1 or not isinstance(mask.ops[0], _ORDERS):
        return False
    number = mask.comparators[0]
    number = number.operand if isinstance(number, ast.UnaryOp) else number
    left = isinstance(mask.left, (ast.Name, ast.Attribute)) or (
        isinstance(mask.left, ast.Call) and is_viewed(mask.left)
    )
    return left and isinstance(number, (ast.Constant, ast.Name, ast.Attribute))


def where_of(site: Site, node: ast.expr) -> tuple[ast.expr, int | None] | None:
    """The mask of `torch.where(mask)` and the number that a subscript takes of it, None where it takes none."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        inner = where_of(site, node.value)
        return None if inner is None or inner[1] is not None else (inner[0], node.slice.value)
    if not isinstance(node, ast.Call):
        return None
    qualified = site.resolve(node.func)
    words = {word.arg: word.value for word in node.keywords}
    as_tuple = words.pop("as_tuple", None)
    if qualified == "torch.where" and len(node.args) == 1 and not words:
        return node.args[0], None
    mask: ast.expr | None = None
    if qualified == "torch.nonzero" and len(node.args) == 1:
        mask = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "nonzero" and qualified is None and not node.args:
        mask = node.func.value
    elif isinstance(node.func, ast.Attribute) and node.func.attr in {"squeeze", "flatten", "view", "reshape"}:
        inner = where_of(site, node.func.value)
        return (inner[0], 0) if inner is not None and inner[1] == -1 else None
    if mask is None or words:
        return None
    return mask, None if isinstance(as_tuple, ast.Constant) and as_tuple.value is True else -1
