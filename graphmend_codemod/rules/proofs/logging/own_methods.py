"""Methods that a class of the project puts in the place of a logger's own: what they do beside telling."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import last_name, owner_of
from graphmend_codemod.analysis.scope import dotted, parameter_names, walk
from graphmend_codemod.analysis.torch_api import name_set
from graphmend_codemod.project.summary.quiet import HARMLESS_BUILTINS, HARMLESS_METHODS
from graphmend_codemod.rules.framework.site import Site

LOG_METHODS = name_set(
    """debug info warning warn error critical exception log warning_once info_once error_once debug_once
    warning_advice"""
)
_TELLS = LOG_METHODS | HARMLESS_BUILTINS | HARMLESS_METHODS | {"super", "_log", "isEnabledFor", "setdefault"}
_RUN_BY_ALL = ("process", "log", "_log", "handle", "filter", "makeRecord", "callHandlers")
"""Methods of loggers and adapters that each message goes through."""
_CHANGES = (ast.Global, ast.Nonlocal, ast.Delete, ast.Await, ast.Yield, ast.YieldFrom, ast.Raise)


def acts_itself(site: Site, call: ast.Call) -> str | None:
    """What a method of the project does that a call of a logger runs, where it does more than tell; as a reason."""
    owner = owner_of(call)
    if owner is None:
        return None
    index, made = site.evaluator.scope.index, site.value(owner).instance_of
    if made is None and dotted(owner) is not None:
        home, _, name = (site.resolve(owner) or "").rpartition(".")
        fact = index.global_fact(home, name)
        made = fact.callee if fact is not None else None
    facts = index.class_facts(made) if made is not None else None
    names = (last_name(call.func), *_RUN_BY_ALL) if facts is not None else ()
    methods = [facts.methods[name] for name in names if facts is not None and name in facts.methods]
    return next((reason for each in methods if (reason := _does_what_else(site, each)) is not None), None)


def _does_what_else(site: Site, method: str) -> str | None:
    """The reason where a method of the project does more than tell."""
    from graphmend_codemod.rules.proofs.untraced.other_files import function_of  # few loggers are of the project

    found = function_of(site, method)
    node = found[2].node if found is not None else None
    own = parameter_names(node) - {"self"} if node is not None else set()
    if node is not None and not any(_does_more(part, own) for each in node.body for part in walk(each)):
        return None
    return f"`{method.rpartition('.')[2]}` of this logger is code of the project, which may do more than tell"


def _does_more(node: ast.AST, own: set[str]) -> bool:
    """True for what lasts; `own` are the parameters, which nobody else has: `kwargs["extra"] = {}`."""
    if isinstance(node, ast.Call):
        changed = node.func.value if isinstance(node.func, ast.Attribute) else node
        return last_name(node.func) not in _TELLS and not (isinstance(changed, ast.Name) and changed.id in own)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and not (isinstance(node.value, ast.Name) and node.value.id in own)
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, _CHANGES)
