"""What a number usually is: the default of the parameter that it comes from, in a signature or in a constructor."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import FunctionNode, defaults_of
from graphmend_codemod.rules.framework.site import Site


def is_usually_above_0(site: Site, node: ast.expr) -> bool:
    """True for a parameter, or an attribute that the constructor takes from one, whose default is above 0."""
    scope = site.evaluator.scope
    if isinstance(node, ast.Name):
        return _default(scope.node, node.id) > 0
    if not isinstance(node, ast.Attribute) or not is_attribute(node, scope.self_name or "", node.attr):
        return False
    made = _constructor(site)
    given = [
        each.value
        for each in ast.walk(made or scope.node)
        if isinstance(each, ast.Assign) and any(_is_own(made, target, node.attr) for target in each.targets)
    ]
    return made is not None and len(given) == 1 and isinstance(given[0], ast.Name) and _default(made, given[0].id) > 0


def _is_own(made: FunctionNode | None, target: ast.expr, name: str) -> bool:
    return made is not None and bool(made.args.args) and is_attribute(target, made.args.args[0].arg, name)


def _default(function: FunctionNode, name: str) -> float:
    """The number that is a parameter's default; 0 where it has none."""
    found = next((default for each, default in defaults_of(function) if each.arg == name), None)
    value = found.value if isinstance(found, ast.Constant) else None
    return value if isinstance(value, (int, float)) else 0


def _constructor(site: Site) -> FunctionNode | None:
    """The `__init__` of the class around the site, if that stands in the same file."""
    owner = site.function.rpartition(".")[0]
    classes = (each for each in tree_of(site.source.text).body if isinstance(each, ast.ClassDef) and each.name == owner)
    for each in classes:
        for part in each.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                return part
    return None
