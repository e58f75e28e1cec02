"""Parts of a test that a compile path asks, and the author's statement behind it once more: they may only read."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.aliasing import RANDOM
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import PYTHON_METHODS, RETURNS_TENSOR, torch_function
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.project.summary.quiet import HARMLESS_BUILTINS, HARMLESS_METHODS
from graphmend_codemod.rules.framework.site import Site

_ACTS = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_CONSUMES = frozenset({"next", "iter", "map", "filter", "reversed", "enumerate", "zip"})
_QUESTIONS = ("is_", "get_", "has_", "are_")
_ASKED = "__bool__ __len__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ __getitem__ __iter__ __hash__".split()
"""Methods of an object that a test may call without naming them."""


def acts(site: Site, node: ast.expr) -> str | None:
    """The first part of a test that may do more than read, in words; None where asking twice is asking once."""
    for part in ast.walk(node):
        if isinstance(part, _ACTS) or (isinstance(part, ast.Call) and not _is_question(site, part)):
            return f"`{short(part)}` would be asked twice and may have side effects; test it in a separate `if`"
        if is_attribute(part, site.evaluator.scope.self_name) and is_loud_property(site.evaluator, part.attr):
            return f"the property `{short(part)}` would be asked twice and may do more than read; assign it first"
        if isinstance(part, (ast.Name, ast.Attribute)) and _answers_itself(site, part):
            return f"`{short(part)}` would be asked twice, and its class says how it compares; assign the answer first"
    return None


def _is_question(site: Site, call: ast.Call) -> bool:
    """True for a call that returns something and does nothing else."""
    qualified = site.resolve(call.func)
    if qualified is not None:
        if qualified.startswith("builtins."):
            name = qualified.removeprefix("builtins.")
            return name in HARMLESS_BUILTINS - _CONSUMES and not (name == "getattr" and _names_property(site, call))
        operation = torch_function(qualified)
        if operation in RETURNS_TENSOR and operation not in RANDOM:
            return True
        facts = site.evaluator.scope.index.function(qualified)
        if facts is not None:
            return facts.computes or facts.compiling_predicate or bool(site.value(call).compiling)
        return qualified.startswith("torch.") and qualified.rpartition(".")[2].startswith(_QUESTIONS)
    if not isinstance(call.func, ast.Attribute):
        return False
    method, owner = call.func.attr, site.value(call.func.value)
    if owner.kind is ValueKind.TENSOR:
        return method in PYTHON_METHODS or (method in RETURNS_TENSOR and method not in RANDOM)
    return (method in HARMLESS_METHODS or method in PYTHON_METHODS) and owner.instance_of is None


def _names_property(site: Site, call: ast.Call) -> bool:
    name = call.args[1] if len(call.args) > 1 else None
    return not isinstance(name, ast.Constant) or is_loud_property(site.evaluator, str(name.value))


def _answers_itself(site: Site, node: ast.expr) -> bool:
    """True for an instance of a class of the project that defines what it answers in a test, and is no module."""
    made = site.value(node).instance_of
    facts = site.evaluator.scope.index.class_facts(made) if made is not None else None
    return facts is not None and not facts.is_module and any(name in facts.methods for name in _ASKED)
