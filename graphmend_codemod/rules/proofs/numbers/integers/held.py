"""Python integers that a tensor holds, as text, with what has to be asked for it; and copies of them that are kept."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_integer, last_name
from graphmend_codemod.rules.framework.reasons import NotProven

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}
AS_SIZE = "_as_size"
"""The helper that makes a size of a number."""


class Held(NamedTuple):
    """What an expression holds as Python integers: `text` says it where the expression stands.

    `depth` is 0 for one number, 1 for a list, 2 for a list of rows. `tensor` tells whether eager mode has a tensor
    there. What is not `sure` may hold something else, for which `exact` asks; `asked` is what the text itself needs.
    `once` is why the text may not be computed beside what it stands for.
    """

    text: str
    depth: int = 0
    tensor: bool = True
    sure: bool = True
    asked: tuple[str, ...] = ()
    once: str | None = None

    def exact(self) -> tuple[str, ...]:
        """The conditions under which all of it are Python integers: a bool is one for `isinstance`."""
        if self.sure:
            return self.asked
        if self.once is not None:
            raise NotProven(self.once)
        if self.depth == 0:
            others = (each for each in self.asked if each != f"{self.text} is not None")
            return (*others, f"type({self.text}) is int")
        inside = "n in" if self.depth == 1 else "row in"
        rows = "" if self.depth == 1 else " for n in row"
        some = (self.text,) if self.text.isidentifier() else ()  # of an empty list, torch makes a floating tensor
        return tuple(dict.fromkeys((*self.asked, *some, f"all(type(n) is int for {inside} {self.text}{rows})")))

    def operand(self, *, first: bool = False) -> str:
        """The text as an operand, also as the `first` of a sum."""
        node = ast.parse(self.text, mode="eval").body
        loose = isinstance(node, (ast.UnaryOp, ast.IfExp)) or (isinstance(node, ast.BinOp) and not first)
        return f"({self.text})" if loose else self.text


class Copy(NamedTuple):
    """The numbers of `tensor`, which a statement makes, under a name of their own, if the conditions hold.

    `readers` are the statements that take them in its place. A copy that stands there already, or is that of another
    tensor, has no text.
    """

    statement: ast.Assign
    tensor: str
    name: str
    wish: str
    text: str
    asked: tuple[str, ...]
    once: str | None
    readers: list[ast.stmt]

    @property
    def is_array(self) -> bool:
        """True for an array of NumPy, in which more can be written than in a tensor."""
        return last_name(getattr(self.statement.value, "func", self.statement)) in {"array", "asarray"}


def added(left: Held, op: ast.operator, right: Held) -> str:
    """The text of arithmetic; `n + 1 - 1` is `n`."""
    inner, sums = ast.parse(left.text, mode="eval").body, (ast.Add, ast.Sub)
    opposite = isinstance(inner, ast.BinOp) and {type(inner.op), type(op)} == {*sums} and is_integer(inner.right)
    if opposite and isinstance(inner, ast.BinOp) and ast.unparse(inner.right) == right.text:
        return ast.unparse(inner.left)
    return f"{left.operand(first=isinstance(op, sums))} {ARITHMETIC[type(op)]} {right.operand()}"
