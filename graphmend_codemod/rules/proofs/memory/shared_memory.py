"""Which names of a function may share memory, and whether any of it is written below a statement.

A product with ones that is left out, or a sum with zeros, is no copy: what is written into it later is written into
what it was made of. That matters wherever a compile path computes something which eager mode leaves out.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.patterns import (
    all_given,
    all_names,
    binds_alone,
    is_attribute,
    same_statement,
)
from graphmend_codemod.analysis.scope import SCOPES, defaults_of, parameter_names, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import names_holding
from graphmend_codemod.project.index.facts import Home
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names, own_definition
from graphmend_codemod.rules.proofs.memory.absent_functions import called_globals, given_none, global_names
from graphmend_codemod.rules.proofs.memory.call_results import assigned_names, is_operand, is_result
from graphmend_codemod.rules.proofs.memory.calls_elsewhere import Found, calls_of_function
from graphmend_codemod.rules.proofs.memory.identity import asked, marks_of
from graphmend_codemod.rules.proofs.memory.indirect import writing_decorator
from graphmend_codemod.rules.proofs.memory.module_memory import Link, ModuleMemory
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, blocks_of
from graphmend_codemod.rules.proofs.memory.stores import bound_in, meet, overlap

_LAYERS = frozenset("Linear Conv1d Conv2d Conv3d LayerNorm".split())
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITH_PARAMETERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class SharedMemory(ModuleMemory):
    """Looks for writes in the functions of a module.

    With `absent`, functions that only some installations have are left to a compile path that asks whether they are
    None; their names are put there. `assumed` are names of the top level that are taken for None.
    """

    _above: set[tuple[str, Key, bool]] = field(default_factory=set)
    absent: dict[str, None] | None = None
    passed_over: tuple[ast.stmt, ...] = ()
    """Statements of the function whose own writes are no matter; then what callers write is none either."""

    def demand_no_write(
        self,
        function: Definition,
        node: ast.stmt,
        names: set[str],
        replaced: set[str] | None = None,
        readers: Sequence[ast.stmt] = (),
    ) -> None:
        """NotProven where something is written below a statement into the memory of some names.

        `replaced` are those of them that the statement gives another tensor, all if left out: a write through one of
        these alone is a write into that tensor. `readers` are the statements that read the memory, if these are all:
        what is written behind the last of them does not matter.
        """
        try:
            self._demand(function, node, names, replaced, readers)
        except NotProven:
            absent = called_globals(function, self._assigned_by_functions()) if self.absent is not None else None
            if not absent or self.assumed:
                raise
            # Where one of them is None, its call raises, and nothing behind it runs.
            replace(self, assumed=absent)._demand(function, node, names, replaced, readers)
            assert self.absent is not None
            self.absent.update(dict.fromkeys(sorted(absent)))

    def _demand(
        self,
        function: Definition,
        node: ast.stmt,
        names: set[str],
        replaced: set[str] | None,
        readers: Sequence[ast.stmt],
    ) -> None:
        node, blocks = same_statement(function.node, node) or node, blocks_of(self.calls, function)
        if names == replaced and all(self._is_new(function, blocks, node, name) for name in names):
            return
        related = self._related(function, blocks, node, names)
        if self._is_private(function, blocks, node, names if replaced is None else replaced, related):
            return
        end, looped = node.end_lineno or 0, blocks.in_loop(node)
        loops = [each for each in walk_scope(function.node) if isinstance(each, _LOOPS)]
        first = min([end, *(each.lineno for each in loops if each.lineno < end <= (each.end_lineno or 0))])
        last = _last_line(function, loops, readers)
        lasting = self.calls.remembered("lasting", function, lambda: dict(_lasting(function)))
        for part, names_written in self.writes(function):
            if isinstance(part, SCOPES):
                self._demand_no_write_inside(function, part, related)
            line = getattr(part, "lineno", 0)
            runs = first < lasting.get(id(part), line) and line <= last and not self._may_be_absent(function, part)
            runs = runs and not any(each.lineno <= line <= (each.end_lineno or 0) for each in self.passed_over)
            for written in names_written if runs else ():
                statement = blocks.statement_of(part)
                if not looped and blocks.exclude(node, statement):
                    continue
                sources = self.origins(function, blocks, statement, written, end)
                if any(overlap(one, other) for one in sources for other in related):
                    raise NotProven(
                        f"`{short(part)}` in `{function.qualname}` may write in place to the tensor or a view of it"
                    )
        if self.passed_over:
            return
        returned = [part for part in walk_scope(function.node) if isinstance(part, ast.Return) and part.lineno <= last]
        if any(self._hands_out(function, part.value, names, related) for part in returned):
            self.demand_no_write_above(function, known_alone=not self._leads_outside(function, blocks, node, names))

    def _leads_outside(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> bool:
        """False where only these names lead to their memory as a statement begins, and nothing that a caller has."""
        given, same = parameter_names(function.node), self._renamed(function, names)
        for name in names:
            led = self.origins(function, blocks, node, name, function.node.lineno)
            if any(each in given or "." in each for each in led):
                return True
        return any(
            name in same and getattr(part, "lineno", 0) <= node.lineno
            for name, part in self.kept(function)
            if not self._is_earlier(function, blocks, node, name, part)
        )

    def _hands_out(self, function: Definition, value: ast.expr | None, names: set[str], related: set[str]) -> bool:
        """True where a result is one of the names, or a view or attribute that shares their memory."""
        if isinstance(value, (ast.Tuple, ast.List)):
            return any(self._hands_out(function, each, names, related) for each in value.elts)
        if isinstance(value, ast.IfExp):
            return any(self._hands_out(function, each, names, related) for each in (value.body, value.orelse))
        if isinstance(value, ast.Name):
            return value.id in self._renamed(function, names)
        viewing = isinstance(value, (ast.Attribute, ast.Subscript)) or (
            isinstance(value, ast.Call) and self.effect(function, value).known
        )
        return value is not None and viewing and meet(self.sources(function, value), related)

    def _assigned_by_functions(self) -> frozenset[str]:
        """Names of the module's top level that functions assign: a library is looked for when a layer is made."""
        return self.remembered("assigned globals", None, lambda: global_names(tree_of(self.site.source.text)))

    def _may_be_absent(self, function: Definition, part: ast.AST) -> bool:
        """True for a call of a function of the module's top level that is None where a library is not installed."""
        name = part.func.id if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) else None
        if self.absent is None or name is None or name in local_names(function.node):
            return False
        if name not in self.remembered("absent", None, lambda: given_none(tree_of(self.site.source.text))):
            return False
        self.absent[name] = None
        return True

    def _is_private(
        self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str], related: set[str]
    ) -> bool:
        """True where nothing but these names leads to their memory below a statement: nobody can tell who writes it."""
        local = {name for _, bound in self.stores(function) for name in bound if "." not in name}
        local -= parameter_names(function.node)
        if blocks.in_loop(node) or not related <= local:
            return False
        if any(isinstance(part, SCOPES) for part in walk_scope(function.node)):
            return False
        end = node.end_lineno or 0
        # What is kept below is what these names hold then, and nothing else is read there.
        kept = {
            f"{name}@" if self._is_earlier(function, blocks, node, name, part) else name
            for name, part in self.kept(function)
            if getattr(part, "lineno", 0) <= end
        }
        return kept.isdisjoint(related) and not any(
            isinstance(part, ast.Name) and part.id in related - names and part.lineno > end
            for part in walk_scope(function.node)
        )

    def _is_new(self, function: Definition, blocks: Blocks, node: ast.stmt, name: str) -> bool:
        """True where only a name leads to its memory: all that may have bound it makes new memory, which goes nowhere.

        The statement gives the name another tensor, so nobody can write into the old one below.
        """
        bound = blocks.bindings_before(node, name)
        if not bound or blocks.in_loop(node) or any(isinstance(part, SCOPES) for part in walk_scope(function.node)):
            return False
        for each in bound:
            if each is None or not binds_alone(each, name) or blocks.in_loop(each):
                return False
            if self.sources(function, each.value):
                return False
        first, end = min(each.lineno for each in bound if each is not None), node.end_lineno or 0
        between = range(first, end + 1)
        return not any(
            name in values and getattr(part, "lineno", 0) in between
            for part, _, values in (
                *self.links(function),
                *((part, set(), {kept}) for kept, part in self.kept(function)),
            )
        )

    def _demand_no_write_inside(self, function: Definition, scope: ast.AST, related: set[str]) -> None:
        """The same for a function inside the function, whenever it runs."""
        related = related | {
            each.arg
            for each, default in (defaults_of(scope) if isinstance(scope, _WITH_PARAMETERS) else [])
            if any(overlap(one, other) for one in self.sources(function, default) for other in related)
        }
        for part in walk_in_layers(scope):
            for written in self.written_by(function, part):
                if any(overlap(written, other) for other in related):
                    raise NotProven(
                        f"`{short(part)}` in `{function.qualname}` may write in place to the tensor or a view of it"
                    )

    def _related(self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str]) -> set[str]:
        """Names, with one attribute, that may share memory with some names where a statement begins."""
        found = set(names)
        looped = blocks.in_loop(node)
        links = [
            each
            for each in self.links(function)
            if looped or (each[0].lineno < node.lineno and not blocks.exclude(blocks.statement_of(each[0]), node))
        ]
        return self.connected(function, self._of_values(function, blocks, node, names, links), found)

    def _of_values(
        self, function: Definition, blocks: Blocks, node: ast.stmt, names: set[str], links: Sequence[Link]
    ) -> list[Link]:
        """The links with another spelling for what some names held before the values that they have at a statement.

        `hidden = layer(hidden)` leaves the old tensor to whoever else has it.
        """
        found = list(links)
        for name in sorted(names):
            given = self._values_of(function, blocks, node, name)
            if given is None:
                continue
            earlier = {name: f"{name}@"}  # no name of Python
            for place, (part, targets, values) in enumerate(found):
                if name not in targets | values:
                    continue
                older = self._is_earlier(function, blocks, node, name, part)
                other = part not in given if _binds_name(part, name) else older
                bound = {earlier.get(each, each) for each in targets} if other else targets
                read = {earlier.get(each, each) for each in values} if older else values
                found[place] = (part, bound, read)
        return found

    def _is_earlier(self, function: Definition, blocks: Blocks, node: ast.stmt, name: str, part: ast.AST) -> bool:
        """True where a name in `part` held another value than it does where the statement `node` begins."""
        given = self._values_of(function, blocks, node, name)
        bound = blocks.bindings_before(blocks.statement_of(part), name) if given is not None else None
        return given is not None and bound is not None and None not in bound and given.isdisjoint(bound)

    def _values_of(self, function: Definition, blocks: Blocks, node: ast.stmt, name: str) -> set[ast.AST | None] | None:
        """The assignments whose values `name` may share memory with by its own earlier values; None if unclear."""
        todo: list[ast.stmt] = [node]
        found: set[ast.AST | None] = set()
        while todo:
            bound = blocks.bindings_before(todo.pop(), name)
            if bound is None or not all(each is not None and _binds_name(each, name) for each in bound):
                return None
            fresh = [each for each in bound if each is not None and each not in found]
            found.update(fresh)
            todo += [each for each in fresh if name in self.sources(function, each.value)]
        return found

    def _renamed(self, function: Definition, names: set[str]) -> frozenset[str]:
        """Some names with those that a plain `z = y` gives what they hold, wherever it stands."""
        pairs = (
            (target.id, part.value.id)
            for part, _ in self.stores(function)
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name)
            for target in part.targets
            if isinstance(target, ast.Name)
        )
        return names_holding(pairs, lambda name, found: name in found, names)

    def demand_no_write_above(self, function: Definition, *, known_alone: bool = False) -> None:
        """The same for callers of a function that returns the product, or what it would have multiplied.

        With `known_alone`, only those of the same file are asked that certainly run it.
        """
        scope = self.site.evaluator.scope
        if (decorator := writing_decorator(self.site, function)) is not None:
            raise NotProven(f"`{decorator}` around `{function.qualname}` may write in place to what it returns")
        key = scope.module, function.key, known_alone
        if not self._above.isdisjoint({key, (scope.module, function.key, False)}):
            return
        self._above.add(key)
        known = self.calls.callers(function)
        for caller, call in known:
            self._demand_no_write_around(caller, call)
        seen = {(scope.module, call.lineno, call.col_offset) for _, call in known}
        for file, calls, caller, call in () if known_alone else self._possible_calls(function):
            if (file.evaluator.scope.module, call.lineno, call.col_offset) not in seen:
                site = cast("Site", file)  # it asks what such a file can tell
                SharedMemory(site, calls, _above=self._above)._demand_no_write_around(caller, call)

    def may_return_given(self, function: Definition) -> bool:
        """False for a function that keeps nothing and returns nothing of what it gets."""
        return bool(self._returned_parameters(function) or self.kept(function))

    def _possible_calls(self, function: Definition) -> Iterator[Found]:
        """The calls of a function in all files; those of a method that returns what it gets are hard to find."""
        scope = self.site.evaluator.scope
        return calls_of_function(scope.index, Home(scope.module, self.site.source.text), function)

    def _demand_no_write_around(self, caller: Definition, call: ast.Call) -> None:
        """The same for one call."""
        statement, targets = blocks_of(self.calls, caller).statement_of(call), assigned_names(caller, call)
        names = all_names(call) - {"self"}
        marks = marks_of(self.site.source.text)
        if (told := asked(caller.node, partial(is_result, call, targets), marks, self.calls)) is not None:
            raise NotProven(f"`{told}` in `{caller.qualname}` tells its result from another tensor")
        if any(each.writes for each in self._of_other_layers(caller, call)):
            raise NotProven(f"a layer in `{short(call)}` works in place")
        new = not any(self.sources(caller, each) for each in all_given(call))  # nothing that a caller has leads there
        if targets:
            self.demand_no_write(caller, statement, names | targets)
        elif isinstance(statement, ast.Return) and statement.value is call:
            self.demand_no_write(caller, statement, names)
            self.demand_no_write_above(caller, known_alone=new)
        elif not new and not is_operand(statement, call):
            raise NotProven(f"the result of `{short(call)}` is not assigned to a variable")


