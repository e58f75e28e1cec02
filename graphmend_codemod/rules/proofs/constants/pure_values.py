"""Expressions that numbers alone decide: calls of known functions of libraries, and of functions that use only these.

Functions of the project are read statement by statement, in whatever file they are. What is found is a kind of value,
and whether Dynamo breaks the graph on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import elements_of, names_bound, positional_names, root_of
from graphmend_codemod.analysis.scope import FunctionNode, body_of, defaults_of, dotted, parameter_names, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.constants.libraries import (
    ATTRIBUTES,
    CONSTANTS,
    METHODS,
    PLACED,
    TENSOR_METHODS,
    Kind,
    kind_of,
)
from graphmend_codemod.rules.proofs.untraceable_calls import refused
from graphmend_codemod.rules.proofs.untraced.other_files import function_of

_DEEPEST = 4
_WRITES_TO = ("out", "where", "subok", "like", "requires_grad")
_BLOCKS = (ast.If, ast.For)
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)
_REFUSED = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.NamedExpr)
Leaf = Callable[[ast.expr], "Kind | None"]


class Frame(NamedTuple):
    """Where an expression is: its module, what local names hold, and what is said of all others."""

    module: str
    names: frozenset[str]
    kinds: dict[str, Kind]
    leaf: Leaf
    depth: int = 0


class PureValues:
    """Reads expressions. `breaks` says whether one of the calls breaks the graph, `called` are the functions of the
    project that the outermost expression calls, each with whether it gets an array.
    """

    def __init__(self, site: Site) -> None:
        self._site, self._index = site, site.evaluator.scope.index
        self.breaks = False
        self.called: list[tuple[ast.expr, bool]] = []
        self.lines: set[int] = set()

    def result(self, function: FunctionNode) -> Kind:
        """What a function of numbers returns; NotProven where it does more than compute. `lines` break the graph."""
        kinds = dict.fromkeys(parameter_names(function), Kind.NUMBER)
        names = frozenset(kinds) | names_bound(function)
        return self._returned(function, Frame(self._site.summary.name, names, kinds, lambda _: None, 1))

    def kind(self, node: ast.expr, frame: Frame) -> Kind:
        """What an expression is, whose value depends on nothing but numbers. NotProven where it may be more."""
        known = frame.leaf(node)
        if known is not None:
            return known
        if isinstance(node, ast.Constant):
            return Kind.NUMBER
        if isinstance(node, ast.Name) and node.id in frame.kinds:
            return frame.kinds[node.id]
        if isinstance(node, (ast.Tuple, ast.List)):
            kinds = {self.kind(each, frame) for each in node.elts}
            if kinds == {Kind.TENSOR} and isinstance(node, ast.Tuple):
                return Kind.TENSORS
            return Kind.NUMBER if kinds <= {Kind.NUMBER} and isinstance(node, ast.Tuple) else Kind.LISTED
        if isinstance(node, _OPERATORS):
            operands = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
            return _joined([self.kind(each, frame) for each in operands])
        if isinstance(node, ast.Subscript):
            return self._element(node, frame)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, frame)
        if isinstance(node, ast.Call):
            return self._call(node, frame)
        raise NotProven(f"`{short(node)}` may depend on more than numbers")

    def _element(self, node: ast.Subscript, frame: Frame) -> Kind:
        owner = self.kind(node.value, frame)
        parts = elements_of(node.slice)
        bounds = _bounds(node.slice)
        kinds = {self.kind(each, frame) for each in bounds}
        if owner is Kind.ARRAYS:
            return Kind.ARRAY if kinds == {Kind.NUMBER} and len(bounds) == 1 else Kind.EITHER
        if owner is Kind.ARRAY and (Kind.ARRAY in kinds or any(isinstance(part, ast.Slice) for part in parts)):
            return Kind.ARRAY
        return Kind.NUMBER if owner is Kind.NUMBER and kinds <= {Kind.NUMBER} else Kind.EITHER

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Kind:
        qualified = self._resolved(node, frame)
        if qualified is not None:
            if qualified in CONSTANTS:
                return Kind.NUMBER
            raise NotProven(f"`{short(node)}` may change")
        owner = self.kind(node.value, frame)
        if owner is Kind.OTHER:
            self.breaks = True
        if node.attr in ATTRIBUTES and (owner is Kind.ARRAY or ATTRIBUTES[node.attr] is Kind.NUMBER):
            return ATTRIBUTES[node.attr]
        return Kind.OTHER

    def _call(self, node: ast.Call, frame: Frame) -> Kind:
        words = [word.arg or "**" for word in node.keywords]
        if any(word.startswith(("ret", "*")) or word in _WRITES_TO for word in words):
            raise NotProven(f"`{short(node)}` gets `{words[0]}`")
        qualified = self._resolved(node.func, frame)
        if qualified == "builtins.isinstance" and len(node.args) == 2:
            self.kind(node.args[0], frame)
            return Kind.NUMBER
        given = [self.kind(each, frame) for each in node.args]
        named = [self.kind(word.value, frame) for word in node.keywords]
        if qualified is None and isinstance(node.func, ast.Attribute):
            owner = self.kind(node.func.value, frame)
            if owner is Kind.ARRAY and node.func.attr in METHODS:
                return Kind.ARRAY
            if owner is Kind.TENSOR and node.func.attr in TENSOR_METHODS:
                return Kind.TENSOR
            raise NotProven(f"cannot infer what `{short(node)}` does")
        found = kind_of(qualified or "", given, named, listed=_is_listed(node))
        if found is not None:
            if qualified in PLACED and "device" not in words:
                raise NotProven(f"`{short(node)}` is on the default device; name one")
            self.breaks |= refused(node, qualified, None) is not None or self._asks_dtype(node, frame)
            return found
        return self._followed(node, qualified or "", frame, given, named)

    def _asks_dtype(self, node: ast.Call, frame: Frame) -> bool:
        """True for `np.array(x, dtype=y.dtype)`: Dynamo does not trace the dtype of an array."""
        asked = [word.value for word in node.keywords if isinstance(word.value, ast.Attribute)]
        asked = [each for each in asked if each.attr == "dtype" and self._resolved(each, frame) is None]
        return any(self.kind(each.value, frame) is Kind.ARRAY for each in asked)

    def _resolved(self, node: ast.expr, frame: Frame) -> str | None:
        name = dotted(node)
        if name is None or name.partition(".")[0] in frame.names:
            return None
        return self._index.resolve(frame.module, name)

    def _followed(
        self, node: ast.Call, qualified: str, frame: Frame, given: Sequence[Kind], named: Sequence[Kind]
    ) -> Kind:
        """What a function of the project returns that does nothing else."""
        found = self._defined(qualified) if qualified else None
        if found is None or found[1].decorator_list or frame.depth == _DEEPEST:
            raise NotProven(f"`{short(node)}` may depend on more than its arguments")
        module, function = found
        args = function.args
        positional = positional_names(function)
        words = [word.arg or "" for word in node.keywords]
        plain = all(isinstance(default, ast.Constant) for _, default in defaults_of(function))
        if args.vararg or args.kwarg or len(given) > len(positional) or not plain:
            raise NotProven(f"cannot infer what the parameters of `{short(node.func)}` hold")
        kinds = dict.fromkeys(parameter_names(function), Kind.NUMBER)
        kinds |= dict(zip(positional, given, strict=False)) | dict(zip(words, named, strict=True))
        if frame.depth == 0:
            self.called.append((node.func, Kind.ARRAY in {*given, *named}))
        names = frozenset(kinds) | names_bound(function)
        return self._returned(function, Frame(module, names, kinds, lambda _: None, frame.depth + 1))

    def _defined(self, qualified: str) -> tuple[str, FunctionNode] | None:
        """The module and the definition of a function at the top level, which nothing replaces."""
        name, found = qualified.rpartition(".")[2], function_of(self._site, qualified)
        if found is None or not found[1].top.binds_once(name) or self._index.writers(name):
            return None
        return (found[0], found[2].node) if isinstance(found[2].node, ast.FunctionDef) else None

    def _returned(self, function: FunctionNode, frame: Frame) -> Kind:
        if any(isinstance(part, _REFUSED) for statement in function.body for part in walk(statement)):
            raise NotProven(f"`{function.name}` does more than compute")
        returned: set[Kind] = set()
        self._run(body_of(function), frame, returned)
        return returned.pop() if len(returned) == 1 else Kind.OTHER

    def _run(self, body: Sequence[ast.stmt], frame: Frame, returned: set[Kind]) -> None:
        for statement in body:
            before, self.breaks = self.breaks, False
            self._step(statement, frame, returned)
            if self.breaks and frame.depth == 1 and not isinstance(statement, _BLOCKS):
                self.lines.add(statement.lineno)
            self.breaks |= before

    def _step(self, statement: ast.stmt, frame: Frame, returned: set[Kind]) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, self.kind(statement.value, frame), frame)
        elif isinstance(statement, ast.AugAssign):
            before = ast.copy_location(ast.Name(root_of(statement.target) or "", ast.Load()), statement)
            kinds = [self.kind(before, frame), self.kind(statement.value, frame)]
            self._bind(statement.target, _joined(kinds), frame)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            returned.add(self.kind(statement.value, frame))
        elif isinstance(statement, ast.If):
            self._branch(statement, frame, returned)
        elif isinstance(statement, ast.For) and not statement.orelse:
            self._loop(statement, frame, returned)
        elif not isinstance(statement, (ast.Raise, ast.Pass)) and not _is_text(statement):
            raise NotProven(f"`{short(statement)}` may do more than compute")

    def _branch(self, statement: ast.If, frame: Frame, returned: set[Kind]) -> None:
        if self.kind(statement.test, frame) is Kind.ARRAY:
            raise NotProven(f"cannot infer what `{short(statement.test)}` is")
        taken, left = dict(frame.kinds), dict(frame.kinds)
        self._run(statement.body, frame._replace(kinds=taken), returned)
        self._run(statement.orelse, frame._replace(kinds=left), returned)
        either = taken | left
        frame.kinds.update({name: kind if left.get(name) is kind else Kind.OTHER for name, kind in either.items()})

    def _loop(self, statement: ast.For, frame: Frame, returned: set[Kind]) -> None:
        iterated = self.kind(statement.iter, frame)
        for _ in range(2):  # the second time with what the first one leaves
            before = dict(frame.kinds)
            self._bind(statement.target, Kind.NUMBER if iterated is Kind.NUMBER else Kind.OTHER, frame)
            self._run(statement.body, frame, returned)
            changed = {name: Kind.OTHER for name, kind in before.items() if frame.kinds[name] is not kind}
            frame.kinds.update(changed)

    def _bind(self, target: ast.expr, kind: Kind, frame: Frame) -> None:
        """Bind names, or write into an array that a name holds."""
        if isinstance(target, ast.Name):
            frame.kinds[target.id] = kind
        elif isinstance(target, ast.Tuple) and kind in {Kind.ARRAYS, Kind.NUMBER, Kind.OTHER}:
            for each in target.elts:
                self._bind(each, Kind.ARRAY if kind is Kind.ARRAYS else kind, frame)
        elif isinstance(target, ast.Subscript) and self.kind(target.value, frame) is Kind.ARRAY:
            for each in _bounds(target.slice):
                self.kind(each, frame)
        else:
            raise NotProven(f"`{short(target)}` may be something that lasts")


def _joined(kinds: Sequence[Kind]) -> Kind:
    if Kind.TENSOR in kinds and set(kinds) <= {Kind.TENSOR, Kind.NUMBER}:
        return Kind.TENSOR
    if set(kinds) - {Kind.ARRAY, Kind.EITHER, Kind.NUMBER}:
        return Kind.OTHER
    return Kind.ARRAY if Kind.ARRAY in kinds else Kind.EITHER if Kind.EITHER in kinds else Kind.NUMBER


def _bounds(part: ast.expr) -> list[ast.expr]:
    """The expressions in an index: the three of a slice, or the index itself."""
    if isinstance(part, ast.Slice):
        return [each for each in (part.lower, part.upper, part.step) if each is not None]
    if isinstance(part, ast.Tuple):
        return [each for element in part.elts for each in _bounds(element)]
    return [part]


def _is_listed(node: ast.Call) -> bool:
    return bool(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
