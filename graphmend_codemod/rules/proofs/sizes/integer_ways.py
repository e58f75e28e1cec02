"""What is found on the way of integers from the tensors that keep them to the sizes that are made of them."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field


class NumberKind(enum.Enum):
    """What a name holds while the compile path runs."""

    SIZE = "size"  # a Python number in eager mode as well
    NUMBER = "number"  # an integer, a tensor in eager mode
    EITHER = "either"  # one of these two
    QUOTIENT = "quotient"  # a float, a floating tensor in eager mode
    SEVERAL = "several"  # a tuple of sizes and numbers
    MIXED = "mixed"  # one of these or something else, depending on the way


Env = dict[str, NumberKind]
INTEGERS = frozenset({NumberKind.SIZE, NumberKind.NUMBER, NumberKind.EITHER})
HELD = frozenset({NumberKind.NUMBER, NumberKind.EITHER})
HANDED = frozenset({NumberKind.NUMBER, NumberKind.EITHER, NumberKind.SEVERAL})


@dataclass(frozen=True)
class Quotient:
    """`numerator / denominator` of integers, as nodes; `statement` computes it."""

    statement: ast.stmt
    numerator: ast.expr
    denominator: ast.expr


@dataclass
class Way:
    """What was found: statements with the text that takes the place of parts of them, and what must hold for it.

    `blocks` are the lists of statements that were read, and `sinks` the statements that make a size of a number.
    `rounded` has the statement that made the quotient by the one that rounds it. `calls` are the callees in the calls
    that take a number from a method of `called`; methods of `handed` are given one.
    """

    written: dict[int, tuple[ast.stmt, dict[int, tuple[ast.expr, str]]]] = field(default_factory=dict)
    quotients: dict[int, Quotient] = field(default_factory=dict)
    blocks: list[list[ast.stmt]] = field(default_factory=list)
    sinks: list[tuple[str, ast.stmt]] = field(default_factory=list)
    rounded: dict[int, ast.stmt] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    def add(self, other: Way) -> None:
        """Everything that another way found as well."""
        self.written |= other.written
        self.quotients |= other.quotients
        self.rounded |= other.rounded
        self.blocks += [each for each in other.blocks if each not in self.blocks]
        self.sinks += [each for each in other.sinks if each not in self.sinks]
        self.calls |= other.calls
        self.called |= other.called
        self.handed |= other.handed
        self.names |= other.names
        self.reasons += other.reasons
