"""A quick look at a file: whether a function of it may write a tensor in place that was given to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.analysis.scope import FunctionNode, parameter_names, walk_scope
from graphmend_codemod.rules.proofs.untraced.evidence import registered

HELD = frozenset({"buffers", "named_buffers"})
STATISTICS = frozenset({"batch_norm", "instance_norm"})
SHARING = aliasing.VIEWS | aliasing.BUILTINS_SHARING | aliasing.IN_PLACE_ARGUMENT.keys()
_INITIALISES = frozenset({"__init__", "_init_weights", "init_weights", "reset_parameters"})
_LOOKS_WRITTEN = re.compile(r"_[ ]*(?:\(|$)|\]|[-+*/%@&|^<>]=|\b(?:out|inplace|running_mean|True|batch_norm)\b")
"""What every line spells that may write a tensor in place, or a line of such a statement."""


def writes_by_word(word: ast.keyword) -> bool:
    """True for an argument that makes a function write in place."""
    return word.arg in {"out", "inplace", "running_mean"}


@lru_cache(maxsize=16)
def writes_given(text: str) -> bool:
    """False where the functions of a file write nothing in place that they are given, but while they initialise it."""
    if "inplace=True" in text:
        return True  # a layer may write what it is given
    found = [each for each in calls_in(text).definitions.values() if each.node.name not in _INITIALISES]
    lines = text.split("\n")
    return any(_may_write_given(each.node, lines, registered(text, each.node.lineno)) for each in found)


def _may_write_given(function: FunctionNode, lines: Sequence[str], buffers: Collection[str]) -> bool:
    """False where a function itself certainly writes nothing that it is given in place."""
    if not any(_LOOKS_WRITTEN.search(each) for each in lines[function.lineno - 1 : function.end_lineno]):
        return False
    inside = list(walk_scope(function))
    written = [(name, part.lineno) for part in inside for name in _written_names(part, buffers)]  # type: ignore[attr-defined]
    if not written:
        return False
    outside, made = parameter_names(function), dict[str, int]()
    for part in inside:
        if isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
            outside |= {each.id for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        elif isinstance(part, ast.Assign):
            names = {each.id for target in part.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if not _is_new(part.value):
                outside |= names
            elif part in function.body:
                made |= {name: min(part.lineno, made.get(name, part.lineno)) for name in names}
    parameters = parameter_names(function)
    new = {name: line for name, line in made.items() if name not in outside - parameters}
    return any(name in outside and line <= new.get(name, line) for name, line in written)


def _is_new(node: ast.expr) -> bool:
    """True for what is computed: no view of something, and no list of it."""
    called = last_name(node.func) if isinstance(node, ast.Call) else ""
    shares = called in SHARING or called in HELD
    return isinstance(node, (ast.BinOp, ast.Compare, ast.Constant)) or (isinstance(node, ast.Call) and not shares)


def _written_names(node: ast.AST, buffers: Collection[str]) -> Iterator[str]:
    """The first parts of what a node may write in place; numbers that are counted and elements of dicts are none."""
    written: list[ast.expr] = []
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name.endswith("_") and not name.endswith("__"):
            written = [node.func.value, *node.args[:1]]
        elif any(writes_by_word(each) for each in node.keywords):
            written = list(aliasing.operands(node))
        elif len(node.args) > aliasing.IN_PLACE_ARGUMENT.get(name, 1 if name in STATISTICS else len(node.args)):
            written = list(node.args)
    elif isinstance(node, ast.AugAssign):
        plain = isinstance(node.value, (ast.Constant, ast.Tuple)) and last_name(node.target) not in buffers
        written = [] if plain else [node.target]
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        plain = isinstance(node.slice, (ast.Constant, ast.Attribute)) and last_name(node.value) not in buffers
        written = [] if plain else [node.value]
    for each in written:
        roots: list[ast.AST] = [each]
        for inner in roots:
            if isinstance(inner, ast.Name):
                yield inner.id
            elif isinstance(inner, (ast.Attribute, ast.Subscript)):
                roots.append(inner.value)
            elif isinstance(inner, ast.Call):
                roots += [inner.func, *inner.args]
            elif isinstance(inner, (ast.List, ast.Tuple)):
                roots += inner.elts
