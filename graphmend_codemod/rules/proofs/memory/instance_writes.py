"""What a function does with the tensors of an instance that it is given: `bump(self)`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, cast

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.rules.proofs.memory.other_callers import OtherFile
from graphmend_codemod.rules.proofs.untraced.other_files import calls_of, defined

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_HANDED = re.compile(r"[\w\])]\((?:[^()\n]*[,=]\s*)?self\s*[,)]")


def hands_instance(text: str) -> bool:
    """False for a file in which no call is given an instance."""
    return _HANDED.search(text) is not None


def written_of_instance(memory: ModuleMemory, function: Definition, call: ast.Call) -> set[str]:
    """The attributes of its instance into whose tensors a function writes that a call gives the instance."""
    if not any(is_name(each, "self") for each in aliasing.operands(call)):
        return set()
    callee = memory.calls.callee(function, call)
    if callee is None and not isinstance(memory.site, OtherFile):
        scope = memory.site.evaluator.scope
        qualified = memory.site.resolve_global(call.func)
        found = defined(scope.index, qualified) if qualified is not None else None
        calls = calls_of(found[0].text) if found is not None else None
        if found is not None and calls is not None:
            memory, callee = type(memory)(cast("Site", OtherFile(found[0], scope.index)), calls), found[1]
    if callee is None:
        return set()
    given = [name for name, each in callee.arguments(call).items() if is_name(each, "self")]
    return {f"self{each.removeprefix(root)}" for root in given for each in memory.written_of(callee, root)}
