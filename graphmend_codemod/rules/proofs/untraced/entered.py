"""Context managers that exist before `with` enters them: Dynamo traces those that are made where they are entered."""

from __future__ import annotations

import ast

from graphmend_codemod.project.index.facts import AttributeFact, AttributeKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced

_TRACED = frozenset({"contextlib.nullcontext"})


def entered(site: Site, node: ast.expr) -> Untraced | None:
    """`with self.lock:`, `with LOCK:`, `with torch.device("cpu"):`."""
    if isinstance(node, ast.Call):
        if site.resolve(node.func) != "torch.device":
            return None
        advice = "Dynamo does not trace it; manually give `device=` to what makes tensors"
        return Untraced(node, "enters a device as a context manager", advice)
    fact = _fact(site, node)
    if fact is None or fact.callee in _TRACED or fact.kind is AttributeKind.CONSTANT:
        return None
    advice = (
        "Dynamo traces a context manager only where it is made; manually make it in the `with` statement, "
        "or leave it out under `torch.compiler.is_compiling()`"
    )
    return Untraced(node, "enters a context manager that was made elsewhere", advice)


def _fact(site: Site, node: ast.expr) -> AttributeFact | None:
    """How an attribute of the instance, or a name of the module, came to be."""
    scope = site.evaluator.scope
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == scope.self_name:
        return scope.attribute(node.attr)
    if isinstance(node, ast.Name) and not scope.is_local(node.id):
        return scope.index.global_fact(site.summary.name, node.id)
    return None
