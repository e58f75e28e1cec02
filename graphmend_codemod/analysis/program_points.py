"""Program points: statements with the facts known before them, recorded by the dataflow."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.interpreter import Env


class LeaksUnknown(Exception):
    """A question about who else refers to a tensor, asked of a dataflow that does not follow that."""


class State(NamedTuple):
    """What holds before a statement. `leaked` are tokens of tensors that something else may refer to."""

    env: Env
    leaked: frozenset[str] = frozenset()


class ProgramPoint(NamedTuple):
    """A statement with its surroundings, innermost last. `blocks` pairs each enclosing statement list with the
    position in it of the statement that holds the place. `handled` is true beside a compile path for the statement: it
    is fixed already."""

    statement: ast.stmt
    env: Env
    leaked: frozenset[str]
    parents: tuple[ast.AST, ...]
    blocks: tuple[tuple[Sequence[ast.stmt], int], ...]
    handled: bool

    @property
    def in_try(self) -> bool:
        """True below the body of a `try` that has handlers."""
        return any(isinstance(parent, ast.Try) and parent.handlers for parent in self.parents)

    @property
    def in_handler(self) -> bool:
        """True in an `except` handler, which runs when something was raised."""
        return any(isinstance(parent, ast.ExceptHandler) for parent in self.parents)

    @property
    def in_loop(self) -> bool:
        """True below a loop of the same function."""
        return any(isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) for parent in self.parents)

    def above(self) -> Iterator[ast.stmt]:
        """The statements before this one in its block and in the blocks around it, the nearest first."""
        return (each for body, position in reversed(self.blocks) for each in reversed(body[:position]))

    def below(self, *through: type[ast.stmt]) -> list[ast.stmt]:
        """The statements after this one in its block, and in those around it as long as these kinds hold it."""
        found: list[ast.stmt] = []
        for number, (body, position) in enumerate(reversed(self.blocks)):
            if number and not isinstance(body[position], through):
                break
            found += body[position + 1 :]
        return found
