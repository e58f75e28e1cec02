"""Functions at the top level of a module that only some installations have."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_none
from graphmend_codemod.analysis.scope import walk, walk_in_layers, walk_scope
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names


def global_names(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for part in walk(tree) if isinstance(part, ast.Global) for name in part.names)


def called_globals(function: Definition, names: frozenset[str]) -> frozenset[str]:
    """Those of some names of the top level that a function calls."""
    called = {part.func.id for part in walk_scope(function.node) if _calls_a_name(part)}  # type: ignore[attr-defined]
    found = called & names
    return frozenset(found - local_names(function.node) if found else found)


def _calls_a_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def given_none(tree: ast.Module) -> frozenset[str]:
    """Names that the top level of a module may give None, `scan, update = None, None` under an `else:`."""
    found: set[str] = set()
    for part in (each for each in tree.body if isinstance(each, (ast.Assign, ast.If, ast.Try))):
        for node in walk_in_layers(part):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                assert isinstance(node, ast.Assign)
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                names = target.elts if isinstance(target, ast.Tuple) and several else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) and several else [node.value]
                pairs = zip(names, values, strict=False)
                found |= {name.id for name, value in pairs if isinstance(name, ast.Name) and is_none(value)}
    return frozenset(found)
