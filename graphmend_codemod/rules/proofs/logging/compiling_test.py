"""How a file asks whether torch.compile traces: as it does elsewhere, by torch, or without torch.

Library code may run where torch is not installed, or before it is imported. There a function asks for torch only where
it is imported already: without it, nothing is compiled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from graphmend_codemod.analysis.torch_api import COMPILING_PREDICATES, PREDICATES_ELSEWHERE
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.site import Site

_WITHOUT_TORCH = Helper(
    "_is_torch_compiling",
    '''def _is_torch_compiling():
    """True while torch.compile traces. Does not import torch: where nobody has, nothing is compiled."""
    if sys.modules.get("torch") is not None:
        import torch

        if hasattr(torch, "compiler"):
            return torch.compiler.is_compiling()
    return False''',
)


class Predicate(NamedTuple):
    """How the file asks whether torch.compile traces, and what has to be imported and defined for it.

    `since` is the function of torch that answers; it is empty where the project has one of its own.
    """

    text: str
    imports: tuple[str, ...] = ()
    helpers: tuple[Helper, ...] = ()
    since: str = "compiler.is_compiling"


def predicate(site: Site) -> Predicate | None:
    """The file's own predicate where it imports one, else `torch.compiler.is_compiling()`; None without `torch`."""
    if not site.scripted:
        for binding in site.summary.bindings:
            if binding.kind == "import" and binding.name in PREDICATES_ELSEWHERE and _is_predicate(site, binding.name):
                return Predicate(f"{binding.name}()", since="")
        if _is_without_torch(site):
            return Predicate(f"{_WITHOUT_TORCH.name}()", ("sys",), (_WITHOUT_TORCH,), since="")
    return None if site.torch is None else Predicate(site.compiling, site.imports)


def _is_predicate(site: Site, name: str) -> bool:
    scope = site.evaluator.scope
    bindings = [binding for binding in site.summary.bindings if binding.name == name]
    if len(bindings) != 1 or bindings[0].conditional or scope.is_local(name) or not site.stays(name):
        return False
    qualified = scope.resolve_global(name)
    if qualified is None or qualified in COMPILING_PREDICATES:
        return qualified is not None
    facts = scope.index.function(qualified)
    return facts is not None and facts.compiling_predicate


def _is_without_torch(site: Site) -> bool:
    """True for a module that imports torch for types alone, if at all, and does not use the name of the helper."""
    bound = [each for each in site.summary.bindings if each.kind == "import" and not each.for_types]
    if any(each.target.replace(":", ".").partition(".")[0] == "torch" for each in bound):
        return False
    scope, text = site.evaluator.scope, site.source.text
    if scope.is_local("torch") or (scope.resolve_global("torch") not in (None, "torch")) or scope.is_local("sys"):
        return False
    return _WITHOUT_TORCH.source in text or re.search(rf"\b{_WITHOUT_TORCH.name}\b", text) is None
