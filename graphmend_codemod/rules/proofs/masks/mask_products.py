"""Products with a mask, `x = x * mask[:, None]`: what they multiply, by what, and whether ones leave it as it is."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls
from graphmend_codemod.analysis.patterns import (
    elements_of,
    is_attribute,
    is_name,
    is_none,
    is_within,
    operands_of,
    reads_name,
)
from graphmend_codemod.analysis.scope import dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import LAYOUT, torch_module_class
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.kinds_of_layers import only_cast_for_layers
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, binds, blocks_of
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory, is_layer

_OF_SHAPE = frozenset({"shape", "ndim"})
_OF_ONE_DTYPE = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})


class Product(NamedTuple):
    """`dtype = target.dtype; target = (target * factor).to(dtype)`."""

    target: ast.Name
    factor: ast.expr
    dtype: ast.Name | None


def product_of(body: list[ast.stmt]) -> Product | None:
    """The product that these statements make, if they do nothing else."""
    *before, last = body
    if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
        return None
    target, value = last.targets[0], last.value
    dtype: ast.Name | None = None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        if len(value.args) != 1 or value.keywords or not isinstance(value.args[0], ast.Name):
            return None
        dtype, value = value.args[0], value.func.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return None
    sides = [value.left, value.right]
    others = [each for each in sides if not (is_name(each, target.id))]
    if len(others) != 1:
        return None
    if any(dtype is None or not _reads_dtype(each, dtype.id, target.id) for each in before):
        return None
    return Product(target, others[0], dtype)


def _reads_dtype(node: ast.stmt, dtype: str, target: str) -> bool:
    """True for `dtype = target.dtype`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not is_name(node.targets[0], dtype):
        return False
    return is_attribute(node.value, target, "dtype")


def asked_beside(test: ast.expr, name: str) -> list[ast.expr] | None:
    """What a test asks beside `name is not None`; None for one that may hold without a mask."""
    tests = operands_of(test, ast.And)
    others = [each for each in tests if not is_not_none(each, name)]
    return others if len(others) < len(tests) else None


