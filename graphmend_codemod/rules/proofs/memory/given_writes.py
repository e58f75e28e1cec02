"""A quick look at a file: whether a function of it may write a tensor in place that was given to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import last_name
from graphmend_codemod.analysis.scope import SCOPES, FunctionNode, dotted, parameter_names, walk
from graphmend_codemod.rules.proofs.memory.held_tensors import held_name
from graphmend_codemod.rules.proofs.untraced.evidence import registered

HELD = frozenset({"buffers", "named_buffers"})
STATISTICS = frozenset({"batch_norm", "instance_norm"})
SHARING = aliasing.VIEWS | aliasing.BUILTINS_SHARING | aliasing.IN_PLACE_ARGUMENT.keys()
_INITIALISES = frozenset({"__init__", "_init_weights", "init_weights", "reset_parameters"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOKS_WRITTEN = re.compile(
    r"\w_\b|\w__\(|\bsetitem\b|\bi(?:add|mul|sub|truediv)\b|\]|[-+*/%@&|^<>]=|\.data\s*=|\b(?:out|inplace|running_mean|True|batch_norm)\b"
)
"""Matches each line that may write a tensor in place, and each line of such a statement; many others as well."""
_LOOKS_HANDED = re.compile(r"\w_(?:[\"',)\]]|$)|\bsetitem\b|\bi(?:add|mul|sub|truediv)\b")
"""Matches each line that hands a function around which does so: `map(torch.relu_, xs)`."""


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
    own = lines[function.lineno - 1 : function.end_lineno]
    if not any(_LOOKS_WRITTEN.search(each) for each in own):
        return False
    inside = [part for part in walk(function) if part is not function]
    if any(_LOOKS_HANDED.search(each) for each in own) and any(map(_hands_a_write_around, inside)):
        return True
    written = [(name, part.lineno) for part in inside for name in _written_names(part, buffers)]  # type: ignore[attr-defined]
    if not written:
        return False
    outside, made = parameter_names(function), dict[str, int]()
    for part in inside:
        if isinstance(part, _INNER):
            outside |= parameter_names(part)
        if isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
            outside |= {each.id for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        elif isinstance(part, ast.Assign):
            names = {each.id for target in part.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if not is_new(part.value):
                outside |= names
            elif part in function.body:
                made |= {name: min(part.lineno, made.get(name, part.lineno)) for name in names}
    parameters = parameter_names(function)
    new = {name: line for name, line in made.items() if name not in outside - parameters}
    return any(name in outside and line <= new.get(name, line) for name, line in written)


def _hands_a_write_around(node: ast.AST) -> bool:
    """True for `torch.Tensor.mul_` and `x.mul_` where they are given to something, and for names of such methods."""
    if isinstance(node, ast.Call):
        return any(_is_write_in_place(each) for each in (*node.args, *(word.value for word in node.keywords)))
    if isinstance(node, (ast.Assign, ast.NamedExpr)):
        return _is_write_in_place(node.value)
    return isinstance(node, (ast.List, ast.Tuple)) and any(map(_is_write_in_place, node.elts))


def _is_write_in_place(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else ""
    if not isinstance(name, str) or not name[-1:].isidentifier():
        return False
    return (name[-1] == "_" and name[-2:] != "__" and name.isidentifier()) or name in aliasing.IN_PLACE_OPERATORS


def is_new(node: ast.expr) -> bool:
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
        elif name.strip("_") in aliasing.IN_PLACE_OPERATORS:
            written = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args[:1]]
        elif any(writes_by_word(each) for each in node.keywords):
            written = list(aliasing.operands(node))
        elif len(node.args) > aliasing.IN_PLACE_ARGUMENT.get(name, 1 if name in STATISTICS else len(node.args)):
            written = list(node.args)
    elif isinstance(node, ast.AugAssign):
        plain = isinstance(node.value, (ast.Constant, ast.Tuple)) and last_name(node.target) not in buffers
        written = [] if plain and held_name(node.target) is None else [node.target]
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        plain = isinstance(node.slice, (ast.Constant, ast.Attribute)) and last_name(node.value) not in buffers
        written = [] if plain and held_name(node.value) is None else [node.value]
    elif isinstance(node, ast.Attribute) and node.attr == "data" and not isinstance(node.ctx, ast.Load):
        written = [node.value]
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


# The tensors whose elements a statement reads, and a gradient may need

_SIZES = (aliasing.PYTHON_RESULTS - aliasing.READS_ELEMENTS) | {"isinstance", "hasattr", "len", "type", "id"}
"""What tells of a tensor and reads none of its elements."""
_OF_NO_GRADIENT = frozenset("argmax argmin argsort bincount bucketize count_nonzero nonzero searchsorted".split())


def elements_read(node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes whose elements are read; not what is written, or only named anew."""
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) is not None:
        stored = not isinstance(node.ctx, ast.Load)
        if not stored and not (isinstance(node, ast.Attribute) and node.attr in aliasing.WITHOUT_MEMORY):
            yield node
        return
    if isinstance(node, SCOPES) or (isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot))):
        return
    if _is_without_gradient(node) or _only_lists(node):
        return
    left_out: list[ast.AST] = []
    if isinstance(node, (ast.Assign, ast.Return)):
        left_out = [node.value] if node.value is not None and dotted(node.value) is not None else []
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        left_out = [node.iter] if dotted(node.iter) is not None else []  # each round reads its own part by another name
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        left_out = [node.value]
    elif isinstance(node, ast.Attribute) and node.attr in aliasing.WITHOUT_MEMORY:
        return
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        node = node.value  # `self.count.add_(1)` reads what it is given
        left_out = [node.func] if node.func.attr.endswith("_") else []  # type: ignore[attr-defined]
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _SIZES:
            return
        if isinstance(called, ast.Attribute) and called not in left_out:
            yield from elements_read(called.value)
        left_out.append(called)
    for part in ast.iter_child_nodes(node):
        if part not in left_out:
            yield from elements_read(part)


def _only_lists(node: ast.AST) -> bool:
    """True for `all_states + (x,)` and `v for v in [x, y] if v is not None`: tensors that are put into a tuple."""
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
        listed = [part for each in sides if isinstance(each, ast.Tuple) for part in each.elts]
        named = (dotted(each) is not None for each in (*sides, *listed) if not isinstance(each, ast.Tuple))
        return isinstance(node.op, ast.Add) and bool(listed) and all(named)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and len(node.generators) == 1:
        one = node.generators[0]
        listed = one.iter.elts if isinstance(one.iter, (ast.List, ast.Tuple)) else []
        same = isinstance(node.elt, ast.Name) and isinstance(one.target, ast.Name) and node.elt.id == one.target.id
        asked = all(isinstance(each, ast.Compare) and isinstance(each.ops[0], (ast.Is, ast.IsNot)) for each in one.ifs)
        return same and asked and bool(listed) and all(dotted(each) is not None for each in listed)
    return False


def _is_without_gradient(node: ast.AST) -> bool:
    """True for `x.argmin(-1)` and `x.max(-1).indices`: no gradient needs what integers are computed of."""
    if isinstance(node, ast.Attribute):
        return node.attr == "indices"
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_NO_GRADIENT
