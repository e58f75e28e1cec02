"""Programs as trees of statements: rendered to source text, and made smaller while they still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Simple:
    """One statement, which may have several lines (the first without indentation)."""

    text: str


@dataclass(frozen=True)
class Clause:
    """A header that ends with a colon, and its block."""

    header: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Compound:
    """A statement with blocks. `whole` statements lose no clause when they are made smaller (`try` needs `except`)."""

    clauses: tuple[Clause, ...]
    whole: bool = False


Statement = Simple | Compound


@dataclass(frozen=True)
class Program:
    """A module: text in front of `forward`'s body, the body, and the calls to make.

    `company` is another file of the same project, empty or with a `make()` that returns what is called.
    """

    head: str
    signature: str
    body: tuple[Statement, ...]
    inputs: tuple[str, ...] = field(default=())
    company: str = ""

    @property
    def name(self) -> str:
        """What is called: the class, or what `make()` returns."""
        return "make" if self.company else "Model"

    @property
    def text(self) -> str:
        """The module's source."""
        return f"{self.head}\n    {self.signature}\n{render(self.body, 2)}"


def render(body: Sequence[Statement], depth: int) -> str:
    """Source text of a block; a block without statements gets `pass`."""
    indent = "    " * depth
    lines: list[str] = []
    for statement in body or (Simple("pass"),):
        if isinstance(statement, Simple):
            lines += [indent + line if line else "" for line in statement.text.split("\n")]
            continue
        for clause in statement.clauses:
            lines += [indent + line for line in clause.header.split("\n")]
            lines.append(render(clause.body, depth + 1).rstrip("\n"))
    return "\n".join(lines) + "\n"


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 300) -> Program:
    """A smaller program that still fails, found by dropping calls, statements, clauses and nesting, within `tries`."""
    left = tries
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(program):
            if not left:
                return program
            left -= 1
            if fails(smaller):
                program, progress = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    if len(program.inputs) > 1:
        for position in range(len(program.inputs)):
            yield replace(program, inputs=program.inputs[:position] + program.inputs[position + 1 :])
    if program.company:
        yield replace(program, company="")
    for body in _smaller_blocks(program.body):
        yield replace(program, body=body)


def _smaller_blocks(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for position in range(len(body)):
        yield body[:position] + body[position + 1 :]
    for position, statement in enumerate(body):
        if not isinstance(statement, Compound):
            continue
        before, after = body[:position], body[position + 1 :]
        for clause in statement.clauses:
            yield before + clause.body + after
        if not statement.whole:
            for last in range(1, len(statement.clauses)):
                kept = statement.clauses[:last] + statement.clauses[last + 1 :]
                yield (*before, replace(statement, clauses=kept), *after)
        for number, clause in enumerate(statement.clauses):
            for smaller in _smaller_blocks(clause.body):
                clauses = list(statement.clauses)
                clauses[number] = replace(clause, body=smaller)
                yield (*before, replace(statement, clauses=tuple(clauses)), *after)
