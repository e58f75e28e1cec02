"""Products with a mask, `x = x * mask[:, None]`: what they multiply, by what, and whether ones leave it as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, tree_of
from graphmend_codemod.analysis.purity import short
from graphmend_codemod.analysis.scope import walk, walk_scope
from graphmend_codemod.rules.blocks import Blocks, binds
from graphmend_codemod.rules.site import Site

_LAYERS = frozenset("Linear Conv1d Conv2d Conv3d LayerNorm".split())
_SHAPES = frozenset("transpose permute contiguous unsqueeze squeeze reshape view chunk split flatten".split())
_OF_SHAPE = frozenset({"shape", "ndim"})
_NO_MEMORY = frozenset({"shape", "ndim", "dtype", "device", "training"})


class NotAlike(Exception):
    """The use that tells ones from None, or that is not understood."""


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
    others = [each for each in sides if not (isinstance(each, ast.Name) and each.id == target.id)]
    if len(others) != 1:
        return None
    if any(dtype is None or ast.unparse(each) != f"{dtype.id} = {target.id}.dtype" for each in before):
        return None
    return Product(target, others[0], dtype)


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
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = all(
        isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value in (None, ...))
        for index in indices
    )
    called = any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Await)) for part in ast.walk(node.slice))
    return plain and not called and is_view(node.value, mask)


class Products(NamedTuple):
    """What the functions of a module multiply by masks."""

    site: Site
    calls: ModuleCalls

    def demand(self, function: Definition, node: ast.If, name: str) -> None:
        """NotAlike unless an `if` multiplies by the mask, where there is one, and does nothing else."""
        where = f"`if {short(node.test)}` in `{function.qualname}`"
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        disjunction = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or)
        present = [each for each in tests if ast.unparse(each) == f"{name} is not None"]
        others = [each for each in tests if each not in present]
        product = product_of(node.body)
        if disjunction or not present or node.orelse or product is None:
            raise NotAlike(f"{where} does more than multiply by the mask")
        if not all(about_shape(each, name) for each in others) or not is_view(product.factor, name):
            raise NotAlike(f"{where} does more than multiply by the mask")
        if product.target.id == name:
            raise NotAlike(f"{where} changes the mask itself")
        blocks = Blocks(function.node)
        if product.dtype is None:
            if not self._is_floating(function, blocks, node, product.target.id):
                raise NotAlike(f"{where} may change the dtype of `{product.target.id}`")
        elif not _keeps_dtype(blocks, node, product):
            raise NotAlike(f"{where} may change the dtype of `{product.target.id}`")
        self.demand_no_write(function, blocks, node, {product.target.id})

    def takes(self, function: Definition, call: ast.Call, name: str) -> list[tuple[Definition, str]] | None:
        """No call is known to do with ones what it does with None."""
        return None

    def demand_no_write(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> None:
        """NotAlike where something is written into the factor later: without a product it is no copy."""
        related = self._related(function, blocks, node, names)
        loops = [each for each in walk_scope(function.node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
        end = node.end_lineno or 0
        first = min([end, *(each.lineno for each in loops if each.lineno < end <= (each.end_lineno or 0))])
        for part in walk_scope(function.node):
            for written in self._written(function, part) if getattr(part, "lineno", 0) > first else ():
                statement = blocks.statement_of(part)
                if blocks.exclude(node, statement):
                    continue
                bound = blocks.binding_before(statement, written.partition(".")[0])
                anew = bound is not None and bound.lineno > end
                sources = self._sources(function, bound.value) if anew and bound is not None else {written}
                if any(_overlap(one, other) for one in sources for other in related):
                    raise NotAlike(f"`{short(part)}` in `{function.qualname}` may write into what is multiplied")
        returned = [part for part in walk_scope(function.node) if isinstance(part, ast.Return)]
        if any(isinstance(part.value, ast.Name) and part.value.id in names for part in returned):
            self._demand_no_write_above(function)

    def _written(self, function: Definition, node: ast.AST) -> set[str]:
        """The names into whose tensors a node writes."""
        if isinstance(node, ast.AugAssign):
            return self._sources(function, node.target)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return self._sources(function, node.value)
        if not isinstance(node, ast.Call):
            return set()
        found = {name for word in node.keywords if word.arg == "out" for name in self._sources(function, word.value)}
        if self._is_in_place(function, node):
            found |= {name for each in node.args for name in self._sources(function, each)}
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Attribute) and method.endswith("_") and not method.startswith("_"):
            found |= self._sources(function, node.func.value)
        return found

    def _is_in_place(self, function: Definition, call: ast.Call) -> bool:
        """True for `relu(x, inplace=True)`, and for `self.relu(x)` where that was made so."""
        called = call.func
        own = isinstance(called, ast.Attribute) and is_name(called.value, "self")
        made = (
            self.calls.constructions(function.owner, called.attr) if isinstance(called, ast.Attribute) and own else []
        )
        words = [word for each in [call, *made] for part in ast.walk(each) for word in getattr(part, "keywords", [])]
        return any(word.arg == "inplace" and ast.unparse(word.value) != "False" for word in words)

    def _related(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> set[str]:
        """Names, with one attribute, that may share memory with some names where a statement begins."""
        found = set(names)
        before = [part for part in walk_scope(function.node) if isinstance(part, ast.Assign)]
        links = [
            ({name for target in part.targets for name in _names_in(target)}, self._sources(function, part.value))
            for part in before
            if part.lineno < node.lineno and not blocks.exclude(part, node)
        ]
        while True:
            known = len(found)
            for targets, values in links:
                if any(_overlap(one, other) for one in targets for other in found):
                    found |= values | targets
                if any(_overlap(one, other) for one in values for other in found):
                    found |= targets
            if len(found) == known:
                return found

    def _sources(self, function: Definition, node: ast.expr) -> set[str]:
        """What the value of an expression may share memory with."""
        if isinstance(node, ast.Name):
            return {node.id} - {"self"}
        if isinstance(node, ast.Attribute):
            whole = isinstance(node.value, ast.Name) and node.value.id != "self"
            if node.attr in _NO_MEMORY:
                return set()
            return {ast.unparse(node)} if whole else self._sources(function, node.value)
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self._sources(function, node.value)
        if isinstance(node, ast.IfExp):
            return self._sources(function, node.body) | self._sources(function, node.orelse)
        if isinstance(node, (ast.Tuple, ast.List)):
            return {name for each in node.elts for name in self._sources(function, each)}
        if not isinstance(node, ast.Call):
            return set()
        called = self.site.resolve_global(node.func) or ""
        if self._is_layer(function, node) or (called.startswith("torch.") and called.split(".")[-1] not in _SHAPES):
            return set()
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts = [*inner, *node.args, *(word.value for word in node.keywords)]
        return {name for each in parts for name in self._sources(function, each)}

    def _demand_no_write_above(self, function: Definition) -> None:
        """The same for callers of a function that returns the product, or what it would have multiplied."""
        for caller, call in self.calls.callers(function):
            target = assigned(caller, call)
            if target is None:
                raise NotAlike(f"`{short(call)}` is used otherwise than by a name")
            blocks = Blocks(caller.node)
            names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)} - {"self"}
            self.demand_no_write(caller, blocks, blocks.statement_of(call), names | {target})

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
            and self._is_layer(function, part)
            and part.lineno <= end
            and any(is_name(_unshaped(each), name) for each in part.args)
            for part in later
        )

    def _from_layer(self, function: Definition, blocks: Blocks, bound: ast.Assign) -> bool:
        value = _unshaped(bound.value)
        if isinstance(value, ast.Call):
            return self._is_layer(function, value)
        if isinstance(value, ast.Name):
            before = blocks.binding_before(bound, value.id)
            return before is not None and self._from_layer(function, blocks, before)
        return False

    def _is_layer(self, function: Definition, call: ast.Call) -> bool:
        called = call.func
        if not isinstance(called, ast.Attribute) or not is_name(called.value, "self"):
            return False
        made = self.calls.constructions(function.owner, called.attr)
        return bool(made) and all(
            torch_api.torch_module_class(self.site.resolve_global(each.func)) in _LAYERS for each in made
        )


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
        reads = [
            part
            for part in walk_scope(blocks.function)
            if is_name(part, dtype) and isinstance(part.ctx, ast.Load)  # type: ignore[attr-defined]
        ]
        return all(any(part is inner for inner in ast.walk(node)) for part in reads)
    bound = blocks.binding_before(node, dtype)
    if bound is None or ast.unparse(bound) != f"{dtype} = {target}.dtype":
        return False
    return blocks.binding_before(node, target) is blocks.binding_before(bound, target) and not any(
        binds(part, target)
        for part in walk_scope(blocks.function)
        if bound.lineno < getattr(part, "lineno", 0) < node.lineno
    )


def _overlap(one: str, other: str) -> bool:
    """True when two names may stand for one thing: they are equal, or one is an attribute of the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _names_in(target: ast.expr) -> list[str]:
    return [each.id for each in ast.walk(target) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)]


