"""Calls of a recorded run of which a header can tell that a call is like them."""

from __future__ import annotations

from collections.abc import Sequence

from graphmend_codemod.rules.proofs.outlining.recorded.moments import ARRAY, TENSOR, Fact, Observation

CALLS_NEEDED = 2
_ASKED = frozenset({TENSOR, ARRAY, "list", "tuple", "constant", "int", "float", "str", "dtype", "device"})
"""Kinds that a header asks for first, so that nothing else of it meets a value of another kind."""


def of_one_kind(seen: Sequence[Observation], names: Sequence[str]) -> list[Observation]:
    """The largest part of the calls in which each name held a value of one kind, tensors of as many dimensions.

    All of them where no part has calls enough, and where one of the kinds cannot be asked for: objects, and names that
    are not bound, which a header must not spell.
    """
    groups: dict[tuple[object, ...], list[Observation]] = {}
    for each in seen:
        groups.setdefault(tuple(_kind(each.before.held.get(name)) for name in names), []).append(each)
    differing = (set(kinds) for kinds in zip(*groups, strict=True))
    asked = all(kind[0] in _ASKED for kinds in differing if len(kinds) > 1 for kind in kinds)
    largest = max(groups.values(), key=len)
    return largest if asked and len(largest) >= CALLS_NEEDED else list(seen)


def _kind(fact: Fact | None) -> tuple[object, ...]:
    if fact is None:
        return ("",)
    return (fact[0], len(fact[2])) if fact[0] in (TENSOR, ARRAY) else (fact[0],)
