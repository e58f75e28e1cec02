"""Tensors that come into a graph and are written in it, while a gradient needs what was computed of them before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.scope import dotted, parameters, walk_scope
from graphmend_codemod.rules.framework.site import Site


def names_in(node: ast.AST) -> Iterator[str]:
    """Names and attributes, spelled with dots, that an expression reads; not what it calls."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (text := dotted(node)) is not None:
        yield text
        return
    for part in ast.iter_child_nodes(node):
        called = isinstance(node, ast.Call) and part is node.func
        if not called:
            yield from names_in(part)
        elif isinstance(part, ast.Attribute):
            yield from names_in(part.value)


def asked_of_gradients(site: Site, tensor: ast.expr) -> tuple[str, ...]:
    """`not torch.is_grad_enabled()` where a number or test reads an argument or attribute that is written in place.

    torch 2.13 keeps such a tensor itself for the gradient, and computes the number anew from what was written.
    """
    given = {each.arg for each in parameters(site.evaluator.scope.node)}
    env = site.place.env
    roots = {
        key for key in names_in(tensor) if "." in key or (key in given and not (key in env and site.is_fresh(env[key])))
    }
    if site.no_grad or not roots:
        return ()
    own = walk_scope(site.evaluator.scope.node)
    written = {text for node in own for text in _written(node)}
    attributes = {key.rpartition(".")[2] for key in roots if "." in key}
    if attributes:
        nodes = ast.walk(tree_of(site.source.text))
        attributes &= {text.rpartition(".")[2] for node in nodes for text in _written(node) if "." in text}
    return (f"not {site.torch}.is_grad_enabled()",) if attributes or roots & written else ()


def _written(node: ast.AST) -> Iterator[str]:
    """What a node writes in place, spelled with dots."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = [each for each in node.targets if isinstance(each, ast.Subscript)]
    elif isinstance(node, ast.Call):
        inplace = isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and node.func.attr[:1] != "_"
        targets = [node.func.value] if inplace else []  # type: ignore[attr-defined]
        targets += [word.value for word in node.keywords if word.arg == "out"]
    for target in targets:
        inner = target
        while isinstance(inner, ast.Subscript) or (isinstance(inner, ast.Attribute) and inner.attr == "data"):
            inner = inner.value
        if (text := dotted(inner)) is not None:
            yield text
