"""Batched matrix products of tensors with an unknown size that is not the first: `q @ k.transpose(-2, -1)`.

Inductor of torch 2.13 asks whether that size is 1, and ends compilation with an error, with torch's own `nonzero` and
`item` as well. Products of two dimensions, and those whose batch is of unknown size, it compiles. To `torch.einsum`
a product of two matrices is a batch of one. So it is with convolutions along such a size. Those of images whose number
is unknown it compiles, and finds when they run that a result is laid out otherwise: an error as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    last_name,
    names_bound,
    owner_of,
    written_integer,
)
from graphmend_codemod.analysis.scope import FunctionNode, children, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import Rows, of_any_dtype

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
