"""Which assignment certainly gave a name its value before a statement, by the blocks around the two."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from graphmend_codemod.analysis.scope import FunctionNode, walk_scope

_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a function."""

    function: FunctionNode

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
                if binds(each, name):
                    return each if isinstance(each, ast.Assign) else None
            if isinstance(around, (ast.For, ast.AsyncFor, ast.While)) and binds(around, name):
                return None
            node = around
        return None

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after this one in its block."""
        _, block, position = self._above[statement]
        return block[position + 1 :]

    def in_loop(self, statement: ast.stmt) -> bool:
        """True when the statement stands in a loop."""
        node: ast.AST = statement
        while node in self._above:
            node = self._above[node][0]
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                return True
        return False

    def exclude(self, one: ast.stmt, other: ast.stmt) -> bool:
        """True when the two stand in different branches of one `if`."""
        first, second = self._branches(one), self._branches(other)
        return any(id(second.get(around, block)) != id(block) for around, block in first.items())

    def _branches(self, statement: ast.stmt) -> dict[ast.AST, list[ast.stmt]]:
        found: dict[ast.AST, list[ast.stmt]] = {}
        node: ast.AST = statement
        while node in self._above:
            around, block, _ = self._above[node]
            if isinstance(around, ast.If):
                found[around] = block
            node = around
        return found

    def statement_of(self, part: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node of the function."""
        line = part.lineno  # type: ignore[attr-defined]
        around = [each for each in self._above if each.lineno <= line <= each.end_lineno]  # type: ignore[attr-defined]
        holding = [each for each in around if any(part is inner for inner in _own(each))]
        return min(holding, key=lambda each: each.end_lineno - each.lineno)  # type: ignore[attr-defined,return-value]


def _own(node: ast.AST) -> list[ast.AST]:
    return [node, *walk_scope(node)]


def binds(node: ast.AST, name: str) -> bool:
    """True when a statement may give a name another value, or take it."""
    return any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load) for part in _own(node)
    )
