"""The one function of another file of the project that a call runs."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, assigned_outside
from graphmend_codemod.rules.proofs.memory.other_callers import OtherFile, function_of


class Elsewhere(NamedTuple):
    """A function at the top level of another file, and the calls there."""

    function: Definition
    sure: SureCalls
    file: OtherFile


def function_of_project(site: Site, call: ast.Call) -> str | None:
    """The qualified name of a function of the project that a call runs; None where it runs anything else."""
    qualified = site.resolve_global(call.func)
    return qualified if qualified is not None and site.evaluator.scope.index.function(qualified) is not None else None


def function_elsewhere(site: Site, qualified: str) -> Elsewhere | None:
    """A function of another file, plain or under `torch.jit.script` (`SureCalls.reached`); None for others.

    A name that its module binds again is no function of the project. NeedsProject where another file may have put
    something else in its place, and not all files were read.
    """
    index = site.evaluator.scope.index
    if index.writers(qualified.rpartition(".")[2]):
        return None
    found = function_of(index, qualified)
    if found is None or found[0].evaluator.scope.module == site.evaluator.scope.module:
        return None
    file, calls, function = found
    sure = SureCalls(calls, assigned_outside(calls.tree))
    return Elsewhere(function, sure, file) if sure.runs_as_written(function, scripted=True) else None
