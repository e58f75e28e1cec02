"""Tensors that come into a graph and are written in it, while a gradient needs what was computed of them before.

torch 2.13 keeps such a tensor itself for the backward pass, and computes anew from what was written: with
`y = x * self.scale.exp()` above and `self.scale.mul_(0.9)` below, `x` gets the gradient of the next call, and with the
two in the other order that of a scale multiplied twice. In graphs of their own, the backward pass raises an error in
the first case and is right in the second. So a fix that joins them is for code without gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, TypeVar

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.aliasing import Effect
from graphmend_codemod.analysis.callgraph import Definition, Key, calls_in
from graphmend_codemod.analysis.patterns import is_attribute, is_name
from graphmend_codemod.analysis.scope import SCOPES, dotted, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.given_writes import (
    HELD,
    SHARING,
    STATISTICS,
    elements_read,
    writes_by_word,
    writes_given,
)
from graphmend_codemod.rules.proofs.memory.module_memory import Link, ModuleMemory
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, blocks_of
from graphmend_codemod.rules.proofs.untraced.evidence import registered

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_KEEP_ELEMENTS = frozenset({"requires_grad_", "detach_", "share_memory_", "rename_"})
"""What changes a tensor in place, and none of its elements."""
_ELEMENTS = frozenset({"items", "values"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
T = TypeVar("T")


class _Access(NamedTuple):
    """Names, as they are where a function starts, whose memory a statement reads or writes, or a call in it does."""

    statement: ast.stmt
    names: frozenset[str]
    line: int
    call: ast.Call | None = None


def spoiled(site: Site, *, whole: bool = False) -> str | None:
    """What comes from outside, is read before the site or there, and is written in place there or after it; if any.

    Looks at the function of the site and at those of its module that lead to it. With `whole`, the function is one
    operator: what it reads it keeps no graph for, and all that it writes is written at its calls.
    """
    scope, at = site.evaluator.scope, site.place.statement
    if site.no_grad:
        return None
    if not writes_given(site.source.text):
        return None  # most files: in the others each function is looked at
    calls = calls_in(site.source.text)
    function = calls.at(scope.node.lineno) or Definition(site.function, scope.node)
    same = (each for each in walk_scope(function.node) if isinstance(each, ast.stmt))
    found = next((each for each in same if (each.lineno, each.col_offset) == (at.lineno, at.col_offset)), None)
    return None if found is None else _Joined(_Certain(site, calls)).spoiled(function, found, whole)


class _Certain(ModuleMemory):
    """What functions certainly do: calls that nothing is known of share and write nothing."""

    def remembered(self, question: str, about: Hashable, answer: Callable[[], T]) -> T:
        """Apart from what functions may do."""
        return super().remembered(f"certain {question}", about, answer)

    def filled(self, function: Definition) -> list[Link]:
        """Nothing: `y[mask] = x` may be a list that has `x` from there on, and mostly is a tensor."""
        del function
        return []

    def _find_effect(self, function: Definition, call: ast.Call) -> Effect:
        called, owner = call.func, getattr(call.func, "value", None)
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        asked = (
            name.endswith("_")
            or name in SHARING
            or name in STATISTICS
            or name in _ELEMENTS
            or is_name(owner, "self")
            or any(writes_by_word(each) for each in call.keywords)
        )
        if not asked and self.calls.callee(function, call) is None:
            return Effect()  # most calls
        found = super()._find_effect(function, call)
        if name in _KEEP_ELEMENTS:
            return found._replace(writes=())
        if name in STATISTICS and not is_name(owner, "self"):  # a layer of this name changes its own statistics
            return found._replace(writes=tuple(call.args[1:3]) or found.writes)
        if not found.known and name.endswith("_") and not name.endswith("__"):
            given = aliasing.operands(call)[:1]  # `torch._foreach_mul_(tensors, 0.5)`
            return Effect(given, given)
        return found if found.known else Effect()

    def sources(self, function: Definition, node: ast.expr) -> set[str]:
        """The same, with what the name of an attribute and an own list of tensors lead to."""
        if isinstance(node, ast.Call) and is_name(next(iter(node.args), None), "self"):
            name = node.args[1] if len(node.args) > 1 else None
            if is_name(node.func, "getattr") and isinstance(name, ast.Constant) and isinstance(name.value, str):
                return {f"self.{name.value}"}
        if isinstance(node, ast.Call) and is_attribute(node.func, "self") and node.func.attr in HELD:
            return {f"self.{each}" for each in self._buffers(function)}
        found = super().sources(function, node)
        own = (name.partition(".")[2] for name in found if name.startswith("self.") and function.owner)
        return found.union(*(self._listed(function.owner, each) for each in own))

    def bound_before(
        self, function: Definition, blocks: Blocks, statement: ast.stmt, name: str
    ) -> list[ast.Assign | None] | None:
        """The same, also of an attribute of the instance that no other method than a constructor binds."""
        root, dot, attribute = name.partition(".")
        if root != "self" or not dot or not function.owner:
            return super().bound_before(function, blocks, statement, name)
        made = [each.node for each in self.calls.definitions.values() if each.node.name == "__init__"]
        places = [range(each.lineno, (each.end_lineno or 0) + 1) for each in (*made, function.node)]
        stores = self.calls.assigned(function.owner, attribute)
        alone = all(_is_in(places, each.lineno) for each in stores)
        return blocks.bindings_before(statement, name) if stores and alone else None

    def _listed(self, owner: str, attribute: str) -> set[str]:
        """The attributes that a class puts into a list or dict: `self.scales = [self.first, self.second]`."""
        values = [
            each for each in self.calls.assigned(owner, attribute) if isinstance(each, (ast.List, ast.Tuple, ast.Dict))
        ]
        return {
            text for each in values for part in ast.walk(each) if is_attribute(part, "self") and (text := dotted(part))
        }

    def _buffers(self, function: Definition) -> frozenset[str]:
        return registered(self.site.source.text, function.node.lineno)

    def _of_callee(self, callee: Definition, call: ast.Call) -> Effect:
        return super()._of_callee(callee, call)._replace(shares=())

    def _returned_parameters(self, function: Definition) -> set[str]:
        del function
        return set()

    def _written_by_method(self, function: Definition, call: ast.Call) -> set[str]:
        return set() if self.calls.callee(function, call) is None else super()._written_by_method(function, call)

    def _written(self, function: Definition, node: ast.AST) -> set[str]:
        certain = isinstance(node, ast.Call) or self._is_tensor_written(function, node)
        return super()._written(function, node) if certain else set()

    def _is_tensor_written(self, function: Definition, node: ast.AST) -> bool:
        """False for numbers that are counted up, and for what is put into lists and dicts."""
        if isinstance(node, ast.AugAssign):
            number = isinstance(node.value, ast.Constant) or not isinstance(node.op, _OPERATORS)
            place = isinstance(node.target, ast.Subscript) and not self._is_tensor_written(function, node.target)
            python = self.site.value(node.target).is_python or number or place
            return self._is_tensor(function, node.target) or not python
        if isinstance(node, ast.Subscript):
            place = isinstance(node.slice, (ast.Name, ast.Attribute, ast.Constant))
            return not place or self._is_tensor(function, node.value) or self.site.value(node.slice).is_tensor
        return True

    def _is_tensor(self, function: Definition, node: ast.expr) -> bool:
        """True for what the dataflow takes for a tensor, and for buffers of the class around a function."""
        return self.site.value(node).is_tensor or (is_attribute(node, "self") and node.attr in self._buffers(function))


class _Around(NamedTuple):
    """Names that are read and written above a statement, or in it, and below."""

    read: Collection[str] = frozenset()
    written: Collection[str] = frozenset()
    read_below: Collection[str] = frozenset()
    written_below: Collection[str] = frozenset()


class _Joined:
    """What one graph would read and write that two had."""

    def __init__(self, memory: _Certain) -> None:
        self._memory = memory
        self._seen: set[Key] = set()

    def spoiled(self, function: Definition, at: ast.stmt, whole: bool) -> str | None:
        """What is read and written around a statement of a function, or around the calls that lead there."""
        if not any(self._written_in(each) for each in self._leading_to(function)):
            return None  # most functions: what they read is not worth looking up
        if whole:
            return self._above(function, _Around(written_below=_all(self._after(function, at, function.node.lineno))))
        every, own = self._after(function, at, 0), range(at.lineno, (at.end_lineno or 0) + 1)
        apart_from_it = [each for each in every if each.line not in own]  # what a fix itself writes, its rule knows
        loops = self._loops_around(function, at)
        above = [each for each in apart_from_it if each.line < own.start or _is_in(loops, each.line)]
        below = self._after(function, at, at.lineno)
        read = self._used(function, at) if every else []
        later = self._below(function, at) if above else []
        lasting = [each for each in above if not _repeats(function, each.statement)]
        for one, other in (*product(read, below), *product(later, lasting), *_given_on(function, read, above)):
            found = self._common(function, one.names, other.names)
            if found is not None and not self._apart(function, one.statement, other.statement):
                return found
        return self._above(function, _Around(_all(self._used(function, at)), _all(lasting), _all(later), _all(below)))

    def _above(self, function: Definition, around: _Around) -> str | None:
        """The same around the calls of a function that itself reads and writes this; most write nothing."""
        key = (function.qualname, function.node.lineno)
        if key in self._seen:
            return None
        self._seen.add(key)
        for caller, call in self._memory.calls.possible_callers(function):
            blocks = blocks_of(self._memory.calls, caller)
            if not blocks.runs(call):
                continue
            at = blocks.statement_of(call)
            inner = [self._at_call(function, caller, call, each) for each in around]
            first, last = at.lineno, at.end_lineno or 0
            read = [each for each in self._before(caller, at) if each.call is not call]
            written = [each for each in self._after(caller, at, 0) if each.line < first]
            read_below = [each for each in self._below(caller, at) if each.call is not call]
            accesses = (read, written, read_below, self._after(caller, at, last + 1))
            there = _Around(*(names.union(_all(some)) for names, some in zip(inner, accesses, strict=True)))
            found = self._common(caller, there.read, there.written_below)
            found = found or self._common(caller, there.read_below, there.written) or self._above(caller, there)
            if found is not None:
                return found
        return None

    def _below(self, function: Definition, at: ast.stmt) -> list[_Access]:
        """What is read below a statement, or in a loop around it."""
        loops, last = self._loops_around(function, at), at.end_lineno or 0
        found = [each for each in self._read_in(function) if each.line > last or _is_in(loops, each.line)]
        return self._run_with(function, at, found)

    def _common(self, function: Definition, read: Collection[str], written: Collection[str]) -> str | None:
        """The first of the names read that is written, or an attribute of what is, and comes from outside."""
        both = sorted(one for one in read for other in written if f"{one}.".startswith(f"{other}."))
        return next((name for name in both if self._is_given(function, name, frozenset())), None)

    def _is_given(self, function: Definition, name: str, seen: frozenset[Key]) -> bool:
        """True for what an instance holds, and for parameters that no caller in the module gives a new tensor."""
        key = (function.qualname, function.node.lineno)
        callers = self._memory.calls.possible_callers(function) if name.partition(".")[0] != "self" else ()
        return not callers or any(
            self._is_given(caller, each, seen | {key})
            for caller, call in callers
            if key not in seen and blocks_of(self._memory.calls, caller).runs(call)
            for each in self._at_call(function, caller, call, {name})
        )

    def _used(self, function: Definition, at: ast.stmt) -> list[_Access]:
        """What is read above a statement or in it; a statement that binds no name computes only what it writes."""
        inside = {id(part) for part in ast.walk(at)}
        binds = isinstance(at, (ast.Return, ast.AugAssign)) or any(
            isinstance(part, ast.Return) or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            for part in ast.walk(at)
        )
        return [each for each in self._before(function, at) if binds or id(each.statement) not in inside]

    def _before(self, function: Definition, at: ast.stmt) -> list[_Access]:
        """What is read above the end of a statement, or in a loop around it."""
        loops, last = self._loops_around(function, at), at.end_lineno or 0
        found = [each for each in self._read_in(function) if each.line <= last or _is_in(loops, each.line)]
        return self._run_with(function, at, found)

    def _after(self, function: Definition, at: ast.stmt, first: int) -> list[_Access]:
        """What is written from a line on, or in a loop around a statement."""
        loops = self._loops_around(function, at)
        found = [each for each in self._written_in(function) if each.line >= first or _is_in(loops, each.line)]
        return self._run_with(function, at, found)

    def _leading_to(self, function: Definition) -> list[Definition]:
        """The function and those of its module that call it, directly or not."""
        found = [function]
        for each in found:
            found += [one for one, _ in self._memory.calls.possible_callers(each) if one not in found]
        return found

    def _loops_around(self, function: Definition, at: ast.stmt) -> list[range]:
        """The lines of the loops that hold a statement: what is below it there comes before it in the next round."""
        loops = self._memory.remembered("loops", function, lambda: list(_loops(function)))
        return [each for each in loops if at.lineno in each]

    def _run_with(self, function: Definition, at: ast.stmt, accesses: Sequence[_Access]) -> list[_Access]:
        """Without those that no call runs which runs the statement."""
        return [each for each in accesses if not self._apart(function, each.statement, at)]

    def _apart(self, function: Definition, one: ast.stmt, other: ast.stmt) -> bool:
        """True where no call runs both: branches of one `if`, or one that ends with `return` and what follows it."""
        blocks = blocks_of(self._memory.calls, function)
        if blocks.exclude(one, other):
            return not _is_in(self._loops_around(function, one), other.lineno)
        return blocks.returns_before(one, other) or blocks.returns_before(other, one)

    def _read_in(self, function: Definition) -> list[_Access]:
        return self._memory.remembered("reads", function, lambda: list(self._reads(function)))

    def _written_in(self, function: Definition) -> list[_Access]:
        return self._memory.remembered("writes outside", function, lambda: list(self._writes(function)))

    def _reads(self, function: Definition) -> Iterator[_Access]:
        memory, blocks = self._memory, blocks_of(self._memory.calls, function)
        for part in (each for statement in function.node.body for each in elements_read(statement)):
            if blocks.runs(part):
                yield self._access(function, part, memory.sources(function, part))
        for call in (each for each in walk_scope(function.node) if isinstance(each, ast.Call) and blocks.runs(each)):
            callee = memory.calls.callee(function, call)
            if callee is not None and callee.owner:
                inner = memory.remembered("attributes", callee, partial(self._attributes, callee))
                names = self._at_call(callee, function, call, inner)
                yield _Access(blocks.statement_of(call), names, call.lineno, call)

    def _attributes(self, function: Definition) -> set[str]:
        """The attributes of its instance that a method reads, in the method itself."""
        parts = (each for statement in function.node.body for each in elements_read(statement))
        return {text for part in parts if (text := dotted(part) or "").startswith("self.")}

    def _writes(self, function: Definition) -> Iterator[_Access]:
        runs = blocks_of(self._memory.calls, function).runs
        for part, names in self._memory.writes(function):
            if isinstance(part, (ast.expr, ast.stmt)) and not isinstance(part, SCOPES) and runs(part):
                access = self._access(function, part, names)
                if access.names:
                    yield access

    def _access(self, function: Definition, part: ast.expr | ast.stmt, names: Collection[str]) -> _Access:
        """What some names lead to outside of the function, where `part` runs."""
        memory, blocks = self._memory, blocks_of(self._memory.calls, function)
        statement, start = blocks.statement_of(part), function.node.lineno
        found = {root for name in names for root in memory.origins(function, blocks, statement, name, start)}
        arguments = function.node.args
        given = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        outside = {name for name in found if name.partition(".")[0] in given and name != "self"}
        return _Access(statement, frozenset(outside), part.lineno)

    def _at_call(
        self, function: Definition, caller: Definition, call: ast.Call, names: Collection[str]
    ) -> frozenset[str]:
        """Names that a function starts with as its caller spells what they hold, where the caller starts."""
        method = isinstance(call.func, ast.Attribute) and call.func.attr == function.node.name
        owner = dotted(call.func.value if method else call.func)  # type: ignore[attr-defined]
        given, found = function.arguments(call), set[str]()
        for name in names:
            root, dot, rest = name.partition(".")
            if root == "self" and function.owner:
                found |= {f"{owner}{dot}{rest}"} if owner is not None else set()
            elif root in given:
                found |= self._access(caller, call, self._memory.sources(caller, given[root])).names
        return frozenset(found)


def _given_on(
    function: Definition, read: Sequence[_Access], written: Sequence[_Access]
) -> Iterator[tuple[_Access, _Access]]:
    """What is read and written above; not by one statement that gives nothing on, such as `self.mean.mul_(0.9)`."""
    for one, other in product(read, written):
        if one.statement is other.statement and isinstance(one.statement, (ast.Expr, ast.AugAssign)):
            continue
        if one.line <= other.line or not _repeats(function, other.statement):
            yield one, other


def _repeats(function: Definition, statement: ast.stmt) -> bool:
    """True for `x[mask] = 0`: computed once more of what was written, it gives the same to what reads it below."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Subscript) or not isinstance(statement.value, ast.Constant):  # type: ignore[attr-defined]
        return False
    root, todo, seen = (dotted(target.value) or "").partition(".")[0], [target.slice], set[str]()
    bound = [each for each in walk_scope(function.node) if isinstance(each, ast.Assign)]
    while todo:
        names = {(dotted(each) or "").partition(".")[0] for each in elements_read(todo.pop())} - seen
        if root in names:
            return False
        seen |= names
        todo += [each.value for each in bound for one in each.targets if isinstance(one, ast.Name) and one.id in names]
    return bool(root)


def _loops(function: Definition) -> Iterator[range]:
    """The lines of each loop of a function."""
    for each in walk_scope(function.node):
        if isinstance(each, _LOOPS):
            yield range(each.lineno, (each.end_lineno or 0) + 1)


def _is_in(loops: Collection[range], line: int) -> bool:
    return any(line in each for each in loops)


def _all(accesses: Collection[_Access]) -> set[str]:
    return {name for each in accesses for name in each.names}