def is_not_none(node: ast.expr, name: str) -> bool:
    """True for `name is not None`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.IsNot):
        return False
    other = node.comparators[0]
    return is_name(node.left, name) and is_none(other)


def is_view(node: ast.expr, mask: str) -> bool:
    """True for the mask, parts of it, and the same with more dimensions: all ones where the mask is."""
    if isinstance(node, ast.Name):
        return node.id == mask
    if isinstance(node, ast.Call):
        function = node.func
        more = isinstance(function, ast.Attribute) and function.attr == "unsqueeze" and not node.keywords
        return more and isinstance(function, ast.Attribute) and is_view(function.value, mask)
    if not isinstance(node, ast.Subscript):
        return False
    indices = elements_of(node.slice)
    plain = all(
        isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value in (None, ...))
        for index in indices
    )
    called = any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Await)) for part in walk_in_layers(node.slice))
    return plain and not called and is_view(node.value, mask)


class Products(NamedTuple):
    """What the functions of a module multiply by masks; `absent` are functions that the compile path asks about.

    `asked` are layers for which it asks whether they have a class, by the function that calls them.
    """

    site: Site
    calls: ModuleCalls
    absent: dict[str, None]
    asked: dict[Key, list[tuple[ast.expr, str]]]

    def demand(self, function: Definition, node: ast.If, name: str) -> None:
        """NotProven unless an `if` multiplies by the mask, where there is one, and does nothing else."""
        where = f"`if {short(node.test)}` in `{function.qualname}`"
        others, product = asked_beside(node.test, name), product_of(node.body)
        if others is None or node.orelse or product is None:
            raise NotProven(f"{where} does more than multiply by the mask")
        if not all(about_shape(each, name) for each in others) or not is_view(product.factor, name):
            raise NotProven(f"{where} does more than multiply by the mask")
        if product.target.id == name:
            raise NotProven(f"{where} changes the mask")
        blocks = blocks_of(self.calls, function)
        if product.dtype is None:
            if not self._is_floating(function, blocks, node, product.target.id):
                raise NotProven(f"{where} may change the dtype of `{product.target.id}`")
        elif not _keeps_dtype(blocks, node, product) and not self._is_only_cast(function, blocks, node, product):
            raise NotProven(f"{where} may change the dtype of `{product.target.id}`")
        memory = SharedMemory(self.site, self.calls, absent=self.absent)
        memory.demand_no_write(function, node, {product.target.id})

    def _is_only_cast(self, function: Definition, blocks: Blocks, node: ast.If, product: Product) -> bool:
        """True where a dtype of the branch is read below it only by casts for layers that take a single dtype.

        Such a layer takes the dtype of its weights, or casts to that of autocast.
        """
        dtype = product.dtype.id if product.dtype is not None else ""
        layers = only_cast_for_layers(function, node, dtype) if len(node.body) > 1 else None
        if layers is None or blocks.binding_before(node, dtype) is None:
            return False
        found: list[tuple[ast.expr, str]] = []
        for layer in layers:
            made = self.calls.constructions(function.owner, layer.attr) if isinstance(layer, ast.Attribute) else []
            owner = dotted(made[0].func) if len(made) == 1 else None
            if owner is None or torch_module_class(self.site.resolve_global(made[0].func)) not in _OF_ONE_DTYPE:
                return False
            found.append((layer, owner))
        self.asked.setdefault(function.key, []).extend(found)
        return True

    def takes(self, function: Definition, call: ast.Call, name: str) -> list[tuple[Definition, str]] | None:
        """No call is known to do with ones what it does with None."""
        return None

    def _is_floating(self, function: Definition, blocks: Blocks, node: ast.stmt, name: str) -> bool:
        """True for what comes out of a layer, or goes into one next."""
        bound = blocks.binding_before(node, name)
        if bound is not None and self._from_layer(function, blocks, bound):
            return True
        later = [part for part in walk_scope(function.node) if getattr(part, "lineno", 0) > (node.end_lineno or 0)]
        end = min(
            (part.end_lineno or 0 for part in later if isinstance(part, ast.Assign) and binds(part, name)),
            default=10**9,
        )
        return any(
            isinstance(part, ast.Call)
            and is_layer(self.site, self.calls, function, part)
            and part.lineno <= end
            and any(is_name(self._unshaped(each), name) for each in part.args)
            for part in later
        )

    def _from_layer(self, function: Definition, blocks: Blocks, bound: ast.Assign) -> bool:
        value = self._unshaped(bound.value)
        if isinstance(value, ast.Call):
            return is_layer(self.site, self.calls, function, value)
        if isinstance(value, ast.Name):
            before = blocks.binding_before(bound, value.id)
            return before is not None and self._from_layer(function, blocks, before)
        return False

    def _unshaped(self, node: ast.expr) -> ast.expr:
        """What is left without changes of shape: `x` for `x.transpose(1, 2)[:, :4]`."""
        while True:
            if isinstance(node, ast.Subscript):
                node = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYOUT:
                if any((self.site.resolve_global(each) or "").startswith("torch.") for each in node.args):
                    return node  # `x.view(torch.int32)`
                node = node.func.value
            else:
                return node


def about_shape(node: ast.expr, name: str) -> bool:
    """True for comparisons of sizes of the mask with numbers."""
    if not isinstance(node, ast.Compare):
        return False
    return all(isinstance(each, ast.Constant) or is_size(each, name) for each in [node.left, *node.comparators])


def is_size(node: ast.expr, name: str) -> bool:
    """True for `name.shape[0]`, `name.size(0)`, `name.ndim` and the like."""
    inner = node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else node
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        return inner.func.attr in {"size", "dim"} and is_name(inner.func.value, name)
    return isinstance(inner, ast.Attribute) and inner.attr in _OF_SHAPE and is_name(inner.value, name)


def _keeps_dtype(blocks: Blocks, node: ast.If, product: Product) -> bool:
    """True when `(x * mask).to(dtype)` has the dtype that `x` had, and nothing else asks what `dtype` is."""
    assert product.dtype is not None
    dtype, target = product.dtype.id, product.target.id
    if len(node.body) > 1:
        reads = [part for part in walk_scope(blocks.function) if reads_name(part, dtype)]
        return all(is_within(part, node) for part in reads)
    bound = blocks.binding_before(node, dtype)
    if bound is None or not _reads_dtype(bound, dtype, target):
        return False
    return blocks.binding_before(node, target) is blocks.binding_before(bound, target) and not any(
        binds(part, target)
        for part in walk_scope(blocks.function)
        if bound.lineno < getattr(part, "lineno", 0) < node.lineno
        if not (isinstance(part, ast.If) and is_within(node, part))
    )
