"""Random programs made small: statements are dropped, or stand in for what is around them, while a difference stays."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.random_checks import Difference, How, Verdict, judged
from benchmarks.random_grammar import RandomProgram


def shrunk(verdict: Verdict, how: How, tries: int) -> Verdict:
    """A smaller program with a difference of the same kind, found within `tries`."""
    kinds = {_signature(one) for one in verdict.faults}
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in smaller(verdict.program):
            tries -= 1
            found = judged(candidate, how)
            if kinds & {_signature(one) for one in found.faults}:
                verdict, progress = found, True
                break
            if tries <= 0:
                break
    return verdict


def _signature(one: Difference) -> str:
    """The kind of a difference, with the exception, which must not become that of a name that is gone."""
    return one.kind + "".join(re.findall(r"\b\w+(?:Error|Exception)\b", one.text)[:1])


def smaller(program: RandomProgram) -> Iterator[RandomProgram]:
    """The programs that lack one call or one statement, or have a block in the place of what is around it."""
    for number in range(len(program.inputs)):
        if len(program.inputs) > 1:
            yield replace(program, inputs=program.inputs[:number] + program.inputs[number + 1 :])
    tree = ast.parse(program.text)
    for function, path in _functions(tree):
        for edited in _edited(function.body):
            changed = copy.deepcopy(tree)
            _at(changed, path).body = edited
            text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
            if text != program.text and _compiles(text):
                yield replace(program, text=text)


def _compiles(text: str) -> bool:
    """False for a program that has lost the loop around its `break`."""
    try:
        compile(text, "model.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, tuple[int, ...]]]:
    """Functions of the module and methods of its classes, but constructors, the last one first."""
    for number, node in reversed([*enumerate(tree.body)]):
        if isinstance(node, ast.FunctionDef):
            yield node, (number,)
        elif isinstance(node, ast.ClassDef):
            for place, part in reversed([*enumerate(node.body)]):
                if isinstance(part, ast.FunctionDef) and part.name != "__init__":
                    yield part, (number, place)


def _at(tree: ast.Module, path: tuple[int, ...]) -> ast.FunctionDef:
    node: ast.AST = tree
    for number in path:
        node = node.body[number]  # type: ignore[attr-defined]
    assert isinstance(node, ast.FunctionDef)
    return node


def _edited(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The block without one statement, with the blocks of one in its place, or with one of its blocks edited."""
    for number, statement in enumerate(body):
        if len(body) > 1 and not isinstance(statement, ast.Return):
            yield [*body[:number], *body[number + 1 :]]
    for number, statement in enumerate(body):
        for name in ("body", "orelse"):
            block: list[ast.stmt] = getattr(statement, name, None) or []
            if block and not isinstance(statement, ast.FunctionDef):
                yield [*body[:number], *block, *body[number + 1 :]]
        if getattr(statement, "orelse", None) and not isinstance(statement, ast.Try):
            kept = copy.copy(statement)
            kept.orelse = []  # type: ignore[attr-defined]
            yield [*body[:number], kept, *body[number + 1 :]]
        for name in ("body", "orelse"):
            for smaller in _edited(getattr(statement, name, None) or []):
                kept = copy.copy(statement)
                setattr(kept, name, smaller)
                yield [*body[:number], kept, *body[number + 1 :]]
