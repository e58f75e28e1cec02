"""Uses of a number that is read out of a tensor: whether the 0-dim tensor serves in each of them (GM401)."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.analysis.patterns import is_name, other_side
from graphmend_codemod.analysis.scope import of_kind, own_parts, parents_in, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import whole_number
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.kept.kept_operands import (
    is_whole,
    keeps_dtype,
    takes_whole,
)
from graphmend_codemod.rules.proofs.numbers.kept.tested_numbers import is_small, tested


class Use(NamedTuple):
    """Why a name cannot hold the tensor in place of its number, if so.

    `wide` where it has to be one of float64, `fact` is a condition under which the tensor is of integers.
    """

    reason: str | None = None
    wide: bool = False
    fact: str = ""


def use_of(site: Site, value: ast.expr, name: str, tensor: ast.expr) -> Use:
    """How a function uses a name that holds the number `value` of a tensor."""
    if (reason := _why_not_followed(site, name)) is not None:
        return Use(reason)
    held = site.value(tensor)._replace(grad=False, roots=frozenset(), hint=False)
    found = tested(site, name, held, is_whole(site, tensor))
    kept, alone = keeps_dtype(site, value, tensor), found.reads == _reads(site, name)
    if alone and not kept and number_read(site, value, INTEGER_CAST) is not None:
        fact, found = whole_number(site, value, tensor), tested(site, name, held, True)
        if fact and found.exact and found.reads == _reads(site, name):
            return Use(fact=fact)
        return Use(f"`{speculation.short(value)}` changes the number")
    if not (kept or alone):
        return Use(f"`{speculation.short(value)}` changes the number")
    if alone:
        return Use(wide=not (kept and found.exact))
    return Use(_misused(site, name, tensor, found.reads if found.exact else frozenset()))


def is_served(site: Site, name: str, held: Value) -> bool:
    """True where other fixes mend all that reads a name of a flag once it holds a tensor."""
    return _why_not_followed(site, name) is None and tested(site, name, held, True).reads == _reads(site, name)


def _why_not_followed(site: Site, name: str) -> str | None:
    reason = why_not_local(site, name, 1)
    return reason if reason is not None or _reads(site, name) else f"`{name}` is never read"


def why_not_local(site: Site, name: str, stores: int) -> str | None:
    """Why a name is not bound in so many places of the function, or may be read by another function."""
    function = site.evaluator.scope.node
    if sum(is_name(each, name) and isinstance(each.ctx, ast.Store) for each in walk_scope(function)) != stores:
        return f"`{name}` is bound in several places"
    return f"`{name}` may be read by another function" if is_seen_elsewhere(function.body, name) else None


def _reads(site: Site, name: str) -> set[int]:
    uses = [each for each in walk_scope(site.evaluator.scope.node) if is_name(each, name)]
    return {id(each) for each in uses if isinstance(each.ctx, ast.Load)}


def _misused(site: Site, name: str, tensor: ast.expr, served: frozenset[int]) -> str | None:
    """The first use of the name that a 0-dim tensor does not serve as well."""
    allowed, reads = set(served), _reads(site, name)
    dtype = site.value(tensor).dtype
    whole, floating = is_whole(site, tensor), site.value(tensor).is_floating
    for place in site.flow.places.values():
        statement = place.statement
        if isinstance(statement, ast.If) and len(statement.body) == 1 and isinstance(statement.body[0], ast.Raise):
            if not statement.orelse:
                allowed |= _compared(statement.test, whole, floating) | {
                    id(part) for part in walk_in_layers(statement.body[0])
                }
        elif isinstance(statement, ast.Assert):
            allowed |= _compared(statement.test, whole, floating)
            allowed |= {id(part) for part in walk_in_layers(statement.msg)} if statement.msg is not None else set()
    for place in site.flow.places.values():
        for part in own_parts(place.statement):
            if not (isinstance(part, ast.Name) and id(part) in reads and id(part) not in allowed):
                continue
            there = site.at(place.statement)
            around = parents_in(place.statement)[id(part)]
            other = None
            if there is not None and isinstance(around, ast.BinOp):
                other = there.value(other_side(around, part))
            if other is None or not isinstance(around, ast.BinOp) or not other.is_tensor:
                return (
                    f"`{name}` is used as a Python number in `{speculation.short(around)}`; "
                    "manually keep it a tensor there"
                )
            if other.dtype != dtype and not (whole and takes_whole(around, other)):
                return f"the other side of `{speculation.short(around)}` may have a different dtype from `{name}`"
            reads.discard(id(part))
    return None if reads <= allowed else f"`{name}` is used in code that torch.compile does not reach"


def _compared(test: ast.expr, whole: bool, floating: bool) -> set[int]:
    """The plain names in comparisons: unless of int64 only with numbers that the dtype holds, as a tensor would."""
    compared = [[part.left, *part.comparators] for part in walk_in_layers(test) if isinstance(part, ast.Compare)]
    return {
        id(side)
        for sides in compared
        for side in of_kind(sides, ast.Name)
        if whole or all(each is side or is_small(each, floating=floating) for each in sides)
    }
