"""Tests of attributes of the instance, which tell by themselves whether a statement runs."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, is_not
from graphmend_codemod.analysis.scope import of_kind, walk


def test_of_attributes(function: Definition, node: ast.AST, parents: Mapping[int, ast.AST]) -> str | None:
    """`self.checkpointing and self.training` where only that lets the node run, and nothing changes it."""
    below: ast.AST = node
    while below is not function.node:
        above = parents[id(below)]
        if isinstance(above, ast.If) and any(each is below for each in above.body):
            names = _attributes(above.test)
            changed = {
                part.attr for part in of_kind(walk(function.node), ast.Attribute) if not isinstance(part.ctx, ast.Load)
            }
            if names is not None and not names & changed:
                return ast.unparse(above.test)
        below = above
    return None


def _attributes(test: ast.expr) -> set[str] | None:
    """The names behind `self.` in a test of nothing else."""
    if isinstance(test, ast.BoolOp):
        parts = [_attributes(value) for value in test.values]
        return set().union(*(part for part in parts if part)) if all(part is not None for part in parts) else None
    if is_not(test):
        return _attributes(test.operand)
    return {test.attr} if is_attribute(test, "self") else None
