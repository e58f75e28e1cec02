"""The end of positions that `torch.arange` counts: `positions[-1] + 1` is the number that it was given.

It is kept in a name beside the tensor, which is None where somebody else gives the positions. A function of the module
that gets the positions gets it as one more argument with a default.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, calls_in
from graphmend_codemod.analysis.patterns import (
    asks_for_none,
    is_integer,
    is_name,
    is_none,
    is_size,
    is_target,
    only_target,
    same,
    same_statement,
    stored_names,
    stores_name,
)
from graphmend_codemod.analysis.scope import FunctionNode, of_kind, parameter_names, walk_scope
from graphmend_codemod.analysis.value_flow import given_for
from graphmend_codemod.core.findings import CompilePath, Original, Replacement
from graphmend_codemod.rules.framework.edits import path_beside
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link, local_names
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory
from graphmend_codemod.rules.proofs.numbers.integers.held import Held
from graphmend_codemod.rules.proofs.numbers.integers.number_loops import is_end

if TYPE_CHECKING:
    from graphmend_codemod.rules.proofs.numbers.integers.held_numbers import HeldNumbers


class _Made(NamedTuple):
    """`positions = torch.arange(end)`, alone or where it is None: `statement` holds all of that."""

    statement: ast.stmt
    assignment: ast.Assign
    end: ast.expr


class CountedEnds:
    """The ends that the reads of one function need; `replacements` keep them and hand them on."""

    def __init__(self, numbers: HeldNumbers, own: Definition) -> None:
        self._site, self._own = numbers.site, own
        self._calls = calls_in(numbers.site.source.text)
        self._memory = SharedMemory(self._site, self._calls)
        self.replacements: dict[ast.stmt, Replacement] = {}

    def end(self, node: ast.BinOp, at: ast.stmt) -> Held | None:
        """What `positions[-1] + 1` is; NotProven where the positions may be written before it is read."""
        if not is_end(node):
            return None
        name = node.left.value.id  # type: ignore[attr-defined]
        kept = self._kept(self._own, name, at)
        if kept is None and name in self._own.parameters and name not in stored_names(walk_scope(self._own.node)):
            kept = self._given(name, at)
        return Held(kept, asked=(f"type({kept}) is int",)) if kept is not None else None

    def _kept(self, function: Definition, name: str, at: ast.stmt) -> str | None:
        """The name in which the end is kept that a name has before a statement; None where nothing there counts."""
        made = self._made(function, name, at)
        if made is None:
            return None
        self._demand_no_write(function, made.statement, name, at)
        kept = f"end_of_{name}"
        there = [each.value for each in function.node.body if is_name(only_target(each), kept)]  # type: ignore[attr-defined]
        if there and (is_none(there[0]) or isinstance(there[0], ast.IfExp)):
            return kept  # it was kept before
        if kept in local_names(function.node) | parameter_names(function.node):
            raise NotProven(f"`{function.qualname}` uses the name `{kept}` for something else")
        text, asked = self._site.text(made.end), self._site.compiling
        if not isinstance(made.statement, ast.If):
            parts = (f"{kept} = {text} if {asked} else None\n", self._site.original(made.statement))
        else:
            first, last = self._site.span(made.statement.body[0]), self._site.span(made.statement.body[-1])
            line: str = f"\n    {kept} = {text}"
            if any(isinstance(each, ast.Name) for each in _summands(made.end)):
                # It may be a tensor, of which eager mode shall not compute a sum more than before.
                line = CompilePath(f"\n    if {asked}:\n        {kept} = {text}", [asked])
            test = self._site.original(made.statement.test)
            parts = (f"{kept} = None\nif ", test, ":\n    ", Original(first.through(last)), line)  # type: ignore[assignment]
        self.replacements[made.statement] = Replacement(self._site.span(made.statement), parts)
        return kept

    def _made(self, function: Definition, name: str, at: ast.stmt) -> _Made | None:
        """The range that a name certainly has before a statement, or where it is None."""
        at = same_statement(function.node, at) or at
        bound = blocks_of(self._calls, function).binding_before(at, name)
        if bound is not None:
            end = self._end_of(bound)
            return _Made(bound, bound, end) if end is not None else None
        for node in function.node.body:
            if not isinstance(node, ast.If) or node.orelse or node.lineno > at.lineno:
                continue
            if not asks_for_none(node.test, (ast.Is,)) or not is_name(node.test.left, name):
                continue
            stores = [part for part in of_kind(walk_scope(function.node), ast.Assign) if is_target(part, name)]
            below = [each for each in stores if each.lineno > node.lineno]
            if len(below) != 1 or below[0] not in node.body or sum(_changes(function.node, name, node.lineno)) > 1:
                return None
            end = self._end_of(below[0])
            return _Made(node, below[0], end) if end is not None and not self._site.is_elif(node) else None
        return None

    def _end_of(self, node: ast.Assign) -> ast.expr | None:
        """`n` for `arange(n)`, `arange(0, n)`, and `arange(a, a + n)`: the last number is one below the end."""
        call = node.value
        if not isinstance(call, ast.Call) or self._site.resolve_global(call.func) != "torch.arange":
            return None
        if not 1 <= len(call.args) <= 2 or any(word.arg not in {"device"} for word in call.keywords):
            return None
        end = call.args[-1]
        counted = len(call.args) == 1 or is_integer(call.args[0])
        if not counted and isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add):
            counted = same(call.args[0], end.left) or same(call.args[0], end.right)
        sizes = any(map(is_size, _summands(end)))
        return end if counted and sizes and all(map(_is_simple, _summands(end))) else None

    def _given(self, name: str, at: ast.stmt) -> str | None:
        """The new parameter for the end of the positions that a parameter holds; None where no caller counts them."""
        parameter = f"end_of_{name}"
        head = ast.Pass(lineno=self._own.node.lineno, col_offset=0, end_lineno=self._own.node.lineno, end_col_offset=0)
        if parameter in self._own.parameters:
            return None
        handed: list[tuple[Definition, ast.Assign, ast.Call, str]] = []
        for caller, call, given in given_for(self._calls, self._own, name):
            statements = (each for each in of_kind(walk_scope(caller.node), ast.Assign) if each.value is call)
            statement = next(statements, None)
            if not isinstance(given, ast.Name) or statement is None or caller.node is self._own.node:
                continue
            if (kept := self._kept(caller, given.id, statement)) is not None:
                handed.append((caller, statement, call, kept))
        if not handed:
            return None
        self._demand_no_write(self._own, head, name, at)
        last = self._last_parameter(parameter)
        self.replacements[head] = Replacement(self._site.span(last), (self._site.original(last), f", {parameter}=None"))
        for caller, statement, call, kept in handed:
            self.replacements[statement] = self._call(caller, statement, call, f"{parameter}={kept}")
        return parameter

    def _call(self, caller: Definition, statement: ast.Assign, call: ast.Call, more: str) -> Replacement:
        site = self._site
        span = site.span(statement)._replace(end_line=call.lineno, end_column=call.col_offset)
        certain = CertainCalls(site, self._calls, caller)
        certain.follow(certain.start(), Link(caller, call, self._own))
        if self._own.owner and f"{certain.start().instance}." in f"{site.text(call.func)}.":
            certain.demand_same_method(certain.start(), self._own)
        texts = [*(site.text(each) for each in (*call.args, *call.keywords)), more]
        here = site.but(place=site.place._replace(statement=statement))
        path = here.call(f"{site.source.segment(span)}{site.text(call.func)}(", texts, deeper=1)
        return path_beside(site, statement, [site.compiling, *certain.conditions()], [path])

    def _last_parameter(self, new: str) -> ast.arg:
        """The parameter behind which a new one can stand."""
        arguments, function = self._own.node.args, self._own
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or not arguments.args:
            raise NotProven(f"`{function.qualname}` has parameters other than plain positional ones")
        if function.node.decorator_list or new in local_names(function.node):
            raise NotProven(f"`{function.qualname}` cannot take another argument")
        if self._calls.is_replaced(function.owner, function.node.name):
            raise NotProven(f"another class replaces `{function.qualname}`")
        return arguments.args[-1]

    def _demand_no_write(self, function: Definition, node: ast.stmt, name: str, reader: ast.stmt) -> None:
        try:
            self._memory.demand_no_write(function, node, {name}, set(), [reader])
        except NotProven as reason:
            raise NotProven(str(reason).replace("the tensor or", f"`{name}` or")) from None


def _changes(function: FunctionNode, name: str, line: int) -> list[bool]:
    return [stores_name(part, name) for part in walk_scope(function) if getattr(part, "lineno", 0) > line]


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]


def _is_simple(node: ast.expr) -> bool:
    """True for names and sizes: nothing that costs or has an effect."""
    if isinstance(node, ast.Call):
        return is_size(node) and all(isinstance(argument, ast.Constant) for argument in node.args)
    return is_integer(node) or is_size(node) or isinstance(node, ast.Name)
