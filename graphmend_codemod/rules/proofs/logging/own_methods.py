"""Methods that a class of the project puts in the place of a logger's own: what they do beside telling."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.torch_api import name_set
from graphmend_codemod.project.summary.quiet import HARMLESS_BUILTINS, HARMLESS_METHODS
from graphmend_codemod.rules.framework.site import Site

LOG_METHODS = name_set(
    """debug info warning warn error critical exception log warning_once info_once error_once debug_once
    warning_advice"""
)
_TELLS = LOG_METHODS | HARMLESS_BUILTINS | HARMLESS_METHODS | {"super", "_log", "isEnabledFor", "setdefault"}
_CHANGES = (ast.Global, ast.Nonlocal, ast.Delete, ast.Await, ast.Yield, ast.YieldFrom, ast.Raise)


def acts_itself(site: Site, call: ast.Call) -> str | None:
    """What a method of the project does that a call of a logger runs, where it does more than tell; as a reason."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None:
        return None
    index, made = site.evaluator.scope.index, site.value(owner).instance_of
    if made is None and dotted(owner) is not None:
        home, _, name = (site.resolve(owner) or "").rpartition(".")
        fact = index.global_fact(home, name)
        made = fact.callee if fact is not None else None
    facts = index.class_facts(made) if made is not None else None
    method = facts.methods.get(last_name(call.func)) if facts is not None else None
    if method is None:
        return None
    from graphmend_codemod.rules.proofs.untraced.other_files import defined  # few loggers are of the project

    inside = method.removeprefix(f"{site.summary.name}.")
    here = (each for each in calls_in(site.source.text).definitions.values() if each.qualname == inside)
    found = next(here, None) or next(iter((defined(index, method) or ())[1:]), None)
    if found is not None and not any(_does_more(part) for each in found.node.body for part in walk(each)):
        return None
    return f"`{method.rpartition('.')[2]}` of this logger is code of the project, which may do more than tell"


def _does_more(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) not in _TELLS
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, _CHANGES)
