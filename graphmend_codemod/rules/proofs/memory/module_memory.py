"""What the functions of a module do with memory: what names may share it, what they write, what they keep.

Functions of the same module are looked into; of others nothing is known, so that they share and write what they get.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

from graphmend_codemod.analysis import aliasing, rearrangements, torch_api
from graphmend_codemod.analysis.aliasing import CONTAINER_METHODS, Effect
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_attribute, is_name, owner_of
from graphmend_codemod.analysis.scope import SCOPES, dotted, parameter_names, walk_in_layers, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import layers_called
from graphmend_codemod.rules.proofs.memory import handed_functions, indirect
from graphmend_codemod.rules.proofs.memory.held_tensors import led_from
from graphmend_codemod.rules.proofs.memory.instance_writes import own_name, spelled_out, written_of_instance
from graphmend_codemod.rules.proofs.memory.other_callers import function_of
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, blocks_of
from graphmend_codemod.rules.proofs.memory.stores import (
    Store,
    bound_in,
    given_to,
    holders,
    meet,
    pairs_in,
    sequences,
    takes_apart,
    unknown_call,
    widest,
)

_REGISTERS = frozenset({"register_buffer", "register_parameter"})  # keep a tensor and leave it as it is
_CONTAINERS = frozenset({"ModuleDict", "ModuleList", "Sequential"})
_PARTS = frozenset({"data", "real", "imag"})
"""Attributes of a tensor that are its elements: who assigns them writes into the tensor, or gives it other memory."""
_VIEWS = _PARTS | {"T", "mT", "H", "mH"}
_STORES = (ast.Assign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.Match)
_MAY_WRITE = (ast.Call, ast.AugAssign, ast.Subscript, ast.Attribute, ast.With, ast.AsyncWith, *SCOPES)
Link = tuple[Store | ast.Call | ast.AugAssign, set[str], set[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class ModuleMemory:
    """Answers for the functions of one module, with what the names at its top level mean."""

    site: Site
    calls: ModuleCalls
    assumed: frozenset[str] = frozenset()
    """Functions of the top level whose calls raise, as they are None: these share and write nothing."""
    unknown: ClassVar[frozenset[str]] = frozenset({"self"})
    """What a call writes that leads to the instance, where nothing is known of it."""

    def remembered(self, question: str, about: Hashable, answer: Callable[[], T], meanwhile: T | None = None) -> T:
        """What the text of a function and the meaning of the names in its module tell, worked out once."""
        scope = self.site.evaluator.scope
        return self.calls.remembered(question, (about, scope.module, scope.index, self.assumed), answer, meanwhile)

    def writes(self, function: Definition) -> list[tuple[ast.AST, set[str]]]:
        """The nodes that write, with the names, and the functions inside; in the order of a walk.

        Then the calls that run a function which is handed around, and which writes.
        """

        def look() -> list[tuple[ast.AST, set[str]]]:
            parts = [part for part in walk_scope(function.node) if isinstance(part, _MAY_WRITE)]
            found = [(part, self.written_by(function, part)) for part in parts]
            return [each for each in found if each[1] or isinstance(each[0], SCOPES)]

        known = self.remembered("writes", function, look)
        return self.remembered("all writes", function, lambda: [*known, *handed_functions.writes_of(self, function)])

    def kept(self, function: Definition) -> list[tuple[str, ast.AST]]:
        """Names whose tensors something may keep: a container, an attribute, what is called."""
        return self.remembered("kept", function, lambda: list(self._find_kept(function)))

    def _find_kept(self, function: Definition) -> Iterator[tuple[str, ast.AST]]:
        for part in walk_scope(function.node):
            given: Sequence[ast.expr] = ()
            if isinstance(part, ast.Call):
                given = self.effect(function, part).keeps
            elif isinstance(part, ast.Assign):
                names = all(isinstance(each, (ast.Name, ast.Tuple, ast.List)) for each in part.targets)
                given = () if names else [part.value]
            elif isinstance(part, (ast.Yield, ast.YieldFrom)) and part.value is not None:
                given = [part.value]
            yield from ((name, part) for each in given for name in self.sources(function, each))

    def filled(self, function: Definition) -> list[Link]:
        """Statements that put something into a container, `y.append(x)` or `y[0] = x`, with both."""
        return self.remembered("filled", function, lambda: list(self._find_filled(function)))

    def _find_filled(self, function: Definition) -> Iterator[Link]:
        for part in walk_scope(function.node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                if part.func.attr in CONTAINER_METHODS and part.args:
                    given = {name for each in part.args for name in self.sources(function, each)}
                    yield part, self.sources(function, part.func.value), given
            elif isinstance(part, ast.AugAssign) and aliasing.is_sequence(part.value, self.sequences(function)):
                yield part, self.sources(function, part.target), self.sources(function, part.value)
            elif isinstance(part, ast.Assign):
                for target in part.targets:
                    # With several indices or a slice it is a tensor, into which values are copied.
                    if isinstance(target, ast.Subscript) and not isinstance(target.slice, (ast.Tuple, ast.Slice)):
                        yield part, self.sources(function, target.value), self.sources(function, part.value)

    def bindings(self, function: Definition, name: str) -> Iterator[Store]:
        """The statements that may give a name, or an attribute of self, a value."""
        root = name.partition(".")[0]
        for part, bound in self.stores(function):
            if name in bound or (root != "self" and root in bound):
                yield part

    def stores(self, function: Definition) -> list[tuple[Store, set[str]]]:
        """The statements that give names, and attributes of names, a value, with these."""
        return self.remembered(
            "stores",
            function,
            lambda: [(part, bound_in(part)) for part in walk_scope(function.node) if isinstance(part, _STORES)],
        )

    def links(self, function: Definition) -> list[Link]:
        """The assignments of a function, with what they bind and what that may share memory with."""
        return self.remembered(
            "links",
            function,
            lambda: [
                *(
                    (part, bound, self.sources(function, value))
                    for part, _ in self.stores(function)
                    for bound, value in pairs_in(part, self.site.resolve_global)
                ),
                *self.filled(function),
            ],
        )

    def written_by(self, function: Definition, node: ast.AST) -> set[str]:
        """The names into whose tensors a node writes, be it in a function inside of this one."""
        if isinstance(node, ast.AugAssign):
            # A list or a tuple that grows writes no tensor.
            grows = isinstance(node.op, ast.Add) and aliasing.is_sequence(node.value, self.sequences(function))
            return set() if grows else self.sources(function, node.target)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return self.sources(function, node.value)
        if isinstance(node, ast.Attribute) and node.attr in _PARTS and not isinstance(node.ctx, ast.Load):
            return self.sources(function, node.value)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return indirect.written_by_managers(self, function, node)
        if not isinstance(node, ast.Call):
            return set()
        given = {name for each in self.effect(function, node).writes for name in self.sources(function, each)}
        given |= indirect.written_globals(self, function, node)
        return given | self._written_by_method(function, spelled_out(node)) | written_of_instance(self, function, node)

    def _written_by_method(self, function: Definition, call: ast.Call) -> set[str]:
        """The attributes into whose tensors a method may write, as its caller spells them."""
        callee, called = self.calls.callee(function, call), call.func
        if callee is None and is_attribute(called, "self"):
            # Of a class in another file: it may write whatever the instance holds.
            held = called.attr in _REGISTERS or self.calls.assigned(function.owner, called.attr)
            return set() if held else {"self"}
        if callee is None or not callee.owner:
            return set()
        method = isinstance(called, ast.Attribute) and called.attr == callee.node.name
        owner = dotted(called.value if method else called)  # type: ignore[attr-defined]
        return {f"{owner}{name.removeprefix('self')}" for name in self.written_of(callee) if owner}

    def written_of(self, function: Definition, root: str = "self") -> set[str]:
        """`self.x` for each attribute of a parameter into whose tensor a function may write, `self` for any."""
        question, meanwhile = f"written of {root}", self._in_recursion({root})
        return self.remembered(question, function, lambda: led_from(root, self._written_at_start(function)), meanwhile)

    def effect(self, function: Definition, call: ast.Call) -> Effect:
        """What a call does with memory. A method that nothing is known of is taken for that of a tensor."""
        return self.remembered("effect", call, lambda: self._find_effect(function, call))

    def _find_effect(self, function: Definition, call: ast.Call) -> Effect:
        if (named := indirect.method_by_name(self.site, call)) is not None:
            return self._find_effect(function, named)
        called, qualified = call.func, self.site.resolve_global(call.func)
        if isinstance(called, ast.Name) and called.id in self.assumed and called.id not in local_names(function.node):
            return Effect()
        callee = self.calls.callee(function, call)
        if callee is not None:
            return widest([self._of_callee(callee, call), *self._of_other_layers(function, call)])
        if qualified is not None:
            return self._of_global(qualified, call)
        if members := layers_called(self.calls, function, call):
            return widest([self._of_callee(each, call) for each in members])
        if not isinstance(called, ast.Attribute):
            found = unknown_call(call)
            return found._replace(shares=(*found.shares, *indirect.read_by(function, called)))
        if is_name(called.value, "self"):
            if called.attr in _REGISTERS:
                return Effect(keeps=aliasing.operands(call))
            held = [self.site.resolve_global(each) for each in self.calls.assigned(function.owner, called.attr)]
            operators = [torch_api.torch_function(name) for name in held]
            if operators and all(operators):
                return widest([aliasing.of_operator(name, call) for name in operators])
            made = self.calls.constructions(function.owner, called.attr)
            layers = [(torch_api.torch_module_class(self.site.resolve_global(each.func)), each) for each in made]
            effects = [aliasing.of_layer(layer, each, call) for layer, each in layers]
            return widest(effects) if made else unknown_call(call)
        given = aliasing.operands(call, called.value)
        kept = called.attr in CONTAINER_METHODS
        return Effect(given, keeps=given) if kept else aliasing.of_operator(called.attr, call, called.value)

    def _of_other_layers(self, function: Definition, call: ast.Call) -> Iterator[Effect]:
        """What layers of torch beside one of the module do: `nn.Sequential(Part(), nn.ReLU(inplace=True))`."""
        held = self.calls.held(function, call)
        values = self.calls.assigned(function.owner, held) if held is not None else []
        for part in (each for value in values for each in walk_in_layers(value) if isinstance(each, ast.Call)):
            layer = torch_api.torch_module_class(self.site.resolve_global(part.func))
            if layer is not None and layer not in _CONTAINERS:
                yield aliasing.of_layer(layer, part, call)

    def _of_global(self, qualified: str, call: ast.Call) -> Effect:
        name = torch_api.torch_function(qualified)
        if name is not None:
            return aliasing.of_operator(name, call)
        if qualified.startswith("builtins."):
            return aliasing.of_builtin(qualified.removeprefix("builtins."), call)
        if qualified in rearrangements.FUNCTIONS:
            return rearrangements.effect_of(qualified, call)
        index = self.site.evaluator.scope.index
        facts = index.function(qualified)
        only_computes = facts is not None and facts.computes
        if only_computes or index.class_facts(qualified) is not None:
            given = aliasing.operands(call)
            return Effect(self._returned_by(qualified, call)) if only_computes else Effect(given, keeps=given)
        return Effect() if qualified.startswith("math.") else unknown_call(call)

    def _returned_by(self, qualified: str, call: ast.Call) -> tuple[ast.expr, ...]:
        """What the result of a function of another file may share memory with."""
        found = function_of(self.site.evaluator.scope.index, qualified)
        if found is None:
            return aliasing.operands(call)
        return ModuleMemory(cast("Site", found[0]), found[1])._of_callee(found[2], call).shares

    def _of_callee(self, callee: Definition, call: ast.Call) -> Effect:
        """What a function of the module does with what it is given."""
        method = isinstance(call.func, ast.Attribute) and call.func.attr == callee.node.name
        given = aliasing.operands(call, owner_of(call))
        written = self._written_parameters(callee)
        arguments = callee.arguments(call)
        handed = arguments.plain
        known, pairs = {id(each) for each in handed.values()}, list(arguments.pairs())
        writes = [each for name, each in pairs if name in written]
        bound = {id(each) for _, each in pairs}
        loose = [each for each in given if id(each) not in bound]
        returned = self._returned_parameters(callee)
        shares = [each for name, each in handed.items() if name in returned]
        if "self" in returned and callee.owner:
            shares.append(call.func.value if method else call.func)  # type: ignore[attr-defined]
        starred = [each for each in aliasing.operands(call) if id(each) not in known]
        return Effect((*shares, *starred), (*writes, *(loose if written else ())), given)

    def _returned_parameters(self, function: Definition) -> set[str]:
        """Parameters, and `self`, with whose tensors the result of a function may share memory."""
        names = parameter_names(function.node)

        def look() -> set[str]:
            given = [part for part in walk_scope(function.node) if isinstance(part, (ast.Return, ast.Yield))]
            found = {
                (part, name) for part in given if part.value is not None for name in self.sources(function, part.value)
            }
            led = self._at_start(function, found) | holders(self, function, {name for _, name in found})
            return {name for name in names if meet({name}, led)}

        return self.remembered("returned parameters", function, look, self._in_recursion(names))

    def _at_start(self, function: Definition, found: Collection[tuple[ast.AST, str]]) -> set[str]:
        """What names, as they are at some nodes, may share memory with where a function starts."""
        blocks, start = blocks_of(self.calls, function), function.node.lineno
        return {
            name
            for part, each in found
            if blocks.runs(part)
            for name in self.origins(function, blocks, blocks.statement_of(part), each, start)
        }

    def _written_at_start(self, function: Definition) -> set[str]:
        """Names, as they are where a function starts, into whose tensors it may write."""
        writes = self.writes(function)
        plain = [(part, name) for part, each in writes if not isinstance(part, SCOPES) for name in each]
        found = self._at_start(function, plain)
        for part, _ in writes:
            if isinstance(part, SCOPES):
                inside = {name for inner in walk_in_layers(part) for name in self.written_by(function, inner)}
                found |= self.connected(function, self.links(function), inside)
        return found

    def _written_parameters(self, function: Definition) -> set[str]:
        """Parameters into whose tensors a function may write."""
        names = parameter_names(function.node) - {"self"}

        def look() -> set[str]:
            found = self._written_at_start(function)
            return {name for name in names if meet({name}, found)}

        return self.remembered("written parameters", function, look, self._in_recursion(names))

    def _in_recursion(self, names: set[str]) -> set[str]:
        """What a function that is being looked at does to its parameters, for those that it calls."""
        return names

    def sequences(self, function: Definition) -> frozenset[str]:
        return self.remembered("sequences", function, lambda: sequences(function))

    def origins(self, function: Definition, blocks: Blocks, statement: ast.stmt, name: str, end: int) -> set[str]:
        """What a name may share memory with where a statement begins, in names that were bound above line `end`."""
        return self._origins(function, blocks, statement, name, end, set())

    def _origins(
        self, function: Definition, blocks: Blocks, statement: ast.stmt, name: str, end: int, seen: set[tuple[int, str]]
    ) -> set[str]:
        if (id(statement), name) in seen:
            return set()
        seen.add((id(statement), name))
        root = name.partition(".")[0]
        bound = self.bound_before(function, blocks, statement, name)
        if bound and all(each is not None and each.lineno <= end for each in bound):
            return {name}
        found = {name} if bound is None or any(each is None or each.lineno <= end for each in bound) else set()
        below = [each for each in bound or () if each is not None and each.lineno > end]
        stores = list(self.bindings(function, name))
        if bound is not None:
            stores = [*below, *(one for one in stores if root not in ("self", name) and one not in below)]
        for each in stores:
            for value in given_to(each, name, self.site.resolve_global):
                for source in self.sources(function, value):
                    found |= self._origins(function, blocks, blocks.statement_of(each), source, end, seen)
        for part, kept, sources in self.filled(function):
            for source in sources if name in kept else ():
                found |= self._origins(function, blocks, blocks.statement_of(part), source, end, seen)
        return found

    def bound_before(
        self, _: Definition, blocks: Blocks, statement: ast.stmt, name: str
    ) -> list[ast.Assign | None] | None:
        """The assignments of which one bound a name where a statement begins, as `Blocks.bindings_before` has them."""
        return blocks.bindings_before(statement, root) if (root := name.partition(".")[0]) != "self" else None

    def connected(self, function: Definition, links: Sequence[Link], names: Collection[str]) -> set[str]:
        """Names that may share memory with some names by way of assignments."""
        found = set(names)
        apart = [each for each in links if takes_apart(self, function, each[0])]
        links = [each for each in links if each not in apart]
        while True:
            known = len(found)
            for _, targets, values in links:
                if meet(targets, found):
                    found |= values | targets
                if meet(values, found):
                    found |= targets
            if len(found) > known:
                continue
            # What `a, b = x.chunk(2)` binds has memory of `x`, but none in common.
            split = next((each for each in apart if meet(each[1] | each[2], found)), None)
            if split is None:
                return found
            apart.remove(split)
            found |= split[2] if meet(split[1], found) and not meet(split[2], found) else split[1] | split[2]

    def sources(self, function: Definition, node: ast.expr) -> set[str]:
        """What the value of an expression may share memory with."""
        if isinstance(node, ast.Name):
            from_where = indirect.comes_from(self, function, node)
            return {node.id} - {"self"} if from_where is None else self.all_sources(function, from_where)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _VIEWS and node.value.id != "self":
                return {node.value.id}
            if (held := indirect.comes_from(self, function, node.value)) is not None:
                return self.all_sources(function, held)
            name = own_name(self, function, node.value.id)
            return set() if node.attr in aliasing.WITHOUT_MEMORY else {f"{name}.{node.attr}"}
        parts = aliasing.shared_parts(node, lambda call: self.effect(function, call), self.sequences(function))
        own = {"self.?"} if any(is_name(each, "self") for each in parts) else set()
        return own | {name for each in parts for name in self.sources(function, each)}

    def all_sources(self, function: Definition, nodes: Sequence[ast.expr]) -> set[str]:
        """What the values of some expressions may share memory with."""
        return {name for each in nodes for name in self.sources(function, each)}

    def handed_of_module(self, function: Definition, node: ast.Name | ast.Attribute) -> handed_functions.Handed | None:
        """What a function or method of the module writes that is named and not called."""
        callee = self.calls.callee(function, ast.Call(node, [], []))
        if callee is None:
            return None
        own = self._written_by_method(function, ast.Call(node, [], [])) if callee.owner else set()
        written = self._written_parameters(callee)
        given = frozenset(number for number, name in enumerate(callee.parameters) if name in written)
        return handed_functions.Handed(frozenset(own), frozenset(), bool(given), given) if own or given else None
