"""Tests on a number read out of a tensor: whether other fixes mend them once its name holds the tensor (GM401)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_name, is_not, written_number
from graphmend_codemod.analysis.scope import parents_in, walk_in_layers
from graphmend_codemod.analysis.values import BOOL, Value
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.registry import worth_asking
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import OPPOSITES

_LARGEST = 256
"""All integers up to this one are numbers of every floating dtype that torch reduces."""
_HELD = 2**53
"""Up to this one float64 and int64 compare as Python does. Of an integer dtype that cannot hold the other side, torch
compares with what is left of it: `t > -1` is false for uint8."""


class Tested(NamedTuple):
    """The reads of a name in tests that are served; `exact` where a tensor of its own dtype compares as a number."""

    reads: frozenset[int]
    exact: bool


def tested(site: Site, name: str, held: Value, whole: bool) -> Tested:
    """The tests of `if`s and conditional expressions on a name that a rule mends where it holds what `held` says.

    `whole` says that it is an integer.
    """
    reads, exact, mended = set[int](), True, list[ast.AST]()
    for place in site.flow.places.values():
        there = site.at(place.statement)
        for node in _tests(place.statement) if there is not None else ():
            named = [part for part in walk_in_layers(node.test) if is_name(part, name)]
            if there is None or not named:
                continue
            parents = parents_in(node)
            kinds = [_kind(there, parents, part, held, whole) for part in named]
            chained = bool(place.parents) and any(
                place.parents[-1] is each and each.orelse == [node] for each in mended if isinstance(each, ast.If)
            )
            if None in kinds or not (chained or _is_mended(there, node, name, held)):
                continue
            mended.append(node)
            exact = exact and all(kinds)
            reads |= {id(part) for part in named}
    return Tested(frozenset(reads), exact)


def tests_of(site: Site, name: str) -> list[ast.expr]:
    """The tests in which a function reads a name."""
    nodes = [node for place in site.flow.places.values() for node in _tests(place.statement)]
    return [node.test for node in nodes if any(is_name(part, name) for part in walk_in_layers(node.test))]


def _tests(statement: ast.stmt) -> Iterator[ast.If | ast.IfExp | ast.Assert]:
    """The statement, or the conditional expressions in it."""
    if isinstance(statement, (ast.If, ast.Assert)):
        yield statement
    elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return)):
        yield from (part for part in walk_in_layers(statement) if isinstance(part, ast.IfExp))


def _kind(site: Site, parents: Mapping[int, ast.AST], part: ast.AST, held: Value, whole: bool) -> bool | None:
    """True where a tensor decides as its number, False where one of float64 does; None for any other use."""
    above: ast.AST = parents[id(part)]
    if isinstance(above, ast.Compare):
        if len(above.ops) != 1 or type(above.ops[0]) not in OPPOSITES or held.dtype == BOOL:
            return None
        other = above.comparators[0] if above.left is part else above.left
        number = written_number(other)
        small = is_small(other, floating=held.is_floating)
        if number is None or not abs(number) <= _HELD or (whole and not small and type(number) is float):
            return None
        part, above, kind = above, parents[id(above)], whole or small
    else:
        kind = True
    while isinstance(above, ast.BoolOp) or is_not(above):
        part, above = above, parents[id(above)]
    return kind if isinstance(above, (ast.If, ast.IfExp, ast.Assert)) and above.test is part else None


def is_small(node: ast.expr, *, floating: bool) -> bool:
    """True for a literal that every dtype holds, or every `floating` one."""
    number = written_number(node)
    if number is None or not abs(number) <= _LARGEST or number != int(number):
        return False
    return floating or 0 <= number < 128


def _is_mended(site: Site, node: ast.If | ast.IfExp | ast.Assert, name: str, held: Value) -> bool:
    """True where a safe fix takes the place of a test on a tensor of that name, or Dynamo traces it."""
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.BoolOp)  # it becomes `torch._assert_async`
    trial = site.with_env({**site.place.env, name: held}).but(node=node)
    for rule, asked in worth_asking(type(node).__name__, ("test",), {}):
        if asked.candidate == "test" and (asked.when is None or asked.when(node)):
            found = asked.match(trial, node)
            if found is not None and found.edit is not None and rule.safety_of(found) is Safety.SAFE:
                return True
    return False
