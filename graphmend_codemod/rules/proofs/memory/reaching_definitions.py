"""Which assignment certainly gave a name its value before a statement, by the blocks around the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_not, stores_name
from graphmend_codemod.analysis.scope import FunctionNode, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven

_BLOCKS = ("body", "orelse", "finalbody")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Blocks:
    """The blocks of a function."""

    def __init__(self, function: FunctionNode) -> None:
        self.function = function

    @cached_property
    def _above(self) -> dict[ast.AST, tuple[ast.AST, list[ast.stmt], int]]:
        """For each statement the one around it, the block that holds it, and its place there."""
        found: dict[ast.AST, tuple[ast.AST, list[ast.stmt], int]] = {}
        for node in [self.function, *walk_scope(self.function)]:
            for name in _BLOCKS:
                block = getattr(node, name, None)
                if isinstance(block, list):
                    found.update((each, (node, block, position)) for position, each in enumerate(block))
        return found

    def binding_before(self, statement: ast.stmt, name: str) -> ast.Assign | None:
        """The assignment whose value `name` certainly holds where `statement` begins; None if that is unclear."""
        node: ast.AST = statement
        while node in self._above:
            around, block, position = self._above[node]
            for each in reversed(block[:position]):
                if name in self._bound_in(each):
                    return each if isinstance(each, ast.Assign) else None
            if self._is_left(around, block, name):
                return None
            node = around
        return None

    def bindings_before(self, statement: ast.stmt, name: str) -> list[ast.Assign | None] | None:
        """The assignments of which one gave `name` its value where `statement` begins; None if that is unclear.

        A None among them is what the name held before the first of them. `x += y` gives no other memory, and is left
        out.
        """
        found: list[ast.Assign | None] = []
        node: ast.AST = statement
        if isinstance(statement, ast.While) and name in self._bound_in(statement):
            return None  # its test is asked again behind each round
        while node in self._above:
            around, block, position = self._above[node]
            last = self._last(block[:position], name)
            if last is None:
                return None
            found += last
            if None not in last:
                return [each for each in found if each is not None]
            rounds = self._of_rounds(around, name) if isinstance(around, _LOOPS) else []
            if rounds is None or self._is_bound_between(around, block, name):
                return None
            found += rounds
            node = around
        return found if node is self.function else None

    def _last(self, block: list[ast.stmt], name: str) -> list[ast.Assign | None] | None:
        """The assignments that may be the last to bind a name in a block; with None where there may be none."""
        found: list[ast.Assign | None] = []
        for each in reversed(block):
            if isinstance(each, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                return found
            if name not in self._bound_in(each):
                continue
            if isinstance(each, ast.Assign):
                return [*found, each]
            if isinstance(each, ast.AugAssign) and name not in self._bound_in(each.value):
                continue
            if isinstance(each, _LOOPS):
                rounds = self._of_rounds(each, name)
                if rounds is None:
                    return None
                found += rounds
                continue
            if not isinstance(each, ast.If) or name in self._bound_in(each.test):
                return None
            arms = [self._last(arm, name) for arm in (each.body, each.orelse)]
            if arms[0] is None or arms[1] is None:
                return None
            found += [one for arm in arms for one in arm or () if one is not None]
            if all(None not in (arm or ()) for arm in arms):
                return found
        return [*found, None]

    def _of_rounds(self, loop: ast.For | ast.AsyncFor | ast.While, name: str) -> list[ast.Assign | None] | None:
        """The assignments that may be the last to bind a name in the rounds of a loop, of which there may be none.

        None if that is unclear: `break` and `continue` end a round elsewhere.
        """
        if name not in self._bound_in(loop):
            return []
        head = [loop.test] if isinstance(loop, ast.While) else [loop.target, loop.iter]
        ends = any(isinstance(part, (ast.Break, ast.Continue)) for part in walk_scope(loop))
        if ends or any(name in self._bound_in(each) for each in (*head, *loop.orelse)):
            return None
        last = self._last(loop.body, name)
        return None if last is None else [each for each in last if each is not None]

    def _is_left(self, around: ast.AST, block: list[ast.stmt], name: str) -> bool:
        """True where a loop, another part of a `try`, a `with` or a test may bind a name before a block begins."""
        looped = isinstance(around, _LOOPS) and name in self._bound_in(around)
        return looped or self._is_bound_between(around, block, name)

    def _is_bound_between(self, around: ast.AST, block: list[ast.stmt], name: str) -> bool:
        """The same, without what the rounds of a loop bind."""
        heads = [getattr(around, "test", None), *(item.optional_vars for item in getattr(around, "items", ()))]
        if any(each is not None and name in self._bound_in(each) for each in heads):
            return True
        return isinstance(around, ast.Try) and block is not around.body and name in self._bound_in(around)

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after this one in its block."""
        _, block, position = self._above[statement]
        return block[position + 1 :]

    def preceding(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements before this one in its block."""
        _, block, position = self._above[statement]
        return block[:position]

    def in_loop(self, statement: ast.stmt) -> bool:
        """True when the statement stands in a loop."""
        return self._is_inside(statement, _LOOPS)

    def _is_inside(self, statement: ast.stmt, kinds: tuple[type[ast.stmt], ...]) -> bool:
        node: ast.AST = statement
        while node in self._above:
            node = self._above[node][0]
            if isinstance(node, kinds):
                return True
        return False

    def exclude(self, one: ast.stmt, other: ast.stmt) -> bool:
        """True when the two stand in different branches of one `if`."""
        return next(self._between(one, other), None) is not None

    def exclude_by_mode(self, one: ast.stmt, other: ast.stmt) -> bool:
        """True when they do for `self.training`, which is the same in each round of a loop."""
        return any(is_attribute(_positive(each.test), "self", "training") for each in self._between(one, other))

    def exclude_by_kind(self, one: ast.stmt, other: ast.stmt) -> bool:
        """True when they do for the kind of what a loop goes through: `hasattr(part.weight, "scales")`."""
        tests = (_positive(each.test) for each in self._between(one, other))
        return any(isinstance(each, ast.Call) and is_name(each.func, "hasattr") for each in tests)

    def _between(self, one: ast.stmt, other: ast.stmt) -> Iterator[ast.If]:
        """The `if` statements of which the two stand in different branches."""
        first, second = self._branches(one), self._branches(other)
        return (around for around, block in first.items() if id(second.get(around, block)) != id(block))

    def returns_before(self, one: ast.stmt, other: ast.stmt) -> bool:
        """True where each way from one statement, in a branch, leads to a `return` or `raise` before the other one."""
        branches = self._branches(other)
        for around, block in self._branches(one).items():
            ends = isinstance(block[-1], (ast.Return, ast.Raise))
            if ends and around not in branches and other.lineno > (block[-1].end_lineno or 0):
                # What it raises may be caught there, or something runs after it has returned.
                return not self._is_inside(one, (ast.Try, ast.With, ast.AsyncWith))
        return False

    def _branches(self, statement: ast.stmt) -> dict[ast.If, list[ast.stmt]]:
        found: dict[ast.If, list[ast.stmt]] = {}
        node: ast.AST = statement
        while node in self._above:
            around, block, _ = self._above[node]
            if isinstance(around, ast.If):
                found[around] = block
            node = around
        return found

    def runs(self, part: ast.AST) -> bool:
        """False for decorators and defaults: they run where the function is defined, not where it is called."""
        return part in self._holding

    def statement_of(self, part: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node of the function; NotProven in a lambda, which may run elsewhere."""
        if part not in self._holding:
            raise NotProven(f"cannot infer when `{short(part)}` runs, which is in a lambda or an inner function")
        return self._holding[part]

    @cached_property
    def _holding(self) -> dict[ast.AST, ast.stmt]:
        """The innermost statement around each node; the outer one of two on the same lines."""
        found: dict[ast.AST, ast.stmt] = {}
        for statement in self._above:
            assert isinstance(statement, ast.stmt)
            first, last = statement.lineno, statement.end_lineno or 0
            for part in [statement, *walk_scope(statement)]:
                known = found.get(part)
                smaller = known is None or last - first < (known.end_lineno or 0) - known.lineno
                if smaller and first <= getattr(part, "lineno", 0) <= last:
                    found[part] = statement
        return found

    @cached_property
    def _known_names(self) -> dict[ast.AST, frozenset[str]]:
        return {}

    def _bound_in(self, node: ast.AST) -> frozenset[str]:
        """The names to which `binds` applies, and `self.x`: statements are asked about again and again."""
        if node not in self._known_names:
            self._known_names[node] = frozenset(
                part.id if isinstance(part, ast.Name) else f"self.{part.attr}"
                for part in [node, *walk_scope(node)]
                if (isinstance(part, ast.Name) or is_attribute(part, "self")) and not isinstance(part.ctx, ast.Load)
            )
        return self._known_names[node]


def _positive(test: ast.expr) -> ast.expr:
    while is_not(test):
        test = test.operand
    return test


def blocks_of(calls: ModuleCalls, function: Definition) -> Blocks:
    """The blocks of a function of the module: rules ask about the same few again and again."""
    return calls.remembered("blocks", function.node, lambda: Blocks(function.node))


def binds(node: ast.AST, name: str) -> bool:
    """True when a statement may give a name another value, or take it."""
    return any(stores_name(part, name) for part in [node, *walk_scope(node)])
