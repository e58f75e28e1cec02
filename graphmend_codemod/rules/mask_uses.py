"""What becomes of a mask in a module: whether one of ones does, wherever it gets to, what None does there.

`if mask is not None: x = x * mask[:, None]` is such a use: ones change nothing, where the product has the dtype of `x`.
The value is followed through assignments, results of functions, calls of functions and of layers whose class the
constructor tells, and choices by the class of a layer. Any other use is a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.purity import short
from graphmend_codemod.analysis.scope import SCOPES, parameters, walk_scope
from graphmend_codemod.rules.blocks import Blocks, binds
from graphmend_codemod.rules.mask_products import Product, is_view, product_of
from graphmend_codemod.rules.site import Site

_LAYERS = frozenset("Linear Conv1d Conv2d Conv3d LayerNorm".split())
_SHAPES = frozenset("transpose permute contiguous unsqueeze squeeze reshape view chunk split flatten".split())
_OF_SHAPE = frozenset({"shape", "ndim"})
_NO_MEMORY = frozenset({"shape", "ndim", "dtype", "device", "training"})


class NotAlike(Exception):
    """The use that tells ones from None, or that is not understood."""


@dataclass(frozen=True)
class _Chosen:
    """What is known of a layer: its class, or that an attribute of it has this value."""

    owner: str = ""
    attribute: str = ""
    value: str = ""


@dataclass
class MaskUses:
    """Follows one mask."""

    site: Site
    calls: ModuleCalls
    companions: list[tuple[Definition, ast.Call]] = field(default_factory=list)
    _seen: set[tuple[str, int, str, str]] = field(default_factory=set)

    def demand(self, function: Definition, name: str, statement: ast.stmt) -> None:
        """NotAlike unless all uses of `name` in a function, below a statement, are alike for ones and for None."""
        if _start(function, statement) < statement.lineno:
            raise NotAlike(f"`{name}` gets its value in a loop")
        if any(each.lineno > (statement.end_lineno or 0) for each in _bindings(function, name)):
            raise NotAlike(f"`{name}` gets another value in `{function.qualname}`")
        self._follow(function, name, statement.end_lineno or 0, _Chosen(), {})

    def _bound(
        self, function: Definition, name: str, node: ast.AST, own: _Chosen, layers: Mapping[str, _Chosen]
    ) -> None:
        """Follow a name that an assignment, and nothing else, binds."""
        if len(_bindings(function, name)) != 1 or name in _parameter_names(function):
            raise NotAlike(f"`{name}` gets another value in `{function.qualname}`")
        self._follow(function, name, _start(function, node) - 1, own, layers)

    def _given(self, function: Definition, name: str, own: _Chosen) -> None:
        """Follow a parameter."""
        if _bindings(function, name):
            raise NotAlike(f"`{name}` gets another value in `{function.qualname}`")
        self._follow(function, name, 0, own, {})

    def _follow(self, function: Definition, name: str, after: int, own: _Chosen, layers: Mapping[str, _Chosen]) -> None:
        key = (function.qualname, function.node.lineno, name, own.value)
        if key in self._seen:
            return
        self._seen.add(key)
        allowed: set[int] = set()
        nodes = list(_live(function.node.body, own))
        for node in nodes:
            if isinstance(node, SCOPES) and _mentions(node, name):
                raise NotAlike(f"`{name}` is used in a function inside `{function.qualname}`")
            if isinstance(node, ast.If) and node.lineno > after and _mentions(node.test, name):
                self._demand_product(function, node, name)
                allowed |= {id(part) for part in ast.walk(node)}
        for node in nodes:
            allowed |= self._handed_on(function, node, name, own, layers)
        for node in nodes:
            used = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            if used and isinstance(node, ast.Name) and node.lineno > after and id(node) not in allowed:
                around = next((each for each in nodes if node in ast.iter_child_nodes(each)), node)
                raise NotAlike(f"`{short(around)}` in `{function.qualname}` may tell a mask of ones from None")

    def _handed_on(
        self, function: Definition, node: ast.AST, name: str, own: _Chosen, layers: Mapping[str, _Chosen]
    ) -> set[int]:
        """Follow the mask to where a node hands it; the names in it that are understood."""
        if isinstance(node, ast.Return) and _is(node.value, name):
            self._returned(function)
            return {id(node.value)}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp) and isinstance(node.targets[0], ast.Name):
            chosen = node.value
            if _is(chosen.body, name) and not _mentions(chosen.test, name) and not _mentions(chosen.orelse, name):
                layer = self._chosen_layer(chosen.test)
                self._bound(function, node.targets[0].id, node, own, {**layers, **layer})
                return {id(chosen.body)}
        if isinstance(node, ast.Call):
            call = _called_by_name(node)
            given = [each for each in [*call.args, *(word.value for word in call.keywords)] if _is(each, name)]
            if given:
                self.companions.append((function, call))
                for callee, known in self._callees(function, call, own, layers):
                    for parameter in _parameters_given(callee, call, name, len(given)):
                        self._given(callee, parameter, known)
            return {id(each) for each in given}
        return set()

    def _returned(self, function: Definition) -> None:
        """Follow the result of a function to those who call it."""
        short_name = function.qualname.rpartition(".")[2]
        if not short_name.startswith("_"):
            raise NotAlike(f"`{function.qualname}` may be called from elsewhere")
        results = 0
        for caller in self.calls.definitions.values():
            for node in walk_scope(caller.node):
                if not isinstance(node, ast.Call) or self.calls.callee(caller, node) is not function:
                    continue
                target = _assigned(caller, node)
                if target is None:
                    raise NotAlike(f"`{short(node)}` is used otherwise than by a name")
                self._bound(caller, target, node, _Chosen(), {})
                results += 1
        if not results:
            raise NotAlike(f"nothing in the module is known to call `{function.qualname}`")

    def _chosen_layer(self, test: ast.expr) -> dict[str, _Chosen]:
        """What `isinstance(layer, Class)` or `layer.kind == "mamba"` says about a layer."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
            layer, owner = test.args
            if isinstance(layer, ast.Name) and isinstance(owner, ast.Name):
                return {layer.id: _Chosen(owner=owner.id)}
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            if isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name) and isinstance(right, ast.Constant):
                return {left.value.id: _Chosen(attribute=left.attr, value=repr(right.value))}
        return {}

    def _callees(
        self, function: Definition, call: ast.Call, own: _Chosen, layers: Mapping[str, _Chosen]
    ) -> Iterator[tuple[Definition, _Chosen]]:
        """The functions that a call may run, with what is known of the layer that they belong to."""
        called = call.func
        if isinstance(called, ast.Name) and called.id in layers:
            chosen = layers[called.id]
            for owner in [chosen.owner] if chosen.owner else self._elements(function, called.id):
                yield self._method(owner, "forward"), chosen
            return
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
            if self.calls.method(function.owner, called.attr) is not None:
                yield self._method(function.owner, called.attr), own
                return
            made = set(_classes_of(self.calls, function.owner, called.attr))
            if len(made) == 1:
                yield self._method(made.pop(), "forward"), _Chosen()
                return
        callee = self.calls.callee(function, call) if isinstance(called, ast.Name) else None
        if callee is None:
            raise NotAlike(f"it is not known what `{short(call.func)}` in `{function.qualname}` does with the mask")
        yield callee, _Chosen()

    def _method(self, owner: str, name: str) -> Definition:
        key = self.calls.method(owner, name)
        if key is None:
            raise NotAlike(f"`{owner}.{name}` is not in this module")
        owners = {each.owner for each in self.calls.definitions.values() if each.owner}
        if any(self.calls.is_heir(each, owner) and self.calls.method(each, name) != key for each in owners):
            raise NotAlike(f"another class replaces `{owner}.{name}`")
        return self.calls.definitions[key]

    def _elements(self, function: Definition, name: str) -> list[str]:
        """The classes of what a loop over a list of layers gives."""
        for node in walk_scope(function.node):
            iterated = node.iter if isinstance(node, ast.For) and _is(node.target, name) else None
            if isinstance(iterated, ast.Attribute) and _is(iterated.value, "self"):
                made = self.calls.constructions(function.owner, iterated.attr)
                constructor = self.calls.method(function.owner, "__init__")
                if len(made) == 1 and constructor is not None:
                    return self._listed(self.calls.definitions[constructor], made[0])
        raise NotAlike(f"it is not known which layers `{name}` may be")

    def _listed(self, constructor: Definition, made: ast.Call) -> list[str]:
        """The classes of the elements of `nn.ModuleList(made)`."""
        listed = made.args[0] if len(made.args) == 1 else None
        if torch_api.torch_module_class(self.site.resolve_global(made.func)) != "ModuleList" or listed is None:
            raise NotAlike(f"it is not known what `{short(made)}` holds")
        elements: list[ast.expr] = []
        if isinstance(listed, ast.ListComp):
            elements.append(listed.elt)
        elif isinstance(listed, ast.Name):
            for node in walk_scope(constructor.node):
                if isinstance(node, ast.Call) and short(node.func) == f"{listed.id}.append":
                    elements += node.args
        names = [each.func.id for each in elements if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
        if not names or len(names) != len(elements):
            raise NotAlike(f"it is not known what `{short(made)}` holds")
        return sorted(set(names))

    # products

    def _demand_product(self, function: Definition, node: ast.If, name: str) -> None:
        """NotAlike unless an `if` multiplies by the mask, where there is one, and does nothing else."""
        where = f"`if {short(node.test)}` in `{function.qualname}`"
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        disjunction = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or)
        present = [each for each in tests if ast.unparse(each) == f"{name} is not None"]
        others = [each for each in tests if each not in present]
        product = product_of(node.body)
        if disjunction or not present or node.orelse or product is None:
            raise NotAlike(f"{where} does more than multiply by the mask")
        if not all(_about_shape(each, name) for each in others) or not is_view(product.factor, name):
            raise NotAlike(f"{where} does more than multiply by the mask")
        if product.target.id == name:
            raise NotAlike(f"{where} changes the mask itself")
        blocks = Blocks(function.node)
        if product.dtype is None:
            if not self._is_floating(function, blocks, node, product.target.id):
                raise NotAlike(f"{where} may change the dtype of `{product.target.id}`")
        elif not _keeps_dtype(blocks, node, product):
            raise NotAlike(f"{where} may change the dtype of `{product.target.id}`")
        self._demand_no_write(function, blocks, node, {product.target.id})

    def _demand_no_write(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> None:
        """NotAlike where something is written into the factor later: without a product it is no copy."""
        related = self._related(function, blocks, node, names)
        for part in walk_scope(function.node):
            written = _written(part) if getattr(part, "lineno", 0) > (node.end_lineno or 0) else None
            if written is None or blocks.exclude(node, blocks.statement_of(part)):
                continue
            bound = blocks.binding_before(blocks.statement_of(part), written.partition(".")[0])
            anew = bound is not None and bound.lineno > (node.end_lineno or 0)
            sources = self._sources(function, bound.value) if anew and bound is not None else {written}
            if any(_overlap(one, other) for one in sources for other in related):
                raise NotAlike(f"`{short(part)}` in `{function.qualname}` may write into what is multiplied")
        returned = [part for part in walk_scope(function.node) if isinstance(part, ast.Return)]
        if any(isinstance(part.value, ast.Name) and part.value.id in names for part in returned):
            self._demand_no_write_above(function)

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
                    found |= values
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
        for caller in self.calls.definitions.values():
            for call in walk_scope(caller.node):
                if not isinstance(call, ast.Call) or self.calls.callee(caller, call) is not function:
                    continue
                target = _assigned(caller, call)
                if target is None:
                    raise NotAlike(f"`{short(call)}` is used otherwise than by a name")
                blocks = Blocks(caller.node)
                names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)} - {"self"}
                self._demand_no_write(caller, blocks, blocks.statement_of(call), names | {target})

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
            and any(_is(_unshaped(each), name) for each in part.args)
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
        if not isinstance(called, ast.Attribute) or not _is(called.value, "self"):
            return False
        made = self.calls.constructions(function.owner, called.attr)
        return bool(made) and all(
            torch_api.torch_module_class(self.site.resolve_global(each.func)) in _LAYERS for each in made
        )


