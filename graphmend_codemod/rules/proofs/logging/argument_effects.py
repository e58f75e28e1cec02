"""Whether the arguments of a log call can be skipped with it: they must have no side effects."""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphmend_codemod.analysis.aliasing import IN_PLACE_ARGUMENT, PYTHON_RESULTS, RANDOM, may_be_in_place
from graphmend_codemod.analysis.patterns import all_given, is_name, last_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.torch_api import (
    CLOCKS,
    PYTHON_ATTRIBUTES,
    PYTHON_METHODS,
    RETURNS_TENSOR,
    torch_function,
)
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.project.summary.quiet import HARMLESS_BUILTINS, HARMLESS_METHODS, NOT_ASKED
from graphmend_codemod.rules.framework.site import Site

_CONSUMES = frozenset({"next", "map", "filter"})
_LAZY = frozenset(f"builtins.{name}" for name in ("map", "filter", "iter", "zip", "enumerate", "reversed"))
_ALWAYS_READ = frozenset("__class__ __name__ __qualname__ __dict__ __doc__ __module__ __version__".split())
_FILLED_BY_READING = "collections.defaultdict"
"""Takes up a key that somebody asks for."""
_LOOKED_UP_BY = frozenset({"__getattr__", "__getattribute__"})
_OPERATIONS = RETURNS_TENSOR | PYTHON_METHODS.keys() | PYTHON_RESULTS


def effect_in(site: Site, call: ast.Call) -> str | None:
    """The first part of a call's arguments that may do more than read, as source text.

    A call that is left out of compiled code takes its arguments with it. A property or method of any class of the
    project counts by its name where the object is not known.
    """
    for argument in all_given(call):
        effect = effect_of(site, argument)
        if effect is not None:
            return effect
    return None


def effect_of(site: Site, expression: ast.expr) -> str | None:
    """The first part of an expression that may do more than read, as source text; None where there is none."""
    bases = {id(node.value) for node in walk(expression) if isinstance(node, ast.Attribute)}
    for node in walk(expression):
        if _may_act(site, node, shown=id(node) not in bases):
            return site.text(node)
        taken_from = _taken_from(node)
        if taken_from is not None and _may_be_generator(site, taken_from):
            return site.text(taken_from)
    return None


def _taken_from(node: ast.AST) -> ast.expr | None:
    """What gives its elements away in `print(*rows)`, `1 in rows` and `[each for each in rows]`."""
    if isinstance(node, ast.Starred):
        return node.value
    if isinstance(node, ast.Compare) and any(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops):
        return node.comparators[-1]
    return node.iter if isinstance(node, ast.comprehension) else None


def _may_act(site: Site, node: ast.AST, *, shown: bool) -> bool:
    if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, ast.Call):
        return not _is_harmless(site, node)
    if isinstance(node, ast.Attribute):
        return _is_loud_attribute(site, node) or (shown and _is_loud_object(site, node))
    return isinstance(node, (ast.Subscript, ast.Name)) and shown and _is_loud_object(site, node)


def _is_loud_attribute(site: Site, node: ast.Attribute) -> bool:
    if node.attr in _ALWAYS_READ or site.resolve(node) is not None or _is_known(site, node.value):
        return False
    own = is_name(node.value, site.evaluator.scope.self_name or "")
    if not own and _acts(site, site.value(node.value).instance_of, _LOOKED_UP_BY.__contains__):
        return True
    if node.attr in PYTHON_ATTRIBUTES and site.value(node.value).instance_of is None:
        return False  # what has a shape is a tensor, unless its class is known
    return site.evaluator.scope.index.is_loud(node.attr)


def _is_known(site: Site, node: ast.expr) -> bool:
    """True for tensors, and for Python values of no class of the project."""
    value = site.value(node)
    return value.kind is ValueKind.TENSOR or (value.is_python and value.instance_of is None)


def _is_loud_object(site: Site, node: ast.expr) -> bool:
    """True for an instance of a class of the project that acts when it is shown, or by an operator.

    That is asked of what an element is taken from, too.
    """
    made = site.value(node.value if isinstance(node, ast.Subscript) else node).instance_of
    facts = site.evaluator.scope.index.class_facts(made) if made is not None else None
    if isinstance(node, ast.Subscript) and (made == _FILLED_BY_READING or _is_filled_by_reading(site, node.value)):
        return True
    layer = facts is not None or str(made).startswith("torch.nn.")
    if layer and not isinstance(node, ast.Subscript) and site.evaluator.scope.index.is_loud("extra_repr"):
        return True  # a layer shows those that it holds
    return _acts(site, made, lambda name: name not in NOT_ASKED)


def _acts(site: Site, made: str | None, asked: Callable[[str], bool]) -> bool:
    """True for a class of the project with a method of Python's own names that does more than read."""
    index = site.evaluator.scope.index
    facts = index.class_facts(made) if made is not None else None
    names = facts.methods if facts is not None else {}
    special = [name for name in names if name.startswith("__") and name.endswith("__") and asked(name)]
    found = [index.function(names[name]) for name in special]
    return any(each is None or each.loud for each in found)


def _is_harmless(site: Site, node: ast.Call) -> bool:
    qualified = site.resolve(node.func)
    if qualified is not None and qualified.startswith("builtins."):
        name = qualified.removeprefix("builtins.")
        if name == "getattr":
            return _is_quiet_lookup(site, node)
        if any(_may_be_generator(site, each) for each in node.args):
            return False
        return name in HARMLESS_BUILTINS - _CONSUMES
    if qualified in CLOCKS:
        return True
    operation = torch_function(qualified)
    if operation is not None:
        return operation in _OPERATIONS and operation not in RANDOM and not _writes(node)
    facts = site.evaluator.scope.index.function(qualified) if qualified is not None else None
    if facts is not None and facts.computes:
        return True
    if not isinstance(node.func, ast.Attribute):
        return False
    method = node.func.attr
    if method.endswith("_") or method in RANDOM or _writes(node):
        return False
    if method not in HARMLESS_METHODS and method not in _OPERATIONS:
        return False
    return _is_known(site, node.func.value) or not site.evaluator.scope.index.is_loud(method)


def _may_be_generator(site: Site, node: ast.expr) -> bool:
    """True for a name that holds what computes its elements when somebody asks for them."""
    values = _values_of(site, node)
    lazy = (isinstance(each, ast.Call) and site.resolve(each.func) in _LAZY for each in values)
    return any(lazy) or any(isinstance(each, ast.GeneratorExp) for each in values)


def _is_filled_by_reading(site: Site, node: ast.expr) -> bool:
    values = _values_of(site, node)
    return any(isinstance(each, ast.Call) and site.resolve(each.func) == _FILLED_BY_READING for each in values)


def _values_of(site: Site, node: ast.expr) -> list[ast.expr]:
    """What the function assigns to a name."""
    if not isinstance(node, ast.Name):
        return []
    stores = (part for part in walk(site.evaluator.scope.node) if isinstance(part, ast.Assign))
    return [part.value for part in stores if any(is_name(each, node.id) for each in part.targets)]


def _is_quiet_lookup(site: Site, node: ast.Call) -> bool:
    name = node.args[1] if len(node.args) > 1 else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    return _is_known(site, node.args[0]) or not site.evaluator.scope.index.is_loud(name.value)


def _writes(node: ast.Call) -> bool:
    """True for `out=` and `inplace=True`, also where that is given by position."""
    name = last_name(node.func)
    if name in IN_PLACE_ARGUMENT and may_be_in_place(node, IN_PLACE_ARGUMENT[name]):
        return True
    return any(word.arg in (None, "out") for word in node.keywords)
