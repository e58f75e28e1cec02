"""Rows that a mask chooses, or as many as a number says, laid out with another width: `x[mask].view(-1, 16)`.

Inductor of torch 2.13 goes through both layouts from the last size on, and takes a product of sizes for another as soon
as one is a multiple of the other: for `[rows, 64]` as `[4 * rows, 16]` it takes `rows` for 1, and computes something
else, without a word, with torch's own `nonzero` as well. It is right where the sizes come out even before the number of
rows: where the width stays, or all is one dimension, before or after.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    last_name,
    names_bound,
    owner_of,
    same,
    values_assigned,
    written_integer,
)
from graphmend_codemod.analysis.scope import FunctionNode, children, dotted, of_kind, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import Rows, of_any_dtype, rows_of, sizes_in

_LAYS_OUT = frozenset({"reshape", "view"})
_ROWS_AND_WIDTH = 2
_TURNS = frozenset({"H", "T", "mT", "mH", "movedim", "permute", "swapaxes", "t", "transpose"})
_MIXES = _TURNS | frozenset("cat concat concatenate einsum expand hstack repeat reshape stack tile unfold view".split())
"""What may change the last size, or move another one to its place."""


def widths_kept(
    site: Site, nodes: Collection[ast.expr], numbers: Collection[ast.expr]
) -> tuple[str | None, list[ast.expr], list[str]]:
    """Why rows that these expressions choose, or cut, are laid out anew.

    Or which of them to give one dimension before it, and what has to hold so that the others keep their width.
    """
    scope, flat, asked = site.evaluator.scope.node, list[ast.expr](), list[str]()
    chosen, cut = rows_of(scope, nodes), rows_of(scope, (), numbers)
    picked = next((part for part in of_kind(walk_scope(scope), ast.Subscript) if _picks(part, chosen)), None)
    if picked is not None:
        return f"`{short(picked)}` picks one of so many, which Inductor cannot compile", [], []
    found = [(rows, *each) for rows in (chosen, cut) for each in _calls(scope, rows)]
    for rows, call, laid_out, sizes in found:
        if not _may_change(scope, rows, laid_out, sizes) or _counts_up(site, _held(scope, laid_out)):
            continue
        if any(laid_out is each for each in nodes):
            flat.append(laid_out)
            continue
        condition = _same_width(site, laid_out, sizes, nodes, chosen)
        if condition is None:
            return _why(call), [], []
        asked.append(condition)
    convolved = partial(why_convolved, scope, kind_of=lambda node: _layer(site, node))
    why = (why_batched(scope, rows) or convolved(rows) for rows in (chosen, cut))
    return next((each for each in why if each is not None), None), flat, asked


def _layer(site: Site, node: ast.expr) -> str | None:
    return torch_api.torch_module_class(site.value(node).instance_of)


def _same_width(
    site: Site, laid_out: ast.expr, sizes: Sequence[ast.expr], nodes: Collection[ast.expr], chosen: Rows
) -> str | None:
    """`x.shape[-1] == n` for `rows.view(-1, n)` of a name that holds `x[mask]`; None where that cannot be asked."""
    if not isinstance(laid_out, ast.Name) or len(sizes) != _ROWS_AND_WIDTH or written_integer(sizes[0]) != -1:
        return None
    scope, width = site.evaluator.scope.node, sizes[1]
    values = [_in_memory(each) for each in values_assigned(scope, laid_out.id)]
    rows = [each for each in values if any(each is one for one in nodes)]
    others = [each for each in values if each not in rows and not same(each, laid_out)]
    if len(rows) != 1 or not isinstance(rows[0], ast.Subscript) or any(map(chosen.reach, others)):
        return None
    base, mask, root = rows[0].value, rows[0].slice, _root(width)
    plain = isinstance(width, ast.Constant) or (bool(root) and not values_assigned(scope, root))
    if not plain or dotted(base) is None or not site.value(base).is_tensor:
        return None
    condition = f"{site.text(base)}.shape[-1] == {site.text(width)}"
    if dotted(mask) is None or not site.value(mask).is_tensor:
        return condition
    return f"({site.text(base)}.dim() == {site.text(mask)}.dim() or {condition})"


def _in_memory(node: ast.expr) -> ast.expr:
    """`x` for `x.contiguous()`, which has the same elements and sizes."""
    plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not (node.args or node.keywords)
    return node.func.value if plain and node.func.attr == "contiguous" else node  # type: ignore[attr-defined]


def _root(node: ast.expr) -> str:
    """The name that `self.config.get_text_config().vocab_size` begins with; empty for what is given arguments."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and not (node.args or node.keywords)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _picks(node: ast.Subscript, rows: Rows) -> bool:
    """True for `rows.view(batch, -1, width)[:, -1]`: how far apart they lie is asked for."""
    call, parts = node.value, elements_of(node.slice)
    if not isinstance(call, ast.Call) or last_name(call.func) not in _LAYS_OUT or not rows.reach(call):
        return False
    made = [number for number, each in enumerate(call.args) if written_integer(each) == -1]
    return made not in ([], [0]) and len(parts) > made[0] and not isinstance(parts[made[0]], ast.Slice)