def _classes_of(calls: ModuleCalls, owner: str, attribute: str) -> Iterator[str]:
    """What the constructor of a class calls for an attribute; where it is None, nothing can be called."""
    constructor = calls.method(owner, "__init__")
    for key, function in calls.definitions.items():
        for node in walk_scope(function.node) if function.owner == owner or key == constructor else ():
            if isinstance(node, ast.Assign) and any(ast.unparse(each) == f"self.{attribute}" for each in node.targets):
                value = node.value
                if not isinstance(value, ast.Constant):
                    yield ast.unparse(value.func) if isinstance(value, ast.Call) else "..."


def _is(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mentions(node: ast.AST, name: str) -> bool:
    return any(_is(part, name) for part in ast.walk(node))


def _live(block: list[ast.stmt], own: _Chosen) -> Iterator[ast.AST]:
    """The nodes of statements, without branches that a layer does not take for which `own` is known."""
    for statement in block:
        taken = _taken(statement, own)
        if taken is not None:
            yield from _live(taken, own)
        elif isinstance(statement, ast.If):
            yield statement
            yield from ast.walk(statement.test)
            yield from _live(statement.body, own)
            yield from _live(statement.orelse, own)
        else:
            yield from [statement, *walk_scope(statement)]


def _taken(statement: ast.stmt, own: _Chosen) -> list[ast.stmt] | None:
    """The branch of `if self.kind == "mamba":` that is taken, if that is known."""
    test = statement.test if isinstance(statement, ast.If) else None
    if not isinstance(statement, ast.If) or not isinstance(test, ast.Compare) or not own.attribute:
        return None
    right = test.comparators[0]
    plain = len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq) and isinstance(right, ast.Constant)
    if not plain or ast.unparse(test.left) != f"self.{own.attribute}" or not isinstance(right, ast.Constant):
        return None
    return statement.body if repr(right.value) == own.value else statement.orelse


