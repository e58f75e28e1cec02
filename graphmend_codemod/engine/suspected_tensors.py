"""Tests of what seems to be a tensor, by what callers give and callees return: judged once more, as if annotated.

The evidence is a guess, so what is written asks for it in its header, as it does for an annotation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.values import UNKNOWN
from graphmend_codemod.rules.framework.site import Site

_TENSOR = "torch.Tensor"


class Suspected(NamedTuple):
    """A statement or expression with a test, and annotations for names, and for attributes as `self.name`."""

    node: ast.AST
    names: Mapping[str, str]


def suspected(site: Site) -> Suspected | None:
    """What to take for tensors, so that the test at a site asks for one; None where nothing in it seems to be one.

    Among it is all of which nothing else is known, since the arms of the test have to be tensors, too.
    """
    if not isinstance(site.node, (ast.If, ast.IfExp, ast.Assert)):
        return None
    from graphmend_codemod.rules.proofs.untraced.guessed_breaks import compared  # a commit hook waits for them
    from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor_of_torch

    parts = [each for each in compared(site.node.test) if site.value(each) == UNKNOWN]
    if not any(seems_tensor_of_torch(site, each) for each in parts):
        return None
    names = {name: _TENSOR for name, node in _unknown(site) if seems_tensor_of_torch(site, node)}
    return Suspected(site.node, names) if names else None


def _unknown(site: Site) -> Iterator[tuple[str, ast.expr]]:
    """The names and attributes that the function reads and whose value is not known at the site."""
    scope, seen = site.evaluator.scope, set[str]()
    for node in walk_scope(scope.node):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Attribute):
            name = f"self.{node.attr}" if is_attribute(node, scope.self_name) else ""
        else:
            name = node.id if node.id in scope.locals else ""
        if name and name not in seen and site.value(node) == UNKNOWN:
            seen.add(name)
            yield name, node