def why_laid_out(function: FunctionNode, rows: Rows) -> str | None:
    """Why rows that a function is given are laid out anew, or multiplied, so that Inductor is wrong or ends there."""
    found = _calls(function, rows)
    laid_out = (_why(call) for call, whole, sizes in found if _may_change(function, rows, whole, sizes))
    return next(laid_out, None) or why_batched(function, rows)


def _why(call: ast.Call) -> str:
    wrong = "may give the rows another width, which Inductor computes wrongly"
    return f"`{short(call)}` {wrong} unless `.flatten()` stands in front of it"


def _calls(scope: FunctionNode, rows: Rows) -> Iterator[tuple[ast.Call, ast.expr, Sequence[ast.expr]]]:
    """`rows.view(-1, 4)` and `torch.reshape(rows, (-1, 4))`: the call, what it lays out and the sizes."""
    for call in (part for part in walk_scope(scope) if isinstance(part, ast.Call)):
        if last_name(call.func) not in _LAYS_OUT or not isinstance(call.func, ast.Attribute):
            continue
        given = [call.func.value, *call.args, *(word.value for word in call.keywords)]
        first = next((number for number, each in enumerate(given[:2]) if rows.reach(each)), None)
        if first is None:
            continue
        sizes = given[first + 1 :]
        whole = _held(scope, sizes[0]) if len(sizes) == 1 else None
        listed = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else sizes
        yield call, given[first], [each for size in listed for each in _unpacked(scope, size)]


def _unpacked(scope: FunctionNode, size: ast.expr) -> Sequence[ast.expr]:
    """The elements of `*size`, where it is a tuple that the function writes out."""
    held = _held(scope, size.value) if isinstance(size, ast.Starred) else None
    return held.elts if isinstance(held, (ast.Tuple, ast.List)) else [size]


def _may_change(scope: FunctionNode, rows: Rows, laid_out: ast.expr, sizes: Sequence[ast.expr]) -> bool:
    """True where a size is `-1`, or a product with their number, and sizes behind it may not be those of the rows."""
    sizes = [each for each in sizes if written_integer(each) != 1]
    counts = {id(each) for each in sizes_in(scope, rows)}
    made = [number for number, each in enumerate(sizes) if _is_made(scope, rows, counts, each)]
    if not made or _is_flat(_held(scope, laid_out)):
        return False
    if made[0] == len(sizes) - 1:
        return len(sizes) > 1 and _turns(_held(scope, laid_out))
    if any(isinstance(each, ast.Starred) for each in sizes[: made[0]]):  # `*x.shape[:-1], -1, 4` keeps the rows
        return False
    behind = sizes[made[0] + 1 :]
    if len(behind) > 1 or not _is_width(behind[0]):
        return True
    return _mixes_widths(_held(scope, laid_out)) and not any(same(part, laid_out) for part in walk(behind[0]))


