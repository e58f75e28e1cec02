"""Whether rows that a mask chooses are still the first dimension of an expression."""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    last_name,
    owner_of,
    values_given,
)
from graphmend_codemod.rules.framework.site import Site

_KEEP = torch_api.SAME_ANY_DTYPE | torch_api.SAME_IF_FLOATING | frozenset(torch_api.CASTS) | {"to"}
_JOIN_ALONG = torch_api.name_set("cat concat concatenate")


def joins_columns(call: ast.Call) -> bool:
    """True for `torch.cat([...], 1)`, and for other dimensions behind the first that are written out."""
    given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "dim")]
    return last_name(call.func) in _JOIN_ALONG and len(given) == 1 and _is_behind_the_first(given[0])


def _is_behind_the_first(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


class RowsInFront:
    """The rows that some expressions of the site's function choose."""

    def __init__(self, site: Site, nodes: Collection[ast.expr]) -> None:
        self._site = site
        by_mask = (each for each in nodes if isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Tuple))
        self._chosen = {id(each) for each in by_mask}
        self._followed: set[str] = set()

    def keeps(self, node: ast.expr) -> bool:
        """True where an expression certainly has the rows as its first dimension."""
        if id(node) in self._chosen:
            return True
        if isinstance(node, ast.Name):
            value = self._only_value(node.id)
            kept = value is not None and self.keeps(value)
            self._followed.discard(node.id)
            return kept
        if isinstance(node, ast.UnaryOp):
            return self.keeps(node.operand)
        if isinstance(node, ast.BinOp):  # another tensor may have more dimensions, which come in front
            sides = (node.left, node.right)
            return any(map(self.keeps, sides)) and all(self.keeps(each) or self._is_python(each) for each in sides)
        if isinstance(node, ast.Subscript):
            index = elements_of(node.slice)
            return len(index) > 1 and _is_everything(index[0]) and self.keeps(node.value)
        owner = owner_of(node) if isinstance(node, ast.Call) else None
        if owner is None or not isinstance(node, ast.Call) or not self.keeps(owner):
            return False
        given = all_given(node)
        if last_name(node.func) == "unsqueeze":
            return len(given) == 1 and _is_behind_the_first(given[0])
        return last_name(node.func) in _KEEP and all(map(self._is_python, given))

    def _only_value(self, name: str) -> ast.expr | None:
        """What the one statement that binds the name assigns."""
        if name in self._followed:  # `rows = rows * 2`
            return None
        self._followed.add(name)
        values = values_given(self._site.evaluator.scope.node, name)
        return values[0] if len(values) == 1 else None

    def _is_python(self, node: ast.expr) -> bool:
        return self._site.value(node).is_python


def _is_everything(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None
