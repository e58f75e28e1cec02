"""What the values of a select are computed of, and where a gradient of zero goes that eager mode never sends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.patterns import all_given, all_names
from graphmend_codemod.analysis.scope import children, walk_scope
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.site import Site


def read_values(node: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """The names, and attributes of names, of which an expression takes the value."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute) and inner.attr not in torch_api.PYTHON_ATTRIBUTES:
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield node
        elif isinstance(inner, ast.Attribute):
            yield from read_values(inner.value)
        return
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from read_values(node.func.value)
        inside: list[ast.expr] = all_given(node)
    else:
        inside = [child for child in children(node) if isinstance(child, ast.expr)]
    for child in inside:
        yield from read_values(child)


def gradient_leaves(site: Site, node: ast.expr, env: Env) -> list[ast.expr]:
    """The names and attributes of self in an expression through which a gradient may flow."""
    found: list[ast.expr] = []
    for part in read_values(node):
        own = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        if isinstance(part, ast.Name) or own:
            value = site.evaluator.value(part, env)
            if value.kind is ValueKind.TENSOR and value.grad:
                found.append(part)
    return found


def is_finite_source(site: Site, name: str, seen: frozenset[str]) -> bool:
    """False where the function computes a local name by something with a derivative that may be infinite."""
    for node in walk_scope(site.evaluator.scope.node):
        names = [target for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)]
        if not isinstance(node, ast.Assign) or name not in {target.id for target in names}:
            continue
        if not speculation.judge(site.evaluator, node.value, site.place.env).finite:
            return False
        inner = all_names(node.value) - seen - {name}
        if not all(is_finite_source(site, each, seen | inner | {name}) for each in inner):
            return False
    return True
