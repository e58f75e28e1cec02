"""Which names of a function may share memory, and whether any of it is written below a statement.

A product with ones that is left out, or a sum with zeros, is no copy: what is written into it later is written into
what it was made of. That matters wherever a compile path computes something which eager mode leaves out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.purity import short
from graphmend_codemod.analysis.scope import SCOPES, walk, walk_in_layers, walk_scope
from graphmend_codemod.rules.blocks import Blocks, blocks_of
from graphmend_codemod.rules.site import Site

SHAPES = frozenset("transpose permute contiguous unsqueeze squeeze reshape view chunk split flatten".split())
_LAYERS = frozenset("Linear Conv1d Conv2d Conv3d LayerNorm".split())
_NO_MEMORY = frozenset({"shape", "ndim", "dtype", "device", "training"})
_Store = ast.Assign | ast.AnnAssign | ast.For | ast.AsyncFor
T = TypeVar("T")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class NotAlike(Exception):
    """The use that tells a compile path from eager mode, or that is not understood."""


@dataclass(frozen=True)
class Memory:
    """Looks for writes in the functions of a module."""

    site: Site
    calls: ModuleCalls
    _above: set[tuple[str, int]] = field(default_factory=set)

    def demand_no_write(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> None:
        """NotAlike where something is written below a statement into the memory of some names."""
        related = self._related(function, blocks, node, names)
        end, looped = node.end_lineno or 0, blocks.in_loop(node)
        loops = [each for each in walk_scope(function.node) if isinstance(each, _LOOPS)]
        first = min([end, *(each.lineno for each in loops if each.lineno < end <= (each.end_lineno or 0))])
        for part, names_written in self._writes(function):
            if isinstance(part, SCOPES):
                self._demand_no_write_inside(function, part, related)
            for written in names_written if getattr(part, "lineno", 0) > first else ():
                statement = blocks.statement_of(part)
                if not looped and blocks.exclude(node, statement):
                    continue
                sources = self._origins(function, blocks, statement, written, end, set())
                if any(_overlap(one, other) for one in sources for other in related):
                    raise NotAlike(f"`{short(part)}` in `{function.qualname}` may write into what is multiplied")
        returned = [part for part in walk_scope(function.node) if isinstance(part, ast.Return)]
        if any(isinstance(part.value, ast.Name) and part.value.id in names for part in returned):
            self._demand_no_write_above(function)

    def _remembered(self, question: str, function: Definition, answer: Callable[[], T]) -> T:
        """What the text of a function and the meaning of the names in its module tell, worked out once."""
        scope = self.site.evaluator.scope
        return self.calls.remembered(question, (function, scope.module, scope.index), answer)

    def _writes(self, function: Definition) -> list[tuple[ast.AST, set[str]]]:
        """The nodes that write, with the names, and the functions inside; in the order of a walk."""
        return self._remembered(
            "writes",
            function,
            lambda: [
                (part, written)
                for part in walk_scope(function.node)
                if (written := self._written(function, part)) or isinstance(part, SCOPES)
            ],
        )

    def _demand_no_write_inside(self, function: Definition, scope: ast.AST, related: set[str]) -> None:
        """The same for a function inside the function, whenever it runs."""
        for part in walk_in_layers(scope):
            for written in self._written(function, part):
                if any(_overlap(written, other) for other in related):
                    raise NotAlike(f"`{short(part)}` in `{function.qualname}` may write into what is multiplied")

    def _origins(
        self, function: Definition, blocks: Blocks, statement: ast.stmt, name: str, end: int, seen: set[tuple[int, str]]
    ) -> set[str]:
        """What a name may share memory with where a statement begins, in names that were bound above line `end`."""
        if (id(statement), name) in seen:
            return set()
        seen.add((id(statement), name))
        root = name.partition(".")[0]
        bound = blocks.binding_before(statement, root) if root != "self" else None
        if bound is not None and bound.lineno <= end:
            return {name}
        found = {name} if bound is None else set()
        for each in [bound] if bound is not None else self._bindings(function, name):
            value = each.iter if isinstance(each, (ast.For, ast.AsyncFor)) else getattr(each, "value", None)
            for source in self._sources(function, value) if value is not None else ():
                found |= self._origins(function, blocks, each, source, end, seen)
        return found

    def _bindings(self, function: Definition, name: str) -> Iterator[_Store]:
        """The statements that may give a name, or an attribute of self, a value."""
        root = name.partition(".")[0]
        for part, bound in self._stores(function):
            if name in bound or (root != "self" and root in bound):
                yield part

    def _stores(self, function: Definition) -> list[tuple[_Store, set[str]]]:
        """The statements that give names, and attributes of names, a value, with these."""
        return self._remembered(
            "stores",
            function,
            lambda: [
                (part, _bound_in(part.targets if isinstance(part, ast.Assign) else [part.target]))
                for part in walk_scope(function.node)
                if isinstance(part, (ast.Assign, ast.AnnAssign, ast.For, ast.AsyncFor))
            ],
        )

    def _links(self, function: Definition) -> list[tuple[ast.stmt, set[str], set[str]]]:
        """The assignments of a function, with what they bind and what that may share memory with."""
        return self._remembered(
            "links",
            function,
            lambda: [
                (part, bound, self._sources(function, part.value))
                for part, bound in self._stores(function)
                if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None
            ],
        )

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
            of_torch = (self.site.resolve_global(node.func) or "").startswith("torch.")
            written = node.args[:1] if of_torch else [node.func.value]
            found |= {name for each in written for name in self._sources(function, each)}
        return found

    def _is_in_place(self, function: Definition, call: ast.Call) -> bool:
        """True for `relu(x, inplace=True)`, and for `self.relu(x)` where that was made so."""
        called = call.func
        own = isinstance(called, ast.Attribute) and is_name(called.value, "self")
        made = (
            self.calls.constructions(function.owner, called.attr) if isinstance(called, ast.Attribute) and own else []
        )
        return any(map(_says_inplace, [call, *made]))

    def _related(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> set[str]:
        """Names, with one attribute, that may share memory with some names where a statement begins."""
        found = set(names)
        looped = blocks.in_loop(node)
        links = [
            (targets, values)
            for part, targets, values in self._links(function)
            if looped or (part.lineno < node.lineno and not blocks.exclude(part, node))
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
            if node.attr in _NO_MEMORY:
                return set()
            return {ast.unparse(node)} if isinstance(node.value, ast.Name) else self._sources(function, node.value)
        if isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            return self._sources(function, node.value)
        if isinstance(node, ast.IfExp):
            return self._sources(function, node.body) | self._sources(function, node.orelse)
        if isinstance(node, ast.BoolOp):
            return {name for each in node.values for name in self._sources(function, each)}
        if isinstance(node, (ast.Tuple, ast.List)):
            return {name for each in node.elts for name in self._sources(function, each)}
        if not isinstance(node, ast.Call):
            return set()
        called = self.site.resolve_global(node.func) or ""
        own_layer = is_layer(self.site, self.calls, function, node)
        if own_layer or (called.startswith("torch.") and called.split(".")[-1] not in SHAPES):
            return set()
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts = [*inner, *node.args, *(word.value for word in node.keywords)]
        return {name for each in parts for name in self._sources(function, each)}

    def _demand_no_write_above(self, function: Definition) -> None:
        """The same for callers of a function that returns the product, or what it would have multiplied."""
        key = (function.qualname, function.node.lineno)
        if key in self._above:
            return
        self._above.add(key)
        for caller, call in self.calls.callers(function):
            target = assigned(caller, call)
            if target is None:
                raise NotAlike(f"`{short(call)}` is used otherwise than by a name")
            blocks = blocks_of(self.calls, caller)
            names = {each.id for each in walk_in_layers(call) if isinstance(each, ast.Name)} - {"self"}
            self.demand_no_write(caller, blocks, blocks.statement_of(call), names | {target})


def _says_inplace(call: ast.Call) -> bool:
    words = [word for part in walk(call) if isinstance(part, ast.Call) for word in part.keywords]
    return any(word.arg == "inplace" and ast.unparse(word.value) != "False" for word in words)


def is_layer(site: Site, calls: ModuleCalls, function: Definition, call: ast.Call) -> bool:
    """True for a call of a layer of torch that makes a new floating tensor."""
    called = call.func
    if not isinstance(called, ast.Attribute) or not is_name(called.value, "self"):
        return False
    made = calls.constructions(function.owner, called.attr)
    return bool(made) and all(torch_api.torch_module_class(site.resolve_global(each.func)) in _LAYERS for each in made)


def _overlap(one: str, other: str) -> bool:
    """True when two names may stand for one thing: they are equal, or one is an attribute of the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _bound_in(targets: list[ast.expr]) -> set[str]:
    """The names, and the attributes of names, that targets bind."""
    parts = [part for target in targets for part in walk_in_layers(target)]
    stored = [
        part for part in parts if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load)
    ]
    return {ast.unparse(part) for part in stored}


def assigned(caller: Definition, call: ast.Call) -> str | None:
    """The name that alone gets the result of a call."""
    for node in walk_scope(caller.node):
        if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
            target = node.targets[0]
            return target.id if isinstance(target, ast.Name) else None
    return None


def is_name(node: ast.AST | None, name: str) -> bool:
    """True for this name."""
    return isinstance(node, ast.Name) and node.id == name
