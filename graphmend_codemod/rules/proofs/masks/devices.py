"""Whether a mask lies on the device of what it selects from.

`x[mask]` takes a mask on the CPU for a tensor on a GPU, `torch.where(mask, x, y)` does not: torch raises an error.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import element_pairs, is_name, without_minus
from graphmend_codemod.analysis.scope import parameter_names, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.selectors import viewed_name

_MOVES = torch_api.name_set("to cpu cuda xpu mps hpu ipu npu device type type_as set_ data tolist numpy from_numpy")
_TESTS = torch_api.name_set(
    "eq ne lt le gt ge bool isnan isinf isfinite logical_not logical_and logical_or greater less not_equal"
)
_STEPS = 4


def on_one_device(site: Site, mask: ast.expr, tensor: ast.expr) -> list[str]:
    """What has to be asked for both to be on one device: nothing where the mask compares elements of the tensor."""
    # A function that moves nothing leaves what it computes from a tensor beside it; attributes are set elsewhere too.
    moves = any(word in _MOVES for word in site.evaluator.scope.outline.words)
    if isinstance(tensor, ast.Name) and not moves and _Stores(site, tensor.id).compares(mask, _STEPS):
        return []
    return [f"{site.operand(tensor)}.device == {site.operand(_beside(mask))}.device"]


def _beside(mask: ast.expr) -> ast.expr:
    """What lies where the mask does: `x` for `~(x > 0).view(-1)`."""
    while True:
        turned = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
        if isinstance(mask, ast.Compare) and isinstance(without_minus(mask.comparators[0]), ast.Constant):
            mask = mask.left
        elif turned:
            mask = mask.operand  # type: ignore[attr-defined]
        elif (viewed := viewed_name(mask)) is not mask:
            mask = viewed
        else:
            return mask


class _Stores:
    """The bindings of one function, asked whether a mask is made of the elements of `tensor`, as it still is."""

    def __init__(self, site: Site, tensor: str) -> None:
        self._tensor = tensor
        self._nodes = list(walk_scope(site.evaluator.scope.node))
        self._given = parameter_names(site.evaluator.scope.node)
        self._last = max((each.lineno for each in self._stores(tensor)), default=0)

    def _stores(self, name: str) -> list[ast.Name]:
        names = [each for each in self._nodes if is_name(each, name)]
        return [each for each in names if not isinstance(each.ctx, ast.Load)]

    def compares(self, node: ast.expr, steps: int) -> bool:
        """True for `x > 0`, `~x.isnan()`, `(x > 0) & other`, and for a name that only holds such values."""
        if isinstance(node, ast.Compare):
            return any(is_name(each, self._tensor) for each in (node.left, *node.comparators))
        if isinstance(node, ast.UnaryOp):
            return self.compares(node.operand, steps)
        if isinstance(node, ast.BinOp):
            return any(self.compares(each, steps) for each in (node.left, node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TESTS:
            given = (node.func.value, *node.args[:1])
            return any(is_name(each, self._tensor) or self.compares(each, steps) for each in given)
        if not isinstance(node, ast.Name) or not steps or node.id in self._given:
            return False
        made = (each for each in self._nodes if isinstance(each, ast.Assign))
        pairs = (pair for each in made for target in each.targets for pair in element_pairs(target, each.value))
        values = [value for target, value in pairs if is_name(target, node.id)]
        plain = len(values) == len(self._stores(node.id)) > 0
        return plain and all(each.lineno > self._last and self.compares(each, steps - 1) for each in values)
