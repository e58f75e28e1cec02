"""Whether a context manager may keep an exception from going further, by what it enters itself as well."""

from __future__ import annotations

from graphmend_codemod.project.index.definitions import Definitions, Module
from graphmend_codemod.project.summary.context_managers import LEAVES, PASSES_ON, SWALLOWS, THROUGH
from graphmend_codemod.project.summary.records import FunctionSummary

_SUPPRESS = frozenset({"contextlib.suppress", "contextlib.ExitStack", "contextlib.AsyncExitStack"})


def manager_swallows(index: Definitions, qualified: str, seen: frozenset[str] = frozenset()) -> bool | None:
    """True for a function or class that makes a context manager which may do so; None where it is not known."""
    if qualified in _SUPPRESS:
        return True
    known = index.function_summary(qualified)
    if known is not None:
        return qualified not in seen and function_swallows(index, *known, seen | {qualified})
    left = [_left(index, qualified, name, seen) for name in LEAVES if index.find_method(qualified, name) is not None]
    return True if True in left else None if None in left or not left else False


def _left(index: Definitions, qualified: str, name: str, seen: frozenset[str]) -> bool | None:
    """The same of a class's `__exit__` and of the bases that it passes on to; None where these are not known."""
    for owner in index.linear(qualified):
        method = index.own_method(owner, name)
        if method is None:
            continue
        if function_swallows(index, *method, seen | {qualified}):
            return True
        if PASSES_ON not in method[1].returned:
            return False
    return None


def function_swallows(
    index: Definitions, module: Module, function: FunctionSummary, seen: frozenset[str] = frozenset()
) -> bool:
    """True for a function whose result, or whose `return` as `__exit__`, may do so."""
    if SWALLOWS in function.returned:
        return True
    for mark in function.returned:
        if mark.startswith(THROUGH):
            found = index.scoped(module, function, mark.removeprefix(THROUGH))
            if found is None or manager_swallows(index, found, seen) is not False:
                return True
    return False
