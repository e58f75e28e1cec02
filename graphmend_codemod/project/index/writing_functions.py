"""Functions that look as if they wrote a tensor in place, by their text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.summary.records import FunctionSummary

_WRITES = re.compile(
    r"\b([a-z_]\w*)(?:\.\w+|\[[^\]'\"]*\])*?"
    r"(?:\.(?!requires_grad)\w*[a-z0-9]_\(|\[[^\]'\"]*\]\s*[-+*/]?=[^=]|\s*[-+*/]=\s*[^\s\d\"'\[(])"
    r"|\bout=(\w+)|\b(?:foreach_\w+|i(?:add|mul|sub))\(\[?(\w+)"
)
"""What spells that a tensor may be written in place, with the first part of its name; no numbers that are counted."""


def _writes(function: FunctionSummary, lines: Sequence[str]) -> bool:
    """True for a function that seems to write what it is given, or what its instance holds."""
    given = {"self", *function.parameters}
    text = "\n".join(lines[function.line : function.end_line])
    return any(not given.isdisjoint(found.groups()) for found in _WRITES.finditer(text))


def writes_and_names(
    module: Module, names: Collection[str], reached: Iterable[ReachedFunction], text: Callable[[Module], str]
) -> bool:
    """True where what calls something by one of these names, or a function that leads there, writes in place.

    It may also call what writes in its module. Only the functions that Dynamo reaches count.
    """
    lines_reached = {each.line for each in reached}
    calls = {
        each: {ref[:-2].rpartition(".")[2] for ref in each.refs if ref[-1] == ")"}
        for each in module.summary.functions
        if each.line in lines_reached
    }
    leading = [each for each, called in calls.items() if not called.isdisjoint(names)]
    if not leading:
        return False
    for one in leading:
        leading += [each for each, called in calls.items() if one.name in called and each not in leading]
    lines = text(module).split("\n")
    writing = {each for each in calls if _writes(each, lines)}
    last = {each.name for each in writing}
    return any(each in writing or not calls[each].isdisjoint(last) for each in leading)
