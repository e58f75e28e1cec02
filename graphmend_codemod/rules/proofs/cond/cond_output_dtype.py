"""Whether a function returns the same dtype for either value of a flag, as far as a module's text tells.

`torch.cond` fails where its two results have different dtypes. What a result is made of in common code has the same
dtype in both; what is bound where the flag decides, and in functions that are called there, must keep what it has.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls
from graphmend_codemod.analysis.scope import walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short

_CASTS = torch_api.CASTS.keys() | {"to", "type", "type_as"}
_NEW = frozenset(each for each in torch_api.CREATION if not each.startswith("new_") and not each.endswith("_like"))
_CHANGING = _CASTS | _NEW | torch_api.TO_BOOL | frozenset("argmax argmin new_tensor div divide true_divide".split())
_OF_RECEIVER = (
    torch_api.LAYOUT
    | torch_api.SAME_ANY_DTYPE
    | frozenset("new_zeros new_ones new_full new_empty as_strided repeat masked_fill_ size dim".split())
)


def why_not_one_dtype(calls: ModuleCalls, decider: Definition, flag: str, guards: Collection[str]) -> str | None:
    """The first part of the result that may have another dtype where the flag is true; the `guards` are false."""
    chosen = {id(part) for node in walk_scope(decider.node) for part in _chosen(node, flag)}
    found = _Slice(calls)
    for part, where in found.parts(decider, [_unguarded(each, guards) for each in _returned(decider)]):
        here = where is decider and id(part) not in chosen
        if not here and _changes(part) and (where is decider or found.reached_from(where, chosen)):
            return f"`{short(part)}` in `{where.qualname}` may return a different dtype if `{flag}` is true"
    return None


def _chosen(node: ast.AST, flag: str) -> Iterator[ast.AST]:
    """All that is evaluated for one value of the flag only."""
    if not isinstance(node, (ast.If, ast.IfExp)):
        return
    if any(isinstance(part, ast.Name) and part.id == flag for part in walk_in_layers(node.test)):
        branches = [*node.body, *node.orelse] if isinstance(node, ast.If) else [node]
        for branch in branches:
            yield from walk_in_layers(branch)


def _returned(function: Definition) -> list[ast.expr]:
    return [node.value for node in walk_scope(function.node) if isinstance(node, ast.Return) and node.value is not None]


def _unguarded(value: ast.expr, guards: Collection[str]) -> ast.expr:
    """`b` for `a if flag and guard else b`."""
    tests = value.test if isinstance(value, ast.IfExp) else None
    named = tests.values if isinstance(tests, ast.BoolOp) and isinstance(tests.op, ast.And) else [tests]
    guarded = any(isinstance(each, ast.Name) and each.id in guards for each in named)
    return value.orelse if guarded and isinstance(value, ast.IfExp) else value


class _Slice:
    """The parts of expressions that tell the dtype of some values, through names and calls in the module."""

    def __init__(self, calls: ModuleCalls) -> None:
        self.calls = calls
        self._called: dict[Key, list[ast.Call]] = {}
        self._inside: dict[int, Definition] = {}
        self._slices: dict[Key, tuple[list[tuple[ast.expr, Definition]], set[str]]] = {}

    def parts(self, function: Definition, values: Sequence[ast.expr]) -> list[tuple[ast.expr, Definition]]:
        """Such parts, each with the function that holds it."""
        return self._slice(function, values)[0]

    def reached_from(self, function: Definition, chosen: set[int]) -> bool:
        """True when a call among the chosen nodes leads to a function."""
        todo, seen = [function], set[Key]()
        while todo:
            key = _key(todo.pop())
            if key in seen:
                continue
            seen.add(key)
            for call in self._called.get(key, []):
                if id(call) in chosen:
                    return True
                todo.append(self._inside[id(call)])
        return False

    def _slice(
        self, function: Definition, values: Sequence[ast.expr]
    ) -> tuple[list[tuple[ast.expr, Definition]], set[str]]:
        """The parts, and the names among them."""
        key = _key(function)
        if key in self._slices:
            return self._slices[key]
        parts: list[tuple[ast.expr, Definition]] = []
        names: set[str] = set()
        self._slices[key] = (parts, names)
        todo = list(values)
        while todo:
            node = todo.pop()
            parts.append((node, function))
            if isinstance(node, ast.Name) and node.id not in names:
                names.add(node.id)
                todo += _bound(function, node.id)
            todo += self._deeper(function, node, parts)
        return self._slices[key]

    def _deeper(
        self, function: Definition, node: ast.expr, parts: list[tuple[ast.expr, Definition]]
    ) -> Iterator[ast.expr]:
        """What the dtype of an expression depends on."""
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            yield node.value
        elif isinstance(node, (ast.Tuple, ast.List)):
            yield from node.elts
        elif isinstance(node, ast.BinOp):
            yield from (node.left, node.right)
        elif isinstance(node, ast.UnaryOp):
            yield node.operand
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.Call):
            callee = self.calls.callee(function, node)
            if callee is not None:
                self._called.setdefault(_key(callee), []).append(node)
                self._inside[id(node)] = function
                known = _key(callee) in self._slices
                inner, names = self._slice(callee, _returned(callee))
                parts += [] if known else inner
                yield from (given for name, given in callee.arguments(node).items() if name in names)
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _OF_RECEIVER | _CASTS:
                # `torch.transpose(x, 0, 1)` and `x.transpose(0, 1)`.
                yield from (node.func.value, *node.args[:1])
            else:
                yield from node.args
                if isinstance(node.func, ast.Attribute):
                    yield node.func.value


def _key(function: Definition) -> Key:
    return function.qualname, function.node.lineno


def _bound(function: Definition, name: str) -> Iterator[ast.expr]:
    """What a name is bound to; an operation in place keeps its dtype."""
    for node in walk_scope(function.node):
        if isinstance(node, ast.Assign):
            names = [each for target in node.targets for each in getattr(target, "elts", [target])]
            if any(isinstance(each, ast.Name) and each.id == name for each in names):
                yield node.value
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            if isinstance(node.target, ast.Name) and node.target.id == name:
                yield node.value
        elif isinstance(node, ast.For) and any(getattr(each, "id", "") == name for each in walk_in_layers(node.target)):
            yield node.iter


def _changes(node: ast.AST) -> bool:
    """True for casts, comparisons, new tensors with a dtype of their own, and what makes a float of an integer."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return name in _CHANGING or any(word.arg == "dtype" for word in node.keywords)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Constant) and isinstance(node.value, float))