def _called_by_name(call: ast.Call) -> ast.Call:
    """`layer(x)` for `checkpoint(layer.__call__, x)`, also where `partial` gives keywords."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call) and getattr(first.func, "id", "") == "partial" and len(first.args) == 1:
        first = first.args[0]
    if isinstance(first, ast.Attribute) and first.attr == "__call__":
        return ast.Call(func=first.value, args=call.args[1:], keywords=[])
    return call


def _parameters_given(callee: Definition, call: ast.Call, name: str, count: int) -> list[str]:
    found = [parameter for parameter, given in callee.arguments(call).items() if _is(given, name)]
    known = {each.arg for each in [*callee.node.args.args, *callee.node.args.kwonlyargs]}
    if len(found) != count or not known.issuperset(found):
        raise NotAlike(f"it is not known which parameter of `{callee.qualname}` gets the mask")
    return found


def _assigned(caller: Definition, call: ast.Call) -> str | None:
    """The name that alone gets the result of a call."""
    for node in walk_scope(caller.node):
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            target = node.targets[0]
            return target.id if isinstance(target, ast.Name) else None
    return None


def _about_shape(node: ast.expr, name: str) -> bool:
    """True for comparisons of sizes of the mask with numbers."""
    if not isinstance(node, ast.Compare):
        return False
    return all(isinstance(each, ast.Constant) or _is_size(each, name) for each in [node.left, *node.comparators])


def _is_size(node: ast.expr, name: str) -> bool:
    inner = node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else node
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        return inner.func.attr in {"size", "dim"} and _is(inner.func.value, name)
    return isinstance(inner, ast.Attribute) and inner.attr in _OF_SHAPE and _is(inner.value, name)


def _keeps_dtype(blocks: Blocks, node: ast.If, product: Product) -> bool:
    """True when `(x * mask).to(dtype)` has the dtype that `x` had, and nothing else asks what `dtype` is."""
    assert product.dtype is not None
    dtype, target = product.dtype.id, product.target.id
    if len(node.body) > 1:
        reads = [
            part
            for part in walk_scope(blocks.function)
            if _is(part, dtype) and isinstance(part.ctx, ast.Load)  # type: ignore[attr-defined]
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


def _bindings(function: Definition, name: str) -> list[ast.Name]:
    return [
        node
        for node in walk_scope(function.node)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]


def _parameter_names(function: Definition) -> set[str]:
    return {each.arg for each in parameters(function.node)}


def _start(function: Definition, node: ast.AST) -> int:
    """The line of a node, or of the outermost loop around it."""
    line: int = node.lineno  # type: ignore[attr-defined]
    loops = [each for each in walk_scope(function.node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
    return min([line, *(each.lineno for each in loops if each.lineno <= line <= (each.end_lineno or 0))])


def _written(node: ast.AST) -> str | None:
    """The name into whose tensor a node writes."""
    if isinstance(node, ast.AugAssign):
        return _root(node.target)
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _root(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method.endswith("_") and not method.startswith("_"):
            return _root(node.func.value)
    return None


def _root(node: ast.expr) -> str | None:
    """`cache.states` for `cache.states[0].data`."""
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.value
    return ".".join([node.id, *names[-1:]]) if isinstance(node, ast.Name) else None


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
            node = node.func.value
        else:
            return node