def _binds_name(part: ast.AST, name: str) -> bool:
    """True for an assignment whose one target is the name, or has it among others."""
    return isinstance(part, ast.Assign) and len(part.targets) == 1 and name in bound_in(part)


def demand_no_write(
    site: Site, node: ast.stmt, names: set[str], replaced: set[str] | None = None, readers: Sequence[ast.stmt] = ()
) -> None:
    """`SharedMemory.demand_no_write` in the function of a site."""
    memory = SharedMemory(site, calls_in(site.source.text))
    memory.demand_no_write(own_definition(site), node, names, replaced, readers)


def demand_no_write_by_callers(site: Site) -> None:
    """NotProven where a caller may write into a result of the function of a site, or asks which object it is.

    For a function that always returns a new tensor under torch.compile.
    """
    if calls_in(site.source.text).at(site.evaluator.scope.node.lineno) is None:
        raise NotProven("it is in a nested function, and the outer function may write into what it returns")
    memory, function = SharedMemory(site, calls_in(site.source.text)), own_definition(site)
    try:
        memory.demand_no_write_above(function, known_alone=not memory.may_return_given(function))
    except NotProven as reason:
        raise NotProven(f"`torch.where` would copy a tensor that is written in place later: {reason}") from None


def _last_line(function: Definition, loops: Sequence[ast.stmt], readers: Sequence[ast.stmt]) -> float:
    """The last line that may run before the last of some statements; no line where others run in between."""
    suspended = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
    if not readers or any(isinstance(part, suspended) for part in walk_scope(function.node)):
        return math.inf
    ends = {each.end_lineno or 0 for each in readers}
    around = (
        each.end_lineno or 0 for each in loops if any(each.lineno <= end <= (each.end_lineno or 0) for end in ends)
    )
    return max(*ends, *around, 0)


def _lasting(function: Definition) -> Iterator[tuple[int, int]]:
    """The ids of what runs later than where it stands, and the last line: generators, and what a `with` ends."""
    for node in walk_scope(function.node):
        if isinstance(node, ast.GeneratorExp):
            yield from ((id(part), function.node.end_lineno or 0) for part in walk(node))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield id(node), (node.end_lineno or 0) + 1
            yield from (
                (id(part), (node.end_lineno or 0) + 1) for item in node.items for part in walk(item.context_expr)
            )


def is_layer(site: Site, calls: ModuleCalls, function: Definition, call: ast.Call) -> bool:
    """True for a call of a layer of torch that makes a new floating tensor."""
    called = call.func
    if not is_attribute(called, "self"):
        return False
    made = calls.constructions(function.owner, called.attr)
    return bool(made) and all(torch_api.torch_module_class(site.resolve_global(each.func)) in _LAYERS for each in made)