def _unshaped(node: ast.expr) -> ast.expr:
    """What is left without changes of shape: `x` for `x.transpose(1, 2)[:, :4]`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPES:
            if any(ast.unparse(each).startswith("torch.") for each in node.args):
                return node  # `x.view(torch.int32)`
            node = node.func.value
        else:
            return node


def assigned(caller: Definition, call: ast.Call) -> str | None:
    """The name that alone gets the result of a call."""
    for node in walk_scope(caller.node):
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            target = node.targets[0]
            return target.id if isinstance(target, ast.Name) else None
    return None


def stored(site: Site, calls: ModuleCalls, owner: str, attribute: str) -> Iterator[ast.expr | None]:
    """What the module gives to an attribute of instances of a class; None for what is no plain assignment."""
    for store in _stores(site.source.text).get(attribute, ()):
        if not store.of_self or not store.inside or calls.related(store.inside, owner):
            yield store.value


class _Store(NamedTuple):
    """A place that gives an attribute another value; `inside` is the class that it stands in."""

    value: ast.expr | None
    of_self: bool
    inside: str


@lru_cache(maxsize=2)
def _stores(text: str) -> Mapping[str, list[_Store]]:
    """The places of a module that give attributes values, by attribute."""
    found: dict[str, list[_Store]] = {}
    values: dict[int, ast.expr | None] = {}
    for statement in reversed(tree_of(text).body):
        inside = statement.name if isinstance(statement, ast.ClassDef) else ""
        for node in walk(statement):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    values[id(target)] = node.value
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                store = _Store(values.get(id(node)), is_name(node.value, "self"), inside)
                found.setdefault(node.attr, []).append(store)
    return found


def is_name(node: ast.AST | None, name: str) -> bool:
    """True for this name."""
    return isinstance(node, ast.Name) and node.id == name