def _is_made(scope: FunctionNode, rows: Rows, counts: set[int], size: ast.expr) -> bool:
    """True for `-1`, `4 * n` of their number `n`, `int(n / 2)` and a name that holds one of these."""
    if isinstance(size, ast.Name):
        values = (each for each in values_assigned(scope, size.id) if not isinstance(each, ast.Name))
        return any(_is_made(scope, rows, counts, each) for each in values)
    computed = size.args if isinstance(size, ast.Call) and isinstance(size.func, ast.Name) else [size]
    products = [part for each in computed if isinstance(each, ast.BinOp) for part in walk(each)]
    named = [part.id for part in products if isinstance(part, ast.Name)]
    held = [*products, *(each for name in named for each in values_assigned(scope, name))]
    return written_integer(size) == -1 or any(id(each) in counts or rows.is_number(each) for each in held)


def _turns(node: ast.expr) -> bool:
    """True for `rows.t()`, where so many may come last."""
    return last_name(node.func if isinstance(node, ast.Call) else node) in _TURNS


def _is_flat(node: ast.expr) -> bool:
    """True for `rows.flatten()` and `rows.view(-1)`, which are one dimension."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    if name in {"flatten", "ravel"}:
        return not node.args and not node.keywords  # type: ignore[attr-defined]
    return name in _LAYS_OUT and len(node.args) == 1 and written_integer(node.args[0]) == -1  # type: ignore[attr-defined]


def _mixes_widths(node: ast.expr) -> bool:
    """True where the rows may have another last size than what they are chosen from: `torch.cat([rows, rows], 1)`."""
    return any(isinstance(part, ast.Call) and last_name(part.func) in _MIXES for part in walk(node))


def _counts_up(site: Site, laid_out: ast.expr) -> bool:
    """True for `torch.arange(n)`, which has one dimension."""
    return isinstance(laid_out, ast.Call) and site.resolve(laid_out.func) == "torch.arange"


def _is_width(node: ast.expr) -> bool:
    """True for `x.shape[-1]`, `x.size(-1)` and `*x.shape[1:]`."""
    if isinstance(node, ast.Starred):
        return isinstance(node.value, ast.Subscript) and last_name(node.value.value) == "shape"
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == "shape" and written_integer(node.slice) == -1
    of_size = isinstance(node, ast.Call) and last_name(node.func) == "size" and len(node.args) == 1
    return of_size and written_integer(node.args[0]) == -1  # type: ignore[attr-defined]


def _held(scope: FunctionNode, node: ast.expr) -> ast.expr:
    """The value of a name that is assigned once; any other expression unchanged."""
    values = values_assigned(scope, node.id) if isinstance(node, ast.Name) else []
    return values[0] if len(values) == 1 else node


# Batched matrix products of tensors with an unknown size that is not the first: `q @ k.transpose(-2, -1)`

_PRODUCTS = torch_api.name_set("bmm baddbmm matmul scaled_dot_product_attention")
_SWAPS = frozenset({"movedim", "swapaxes", "swapdims", "transpose"})
_TWO = 2
_DIMENSIONS = frozenset({"1d", "2d", "3d"})


def why_batched(function: FunctionNode, rows: Rows) -> str | None:
    """Why Inductor cannot compile a product of so many rows in a function; None where it can, or there is none."""
    moved = _Moved(function, of_any_dtype(function, rows))
    for part in walk_scope(function):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            found = moved.is_so(part.left) or (moved.is_so(part.right) and not moved.is_turned_matrix(part.right))
        else:
            found = isinstance(part, ast.Call) and moved.is_product(part)
        if found:
            return f"Inductor cannot compile `{short(part)}`, a batch of products with an unknown size in them"
    return None


def why_convolved(function: FunctionNode, rows: Rows, kind_of: Callable[[ast.expr], str | None]) -> str | None:
    """Why Inductor cannot compile a convolution of so many rows; `kind_of` knows the class of a layer of torch."""
    moved = _Moved(function, of_any_dtype(function, rows))
    for call in (part for part in walk_scope(function) if isinstance(part, ast.Call)):
        name = last_name(call.func) or ""
        named = name.startswith("conv") and name[-2:] in _DIMENSIONS
        kind = name if named else (kind_of(call.func) or "").replace("Transpose", "").lower()
        first = next(iter(all_given(call)), None)
        if first is None or not kind.startswith("conv") or kind[-2:] not in _DIMENSIONS:
            continue
        if moved.is_so(first) or (kind[-2:] != "1d" and rows.reach(first)):
            return f"Inductor cannot compile `{short(call)}`, a convolution with an unknown size in it"
    return None


class _Moved:
    """What has so many rows, but not along its first dimension."""

    def __init__(self, function: FunctionNode, rows: Rows) -> None:
        self._rows, self._names = rows, set[str]()
        statements = [part for part in walk_scope(function) if isinstance(part, ast.Assign)]
        for each in sorted(statements, key=lambda part: (part.lineno, part.col_offset)):
            if self.is_so(each.value):
                self._names |= names_bound(each)

    def is_so(self, node: ast.AST) -> bool:
        """True for `rows[None]`, `rows.transpose(0, 1)`, `x[:, :n]`, and what is computed of them."""
        if isinstance(node, ast.Name):
            return node.id in self._names
        if not self._rows.reach(node):
            return False
        if isinstance(node, ast.Subscript):
            parts = elements_of(node.slice)
            new = isinstance(parts[0], ast.Constant) and parts[0].value is None
            if new or (self._rows.is_cut(node) and not self._holds_number(parts[0])):
                return True
        if isinstance(node, ast.Call) and self._moves(node):
            return True
        return any(map(self.is_so, children(node)))

    def is_turned_matrix(self, node: ast.expr) -> bool:
        """True for `rows.transpose(0, 1)` of what was not moved before, which may be a matrix."""
        swaps = isinstance(node, ast.Call) and last_name(node.func) in _SWAPS
        return swaps and not any(map(self.is_so, children(node)))

    def is_product(self, call: ast.Call) -> bool:
        """True for `torch.bmm(rows[None], w)` and `torch.einsum("nhd,mhd->hnm", rows, rows)`."""
        name = last_name(call.func)
        if name == "einsum" and call.args:
            equation = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
            batched = isinstance(equation, str) and self._is_batched(equation, call.args[1:])
            return batched or any(map(self.is_so, call.args[1:]))
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        moved = [each for each in [*owner, *call.args] if self.is_so(each)]
        if name == "matmul" and len(moved) == 1 and moved[0] is call.args[-1] and self.is_turned_matrix(moved[0]):
            return False
        return name in _PRODUCTS and bool(moved)

    def _is_batched(self, equation: str, operands: Sequence[ast.expr]) -> bool:
        """True where rows along a first dimension are no batch that two operands share: all else is a batch of one."""
        taken, _, given = equation.replace(" ", "").partition("->")
        letters = taken.split(",")
        if len(letters) != _TWO or len(operands) != _TWO or "." in equation:
            return False
        shared = {each for each in letters[0] if each in letters[1] and each in given}
        of_rows = [word[:1] for word, each in zip(letters, operands, strict=True) if self._rows.reach(each)]
        return any(first not in shared for first in of_rows)

    def _moves(self, call: ast.Call) -> bool:
        name, owner = last_name(call.func), owner_of(call)
        given = [each for each in call.args if not self._rows.reach(each)]
        first = written_integer(given[0]) if given else None
        if name == "unsqueeze":
            return first == 0
        if name == "permute":
            return len(given) > _TWO and first != 0
        if name in _SWAPS:
            return any(written_integer(each) == 0 for each in given)
        if owner is not None and self._rows.is_cut(call):
            return not self._holds_number(call.args[0])
        return False

    def _holds_number(self, node: ast.AST) -> bool:
        return self._rows.is_number(node) or any(map(self._holds_number, children(node)))
