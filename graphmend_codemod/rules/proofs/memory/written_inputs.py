"""Tensors that come into a graph and are written in it, while a gradient needs what was computed of them before.

torch 2.13 keeps such a tensor itself for the backward pass, and computes anew from what was written: with
`y = x * self.scale.exp()` above and `self.scale.mul_(0.9)` below, `x` gets the gradient of the next call, and with the
two in the other order that of a scale multiplied twice. In graphs of their own, the backward pass raises an error in
the first case and is right in the second. So a fix that joins them is for code without gradients.

What is written the same again, `self.scale[0] = 0.5` above, spoils more: Inductor's backward pass writes it once
more, and uses the memory of the tensor itself for what it computes of it. Only a copy into the whole tensor does not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, cast

from graphmend_codemod.analysis.callgraph import Definition, Key, calls_in
from graphmend_codemod.analysis.patterns import same_statement
from graphmend_codemod.analysis.scope import SCOPES, dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.value_flow import leading_to, possible_callers
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.gradients import unrecorded
from graphmend_codemod.rules.proofs.memory import handed_functions
from graphmend_codemod.rules.proofs.memory.accesses import (
    Access,
    given_on,
    is_in,
    is_made_anew,
    is_of_its_round,
    is_part,
    is_tested,
    loops_of,
    names_of,
    under_clone,
)
from graphmend_codemod.rules.proofs.memory.certain_memory import CertainMemory
from graphmend_codemod.rules.proofs.memory.given_writes import (
    elements_read,
    writes_given,
)
from graphmend_codemod.rules.proofs.memory.held_tensors import held_name
from graphmend_codemod.rules.proofs.memory.instance_writes import hands_instance
from graphmend_codemod.rules.proofs.memory.other_callers import callers
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of


def spoiled(site: Site, *, whole: bool = False, copied: bool = False, repeats: bool = False) -> str | None:
    """What comes from outside, is read before the site or there, and is written in place there or after it; if any.

    Looks at the function of the site and at those of its module that lead to it. With `whole`, the function is one
    operator: what it reads it keeps no graph for, and all that it writes is written at its calls. With `copied`, what
    is only read to `clone()` it does not count: no gradient computes that copy again. With `repeats`, the statement
    writes whole tensors.
    """
    scope, at = site.evaluator.scope, site.place.statement
    if not writes_given(site.source.text) and "." in site.function and not hands_instance(site.source.text):
        return None  # most files: in the others each function is looked at, and what other files call
    calls = calls_in(site.source.text)
    function = calls.at(scope.node.lineno) or Definition(site.function, scope.node)
    found = same_statement(function.node, at)
    if found is None:
        return None
    return _Joined(CertainMemory(site, calls), copied, set()).spoiled(function, found, whole, repeats)


class _Around(NamedTuple):
    """Names that are read and written above a statement, or in it, and below."""

    read: Collection[str] = frozenset()
    written: Collection[str] = frozenset()
    read_below: Collection[str] = frozenset()
    written_below: Collection[str] = frozenset()


class _Joined:
    """What one graph would read and write that two had."""

    def __init__(self, memory: CertainMemory, copied: bool, seen: set[tuple[str, Key]]) -> None:
        self._memory, self._copied, self._seen = memory, copied, seen

    def spoiled(self, function: Definition, at: ast.stmt, whole: bool, repeats: bool) -> str | None:
        """What is read and written around a statement of a function, or around the calls that lead there."""
        leading = leading_to(self._memory.calls, function)
        written = any(self._written_in(each) for each in leading)
        if not written and not any(self._has_callers_elsewhere(each) for each in leading):
            return None  # most functions: what they read is not worth looking up
        if whole:
            written_below = names_of(self._after(function, at, function.node.lineno))
            return self._above(function, _Around(written_below=written_below))
        every, own = self._after(function, at, 0), range(at.lineno, (at.end_lineno or 0) + 1)
        apart_from_it = [each for each in every if each.line not in own]
        # A branch that writes is followed by what reads it in one graph already.
        here = [each for each in every if each.statement is at and isinstance(at, (ast.Assign, ast.AugAssign))]
        here = [each for each in here if not (repeats and self._is_of_others(function, at, each))]
        loops = self._loops_around(function, at)
        above = [each for each in apart_from_it if each.line < own.start or is_in(loops, each.line)]
        below = self._after(function, at, at.lineno)
        # What a fix of the statement does with `x.data = y` in it, it proves itself (GM105).
        below = [each for each in below if each.line not in own or not isinstance(each.part, ast.Attribute)]
        read = self._used(function, at) if every else []
        parts = [each for each in below if is_part(each.part)]
        later = self._below(function, at) if above or here or parts else []
        lasting = [*above, *here]
        pairs = ((one, other) for one, other in product(later, lasting) if not is_made_anew(function, one, other))
        again = ((one, other) for one, other in product(later, parts) if other.line < one.line)
        for one, other in (*product(read, below), *pairs, *again, *given_on(function, read, above)):
            found = self._common(function, one.names, other.names)
            if found is not None and not self._apart(function, other, one.statement):
                return found
        around = map(names_of, (self._used(function, at), lasting, later, below))
        return self._above(function, _Around(*around))

    def _above(self, function: Definition, around: _Around) -> str | None:
        """The same around the calls of a function that itself reads and writes this; most write nothing."""
        key = self._memory.site.evaluator.scope.module, function.key
        if key in self._seen:
            return None
        self._seen.add(key)
        for caller, call in possible_callers(self._memory.calls, function):
            found = self.around(function, caller, call, around)
            if found is not None:
                return found
        asked = (function.key, *map(frozenset, around))
        return self._memory.remembered("elsewhere", asked, lambda: self._above_elsewhere(function, around))

    def _above_elsewhere(self, function: Definition, around: _Around) -> str | None:
        """The same around its calls in other files."""
        for joined, caller, call in self._elsewhere(function):
            found = joined.around(function, caller, call, around)
            if found is not None:
                return f"{found}` in `{caller.qualname}"
        return None

    def _has_callers_elsewhere(self, function: Definition) -> bool:
        """True for a function of the top level that another file calls, in which something is written."""
        scope = self._memory.site.evaluator.scope
        plain = not function.owner and "." not in function.qualname
        return plain and bool(scope.index.writing_callers(f"{scope.module}.{function.qualname}"))

    def _elsewhere(self, function: Definition) -> Iterator[tuple[_Joined, Definition, ast.Call]]:
        """The calls of a function of the top level in other files that write in place."""
        scope = self._memory.site.evaluator.scope
        if not self._has_callers_elsewhere(function):
            return
        for file, calls, found in callers(scope.index, f"{scope.module}.{function.qualname}"):
            memory = CertainMemory(cast("Site", file), calls)  # it asks what such a file can tell
            joined = _Joined(memory, self._copied, self._seen)
            yield from ((joined, caller, call) for caller, call in found)

    def around(self, function: Definition, caller: Definition, call: ast.Call, around: _Around) -> str | None:
        """The same around one call, and around those of its caller."""
        blocks = blocks_of(self._memory.calls, caller)
        if not blocks.runs(call):
            return None
        at = blocks.statement_of(call)
        inner = [self._at_call(function, caller, call, each) for each in around]
        first, last = at.lineno, at.end_lineno or 0
        given = [each for _, each in function.arguments(call).pairs()]  # what of them is read, `around` says
        read = [each for each in self._before(caller, at) if each.call is not call and each.part not in given]
        if isinstance(at, ast.Expr) and at.value is call and unrecorded.is_off(self._memory.site, function.node):
            read = [each for each in read if each.statement is not at]  # the function reads it without gradients
        written = [each for each in self._after(caller, at, 0) if each.line < first]
        read_below = [each for each in self._below(caller, at) if each.call is not call and each.part not in given]
        accesses = (read, written, read_below, self._after(caller, at, last + 1))
        there = _Around(*(names.union(names_of(some)) for names, some in zip(inner, accesses, strict=True)))
        found = self._common(caller, there.read, there.written_below)
        return found or self._common(caller, there.read_below, there.written) or self._above(caller, there)

    def _is_of_others(self, function: Definition, at: ast.stmt, written: Access) -> bool:
        """True where a statement that writes a tensor reads nothing of that tensor."""
        last = at.end_lineno or 0
        read = [each for each in self._read_in(function) if at.lineno <= each.line <= last]
        return not isinstance(at, ast.AugAssign) and self._common(function, names_of(read), written.names) is None

    def _below(self, function: Definition, at: ast.stmt) -> list[Access]:
        """What is read below a statement, or in a loop around it."""
        loops, last = self._loops_around(function, at), at.end_lineno or 0
        found = [each for each in self._read_in(function) if each.line > last or is_in(loops, each.line)]
        return self._run_with(function, at, found)

    def _common(self, function: Definition, read: Collection[str], written: Collection[str]) -> str | None:
        """The first of the names read that is written, or an attribute of what is, and comes from outside."""
        both = sorted(one for one in read for other in written if f"{one}.".startswith(f"{other}."))
        return next((name for name in both if self._is_given(function, name, frozenset())), None)

    def _is_given(self, function: Definition, name: str, seen: frozenset[Key]) -> bool:
        """True for what an instance holds, and for parameters that no caller in the module gives a new tensor."""
        key = function.key
        callers = possible_callers(self._memory.calls, function) if name.partition(".")[0] != "self" else ()
        return not callers or any(
            self._is_given(caller, each, seen | {key})
            for caller, call in callers
            if key not in seen and blocks_of(self._memory.calls, caller).runs(call)
            for each in self._at_call(function, caller, call, {name})
        )

    def _used(self, function: Definition, at: ast.stmt) -> list[Access]:
        """What is read above a statement or in it; a statement that binds no name computes only what it writes."""
        inside = {id(part) for part in ast.walk(at)}
        binds = isinstance(at, (ast.Return, ast.AugAssign)) or any(
            isinstance(part, ast.Return) or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            for part in ast.walk(at)
        )
        return [each for each in self._before(function, at) if binds or id(each.statement) not in inside]

    def _before(self, function: Definition, at: ast.stmt) -> list[Access]:
        """What is read above the end of a statement, or in a loop around it; not by the tests above it."""
        loops, last = self._loops_around(function, at), at.end_lineno or 0
        found = [each for each in self._read_in(function) if each.line <= last or is_in(loops, each.line)]
        # A graph ends where Python asks for the value of a tensor, and no gradient goes through the answer.
        found = [each for each in found if each.line >= at.lineno or not is_tested(each)]
        return self._run_with(function, at, found)

    def _after(self, function: Definition, at: ast.stmt, first: int) -> list[Access]:
        """What is written from a line on, or in a loop around a statement."""
        loops = self._loops_around(function, at)
        found = [each for each in self._written_in(function) if each.line >= first or is_in(loops, each.line)]
        return self._run_with(function, at, found)

    def _loops_around(self, function: Definition, at: ast.stmt) -> list[range]:
        """The lines of the loops that hold a statement: what is below it there comes before it in the next round."""
        loops = self._memory.remembered("loops", function, lambda: list(loops_of(function)))
        return [each for each in loops if at.lineno in each]

    def _run_with(self, function: Definition, at: ast.stmt, accesses: Sequence[Access]) -> list[Access]:
        """Without those that no call runs which runs the statement."""
        return [each for each in accesses if not self._apart(function, each, at)]

    def _apart(self, function: Definition, access: Access, other: ast.stmt) -> bool:
        """True where no call runs both: branches of one `if`, or one that ends with `return` and what follows it.

        Where the kind of what a loop goes through decides, each round may take another branch, and what it reads or
        writes there is of its own part.
        """
        blocks, one = blocks_of(self._memory.calls, function), access.statement
        if blocks.exclude(one, other):
            in_one_loop = is_in(self._loops_around(function, one), other.lineno)
            if not in_one_loop or blocks.exclude_by_mode(one, other):
                return True
            return blocks.exclude_by_kind(one, other) and is_of_its_round(function, access)
        return blocks.returns_before(one, other) or blocks.returns_before(other, one)

    def _read_in(self, function: Definition) -> list[Access]:
        return self._memory.remembered(f"reads {self._copied}", function, lambda: list(self._reads(function)))

    def _written_in(self, function: Definition) -> list[Access]:
        return self._memory.remembered("writes outside", function, lambda: list(self._writes(function)))

    def _reads(self, function: Definition) -> Iterator[Access]:
        memory, blocks = self._memory, blocks_of(self._memory.calls, function)
        off = self._without_gradients(function)
        for part in (each for statement in function.node.body for each in elements_read(statement)):
            if blocks.runs(part) and id(part) not in off:
                yield self._access(function, part, memory.sources(function, part))
        calls = (each for each in walk_scope(function.node) if isinstance(each, ast.Call) and blocks.runs(each))
        for call, names in handed_functions.reads_of(memory, function):
            if blocks.runs(call) and id(call) not in off:
                yield self._access(function, call, names)
        for call in (each for each in calls if id(each) not in off):
            if held_name(call) is not None:
                yield self._access(function, call, memory.sources(function, call))
            callee = memory.calls.callee(function, call)
            if callee is not None and callee.owner:
                inner = memory.remembered(f"attributes {self._copied}", callee, partial(self._attributes, callee))
                names = self._at_call(callee, function, call, inner)
                yield Access(blocks.statement_of(call), names, call.lineno, call)

    def _without_gradients(self, function: Definition) -> set[int]:
        """The ids of what a function does without gradients: nothing that it reads there is needed for one."""
        site = self._memory.site
        copies = set(under_clone(function)) if self._copied else set()
        if site.sets_gradient_mode:
            return copies
        whole = unrecorded.is_off(site, function.node)
        parts = [*walk(function.node)]
        off = {id(each) for each in parts} if whole else unrecorded.under_no_grad(parts, site.resolve_global)
        return copies | off

    def _attributes(self, function: Definition) -> set[str]:
        """The attributes of its instance that a method reads, in the method itself."""
        off = self._without_gradients(function)
        read = (each for statement in function.node.body for each in elements_read(statement))
        parts = (each for each in read if id(each) not in off)
        return {text for part in parts if (text := dotted(part) or "").startswith("self.")}

    def _writes(self, function: Definition) -> Iterator[Access]:
        runs = blocks_of(self._memory.calls, function).runs
        for part, names in self._memory.writes(function):
            if isinstance(part, (ast.expr, ast.stmt)) and not isinstance(part, SCOPES) and runs(part):
                access = self._access(function, part, names)
                if access.names:
                    yield access

    def _access(self, function: Definition, part: ast.expr | ast.stmt, names: Collection[str]) -> Access:
        """What some names lead to outside of the function, where `part` runs."""
        memory, blocks = self._memory, blocks_of(self._memory.calls, function)
        statement, start = blocks.statement_of(part), function.node.lineno
        found = {root for name in names for root in memory.origins(function, blocks, statement, name, start)}
        given = parameter_names(function.node)
        outside = {name for name in found if name.partition(".")[0] in given and name != "self"}
        return Access(statement, frozenset(outside), part.lineno, part=part)

    def _at_call(
        self, function: Definition, caller: Definition, call: ast.Call, names: Collection[str]
    ) -> frozenset[str]:
        """Names that a function starts with as its caller spells what they hold, where the caller starts."""
        method = isinstance(call.func, ast.Attribute) and call.func.attr == function.node.name
        owner = dotted(call.func.value if method else call.func)  # type: ignore[attr-defined]
        given, found = list(function.arguments(call).pairs()), set[str]()
        for name in names:
            root, dot, rest = name.partition(".")
            if root == "self" and function.owner:
                found |= {f"{owner}{dot}{rest}"} if owner is not None else set()
            for value in (each for parameter, each in given if parameter == root):
                found |= self._access(caller, call, self._memory.sources(caller, value)).names
        return frozenset(found)
