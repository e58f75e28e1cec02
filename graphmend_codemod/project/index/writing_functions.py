"""Functions that look as if they wrote a tensor in place, by their text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from graphmend_codemod.project.index.definitions import Module

_WRITES = re.compile(r"[a-z0-9]_\(|\]\s*[-+*/]?=[^=]|[-+*/]=|\bout=|\bi(?:add|mul|sub)\(|inplace=True")


def writes_and_names(
    module: Module, names: Collection[str], reached: Collection[int], text: Callable[[Module], str]
) -> bool:
    """True where what calls something by one of these names, or a function that leads there, writes in place.

    It may also call what writes in its module. Only the functions that begin on one of the `reached` lines count.
    """
    calls = {
        each: {ref[:-2].rpartition(".")[2] for ref in each.refs if ref[-1] == ")"}
        for each in module.summary.functions
        if each.line in reached
    }
    leading = [each for each, called in calls.items() if not called.isdisjoint(names)]
    if not leading:
        return False
    for one in leading:
        leading += [each for each, called in calls.items() if one.name in called and each not in leading]
    lines = text(module).split("\n")
    writing = {each for each in calls if _WRITES.search("\n".join(lines[each.line : each.end_line]))}
    last = {each.name for each in writing}
    return any(each in writing or not calls[each].isdisjoint(last) for each in leading)
