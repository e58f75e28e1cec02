"""Where a statement needs a Python number, and has it in a tensor that was made of Python integers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, tree_of
from graphmend_codemod.analysis.patterns import all_given, assigned_pairs, is_name, owner_of
from graphmend_codemod.analysis.scope import dotted, parents_in, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.calls.functions_elsewhere import (
    Elsewhere,
    function_elsewhere,
    function_of_project,
)
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, sure_calls
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.integers.held import AS_SIZE, Held
from graphmend_codemod.rules.proofs.numbers.integers.held_numbers import HeldNumbers
from graphmend_codemod.rules.proofs.numbers.integers.number_loops import iterated
from graphmend_codemod.rules.proofs.numbers.integers.number_uses import NumberUses, sizes_given

_CONSUMES = frozenset(f"builtins.{name}" for name in "all any list max min sum tuple".split())


class NumberRead(NamedTuple):
    """A part of a statement, and what says the same with Python numbers under some conditions.

    `sizes` tells that they are taken as sizes alone. A function of TorchScript that gets a number is `scripted`: it
    takes one only while Dynamo traces. A number that is `handed` on is read by the function that gets it.
    """

    node: ast.expr
    text: str
    asked: tuple[str, ...]
    sizes: bool = False
    scripted: bool = False
    handed: bool = False


class NumberReads:
    """The numbers that one statement reads out of tensors; NotProven where one of them may have to be a tensor."""

    def __init__(self, numbers: HeldNumbers, own: Definition, statement: ast.stmt) -> None:
        self.numbers, self.own, self.statement = numbers, own, statement
        self.site = numbers.site
        self._parents = parents_in(statement)
        self._sure = sure_calls(self.site)
        self.last: ast.AST = statement

    def found(self) -> list[NumberRead]:
        """The outermost ones; NotProven where none of them is known, and one may be."""
        reads: list[NumberRead] = []
        reasons: list[NotProven] = []
        inside: set[int] = set()
        root = self.statement.iter if isinstance(self.statement, ast.For) else self.statement
        parts = [self.statement, *walk_in_layers(root)] if root is not self.statement else walk_in_layers(root)
        for part in parts:
            if isinstance(part, ast.Lambda) or (isinstance(part, ast.GeneratorExp) and not self._is_consumed(part)):
                inside |= {id(each) for each in walk(part)}  # it may run when the names hold something else
            if id(part) in inside:
                continue
            try:
                several = list(self._read(part))
            except NotProven as reason:
                self.last = part if not reasons else self.last
                reasons.append(reason.anew())
                continue
            reads += several
            inside |= {id(each) for read in several for each in walk_in_layers(read.node)}
        if reasons and not reads:
            raise reasons[0].anew()
        return reads

    def _is_consumed(self, node: ast.GeneratorExp) -> bool:
        call = self._parents.get(id(node))
        return isinstance(call, ast.Call) and self.site.resolve(call.func) in _CONSUMES

    def _read(self, part: ast.AST) -> Iterator[NumberRead]:
        if isinstance(part, (ast.For, ast.comprehension)):
            yield from self._loop(part)
        elif isinstance(part, ast.Slice):
            for bound in (part.lower, part.upper):
                held = self.numbers.held(bound, self.statement, 0) if bound is not None else None
                if held is not None and held.tensor and bound is not None:
                    yield NumberRead(bound, held.text, held.exact())
        elif isinstance(part, ast.ListComp):
            yield from self._integers(part)
        elif isinstance(part, ast.Call):
            yield from self._call(part)

    def _call(self, call: ast.Call) -> Iterator[NumberRead]:
        inner: ast.expr | None = number_read(self.site, call, INTEGER_CAST)
        if inner is not None:
            while (below := number_read(self.site, inner, INTEGER_CAST)) is not None:
                inner = below
            held = self.numbers.held(inner, self.statement, 0)
            if held is not None and held.tensor:
                yield self._as_number(call, held)
            elif self._is_size(call) and isinstance(inner, ast.Attribute) and self._is_kept_in_tensor(inner.attr):
                yield NumberRead(call, f"{AS_SIZE}({self.site.text(inner)})", ())
            return
        name, given = self.site.operation(call)
        if name == "tolist" and len(all_given(call)) == 0 and given:
            held = self.numbers.held(given[0], self.statement, 1)
            if held is not None and held.tensor:
                yield self._as_list(call, held)
            return
        callee = self._sure.calls.callee(self.own, call)
        if callee is not None:
            yield from self._handed(call, callee)
            return
        qualified = function_of_project(self.site, call)
        given_names = [each for each in all_given(call) if isinstance(each, ast.Name)] if qualified is not None else []
        held_by_names = [each for each in given_names if self._may_hold(each)]
        # Only then: it may need all files of the project.
        if qualified is not None and held_by_names and (other := function_elsewhere(self.site, qualified)) is not None:
            yield from self._handed_elsewhere(call, other, held_by_names)
            return
        for each in self._sizes_of(call):
            yield from self._size(each)

    def _sizes_of(self, call: ast.AST | None) -> list[ast.expr]:
        """What a function of torch or a method of a tensor takes for sizes: other objects may have such methods."""
        if not isinstance(call, ast.Call):
            return []
        receiver = owner_of(call)
        own = receiver is not None and self.site.value(receiver).instance_of is not None
        other = own or is_name(receiver, self.site.evaluator.scope.self_name)
        named = self.site.resolve(call.func)
        if named == "torch.linspace":  # its ends may be tensors
            return [*call.args[2:], *(word.value for word in call.keywords if word.arg == "steps")]
        return [] if other else sizes_given(call, named)

    def _is_kept_in_tensor(self, attribute: str) -> bool:
        """True where the only class of the module with such an attribute makes a tensor of what it is given."""
        stores = [
            part.value
            for part in walk(tree_of(self.site.source.text))
            for target, _ in assigned_pairs(part)
            if isinstance(part, ast.Assign) and isinstance(target, ast.Attribute) and target.attr == attribute
        ]
        made = stores[0] if len(stores) == 1 and isinstance(stores[0], ast.Call) else None
        return made is not None and isinstance(self.numbers.made_of(made), ast.Name)

    def _is_size(self, node: ast.AST) -> bool:
        """True for what is given as a size, or for sizes."""
        return any(node is each for each in self._sizes_of(self._parents.get(id(node))))

    def _as_number(self, node: ast.expr, held: Held) -> NumberRead:
        if held.sure or not self._is_size(node):
            return NumberRead(node, held.text, held.exact())
        return NumberRead(node, f"{AS_SIZE}({held.text})", held.asked)

    def _as_list(self, node: ast.expr, held: Held) -> NumberRead:
        if not self._is_size(node):
            return NumberRead(node, f"[*{held.text}]", held.exact())
        return self._sizes(node, held)

    def _sizes(self, node: ast.expr, held: Held) -> NumberRead:
        copied = any(held.text == each.name and each.wish for each in self.numbers.copies)
        paired = held.text.isidentifier() and not copied  # a list of sizes: rows would be none
        text = held.text if held.sure or paired else f"[*map({AS_SIZE}, {held.text})]"
        return NumberRead(node, text, held.asked, sizes=True)

    def _size(self, node: ast.expr) -> Iterator[NumberRead]:
        """A size, or several in a tuple: all of these have to be known where one is a tensor."""
        if not isinstance(node, (ast.Tuple, ast.List)):
            read = number_read(self.site, node, INTEGER_CAST) is not None  # found by itself
            held = self.numbers.held(node, self.statement, 0) if not read else None
            # torch takes a 0-dim tensor for a size, and Dynamo knows it where it was made of one number.
            if (
                held is not None
                and held.tensor
                and (held.sure or not any(held.text == each.name for each in self.numbers.copies))
            ):
                yield NumberRead(node, held.text, held.exact())
            return
        parts = {each: self.numbers.held(each, self.statement, 0) for each in node.elts}
        if not any(held is not None and held.tensor for held in parts.values()):
            return
        if None in parts.values():
            raise NotProven(f"`{short(node)}` contains a value that may not be an integer")
        asked = tuple(part for held in parts.values() if held is not None for part in held.exact())
        for each, held in parts.items():
            if held is not None and held.tensor:
                yield NumberRead(each, held.text, asked)

    def _integers(self, node: ast.ListComp) -> Iterator[NumberRead]:
        """`[int(x) for x in shape.tolist()]`, given as sizes, or kept in a name that is used for sizes alone."""
        each, loop = node.elt, node.generators[0]
        read = loop.iter if len(node.generators) == 1 and not loop.ifs else None
        cast = isinstance(each, ast.Call) and dotted(each.func) == "int" and len(each.args) == 1
        if not cast or not isinstance(loop.target, ast.Name) or not is_name(each.args[0], loop.target.id):  # type: ignore[attr-defined]
            return
        if not isinstance(read, ast.Call) or not isinstance(read.func, ast.Attribute) or read.func.attr != "tolist":
            return
        held = self.numbers.held(read.func.value, self.statement, 1)
        if held is None or not held.tensor or held.sure:
            return
        above = self._parents[id(node)]
        target = above.targets[0] if isinstance(above, ast.Assign) else None
        if self._is_size(node) or (isinstance(target, ast.Name) and self._only_sizes(target)):
            yield self._sizes(node, held)

    def _only_sizes(self, target: ast.Name) -> bool:
        parents = parents_in(self.numbers.function)
        named = [part for part in walk(self.numbers.function) if is_name(part, target.id) and part is not target]
        return all(any(each is size for size in self._sizes_of(parents[id(each)])) for each in named)

    # loops, and functions that get the numbers

    def _loop(self, loop: ast.For | ast.comprehension) -> Iterator[NumberRead]:
        """`for height, width in shapes`."""
        for name in (part for part in walk_in_layers(loop.iter) if isinstance(part, ast.Name)):
            resolve = lambda call: self.site.resolve(call.func)  # noqa: E731
            target = iterated(loop.target, loop.iter, name.id, resolve)
            depth = 2 if isinstance(target, (ast.Tuple, ast.List)) else 1
            held = self.numbers.held(name, self.statement, depth) if target is not None else None
            if held is None or not held.tensor or target is None:
                continue
            uses = NumberUses(self._sure, self.site.resolve_global).elements(self.own, self._in_module(target))
            if uses.slices:
                yield NumberRead(name, held.text, (*held.exact(), *uses.conditions(self.site)))

    def _in_module(self, node: ast.expr) -> ast.expr:
        """The same node of the module's tree."""
        span = self.site.span(node)
        return next(
            part
            for part in walk(self.own.node)
            if isinstance(part, type(node)) and isinstance(part, ast.expr) and self.site.span(part) == span
        )

    def _handed(self, call: ast.Call, callee: Definition) -> Iterator[NumberRead]:
        """`f(shapes)`, `f(shapes[0])` and `f((left, right))`, where `f` needs Python numbers."""
        given = [each for each in all_given(call) if isinstance(each, (ast.Name, ast.Subscript, ast.BinOp, ast.Tuple))]
        origins = self.site.flow.origins
        paired = origins.lists.get(callee.key, {}) if origins is not None else {}
        same = {id(each): name for name, each in callee.arguments(call).plain.items()}
        for node in (each for each in given if same.get(id(each), "") not in {"", *paired}):
            if any(self._may_hold(each) for each in (node.elts if isinstance(node, ast.Tuple) else [node])):
                yield from self._given(call, callee, node, same[id(node)])

    def _handed_elsewhere(self, call: ast.Call, other: Elsewhere, given: list[ast.Name]) -> Iterator[NumberRead]:
        """`commons.f(x, shapes)`, where a function of another file takes elements of `shapes` for bounds and sizes."""
        arguments = other.function.arguments(call)
        for node in given:
            parameter = arguments.parameter_of(node)
            if parameter is None:
                continue
            uses = NumberUses(other.sure, other.file.resolve_global).several(other.function, parameter)
            if not uses.slices or (reads := list(self._numbers_of(node, True, uses))) == []:
                continue
            if uses.reason is not None:
                raise NotProven(uses.reason)
            scripted = bool(other.function.node.decorator_list)
            yield from (read._replace(scripted=scripted) for read in reads)

    def _may_hold(self, node: ast.expr) -> bool:
        """A look that costs less than to follow what a function does with it."""
        try:
            found = [self.numbers.held(node, self.statement, depth) for depth in (0, 1, 2)]
        except NotProven:
            return True
        return any(each is not None and each.tensor for each in found)

    def _given(self, call: ast.Call, callee: Definition, node: ast.expr, parameter: str) -> Iterator[NumberRead]:
        for several in (False, True):
            sure = sure_calls(self.site)
            uses = NumberUses(sure, self.site.resolve_global)
            length = len(node.elts) if isinstance(node, ast.Tuple) else None
            if several:
                uses.several(callee, parameter, length)
            elif not isinstance(node, ast.Tuple):
                uses.single(callee, parameter)
            if not uses.slices:
                continue
            if (reads := list(self._numbers_of(node, several, uses))) == []:
                continue
            if uses.reason is not None:
                raise NotProven(uses.reason)
            reached = sure.reached(self.own, call, node, scripted=True)
            if reached is None or reached[0].node is self.own.node:
                raise NotProven(f"`{short(call)}` in `{self.own.qualname}` may need a Tensor")
            yield from (self._asking(sure, callee, read) for read in reads)
            return

    def _numbers_of(self, node: ast.expr, several: bool, uses: NumberUses) -> Iterator[NumberRead]:
        if isinstance(node, ast.Tuple):
            yield from self._size(node)
            return
        held = self.numbers.held(node, self.statement, uses.depth if several else 0)
        if held is not None and held.tensor:
            yield NumberRead(node, held.text, held.exact())

    def _asking(self, sure: SureCalls, callee: Definition, read: NumberRead) -> NumberRead:
        certain = CertainCalls(self.site, sure.calls, self.own)
        certain.follow_all(certain.start(), [self.own], sure.links)
        scripted = any(dotted(each) != "staticmethod" for each in callee.node.decorator_list)
        return read._replace(asked=(*read.asked, *certain.conditions()), scripted=scripted, handed=True)
