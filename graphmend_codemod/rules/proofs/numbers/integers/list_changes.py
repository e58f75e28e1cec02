"""Whether a list may have changed between the place where a tensor was built from it and the place that uses both."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

from graphmend_codemod.analysis.aliasing import VIEWS
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import all_given, all_names, root_of, stores_name
from graphmend_codemod.analysis.scope import SCOPES, dotted, walk, walk_scope
from graphmend_codemod.analysis.torch_api import PYTHON_METHODS, RETURNS_TENSOR
from graphmend_codemod.analysis.value_flow import handed_on

_root = partial(root_of, walrus=True)
Resolve = Callable[[str], "str | None"]
_CHANGES = frozenset("append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__".split())
_READS = frozenset("len sum min max list tuple range zip enumerate isinstance int float sorted print str repr".split())
_LEVELS = 6  # calls that are followed, one inside of another


class ListChanges:
    """Asks for changes along the calls of one module. `resolve` tells what a dotted name means there."""

    def __init__(self, calls: ModuleCalls, resolve: Resolve) -> None:
        self._calls = calls
        self._resolve = resolve

    def before(self, function: Definition, tensor: str, source: str, line: int) -> str | None:
        """What may have changed either since the tensor was built, before `line`: source text, None if nothing may.

        Where both are parameters, every caller in the module is asked, up to the one that builds the tensor.
        """
        return self._before(function, tensor, source, line, frozenset())

    def _before(self, function: Definition, tensor: str, source: str, line: int, seen: frozenset[str]) -> str | None:
        built = _built_at(function, tensor)
        first = function.node.lineno if built is None else built
        last = max(_end_of_loop(function, line), line if built is None else _end_of_loop(function, built))
        found = self._changes(function, {tensor, source}, first, last, _LEVELS)
        if found is not None or built is not None or function.qualname in seen:
            return found
        for caller, call in self._calls.callers(function):
            given = function.arguments(call)
            names = given.get(tensor), given.get(source)
            if not all(isinstance(each, ast.Name) for each in names):
                return ast.unparse(call)
            there = [each.id for each in names if isinstance(each, ast.Name)]
            found = self._before(caller, there[0], there[1], call.lineno, seen | {function.qualname})
            if found is not None:
                return found
        return None

    def _changes(self, function: Definition, names: set[str], first: int, last: int, levels: int) -> str | None:
        """The part of a function between two lines that may change what one of `names` holds."""
        whole, parts = _aliases(function, names, self._resolve)
        for node in walk_scope(function.node):
            line = getattr(node, "lineno", 0)
            if not first < line <= last:
                continue
            if isinstance(node, (ast.Subscript, ast.Name)) and not isinstance(node.ctx, ast.Load):
                if _root(node) in (whole | parts if isinstance(node, ast.Subscript) else names):
                    return ast.unparse(node)
            elif isinstance(node, ast.Call) and self._call_changes(function, node, whole, parts, levels):
                return ast.unparse(node)
            elif isinstance(node, SCOPES) and any(
                isinstance(part, ast.Name) and part.id in whole for part in walk(node)
            ):
                return getattr(node, "name", "lambda")  # what it does when it is called, nobody follows
        return None

    def _call_changes(
        self, function: Definition, call: ast.Call, whole: set[str], parts: set[str], levels: int
    ) -> bool:
        called = call.func
        if isinstance(called, ast.Attribute):
            root = _root(called.value)
            if called.attr in _CHANGES and (root in whole | parts or _may_be_elsewhere(function, called.value)):
                return True
            if root in whole | parts and called.attr.endswith("_") and not called.attr.endswith("__"):
                return True
        if self._only_reads(call):
            return False

        def holds(value: ast.expr) -> bool:
            return not whole.isdisjoint(_root(each) for each in _held(value, self._resolve))

        handed = handed_on(self._calls, function, call, holds)
        if handed is None:
            return any(map(holds, all_given(call)))
        if levels == 0:
            return True
        callee, bound = handed
        first, last = callee.node.lineno - 1, callee.node.end_lineno or 0
        return self._changes(callee, set(bound), first, last, levels - 1) is not None

    def _only_reads(self, call: ast.Call) -> bool:
        """True for builtins that read, functions of torch, and methods that only tensors have."""
        name = dotted(call.func)
        qualified = self._resolve(name) if name is not None else None
        if qualified is not None and qualified.startswith("builtins."):
            return qualified.removeprefix("builtins.") in _READS
        operation = qualified.rpartition(".")[2] if (qualified or "").startswith("torch.") and qualified else None
        if operation is not None:
            return not operation.endswith("_") and all(word.arg != "out" for word in call.keywords)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return method in RETURNS_TENSOR or method in PYTHON_METHODS


def _built_at(function: Definition, name: str) -> int | None:
    """The line of the only assignment to a local name; None for a parameter."""
    for node in walk_scope(function.node):
        if stores_name(node, name):
            return node.lineno
    return None


def _end_of_loop(function: Definition, line: int) -> int:
    """The last line of the outermost loop around a line, or the line itself."""
    ends = [
        each.end_lineno or line
        for each in walk_scope(function.node)
        if isinstance(each, (ast.For, ast.While)) and each.lineno <= line <= (each.end_lineno or line)
    ]
    return max(ends, default=line)


def _aliases(function: Definition, names: set[str], resolve: Resolve) -> tuple[set[str], set[str]]:
    """Names that may hold the same object as one of `names`, and those that may hold a part of it."""
    whole, parts = set(names), set[str]()
    while True:
        known = len(whole) + len(parts)
        for node in walk_scope(function.node):
            for value, targets in _bound(node):
                held = {_root(each) for each in _held(value, resolve)}
                if not held.isdisjoint(whole) and not isinstance(value, (ast.Subscript, ast.Call)):
                    whole |= targets
                elif not held.isdisjoint(whole | parts):
                    parts |= targets
            if isinstance(node, ast.For) and any(
                isinstance(each, ast.Name) and each.id in whole | parts for each in ast.walk(node.iter)
            ):
                parts |= all_names(node.target)
        if len(whole) + len(parts) == known:
            return whole, parts


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, set[str]]]:
    """The values that a statement or `:=` gives to names, with these names; a `match` may give its subject to any."""
    if isinstance(node, ast.Assign):
        names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        yield node.value, names
    elif isinstance(node, ast.NamedExpr):
        yield node.value, {node.target.id} if isinstance(node.target, ast.Name) else set()
    elif isinstance(node, ast.Match):
        patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
        caught = (ast.MatchAs, ast.MatchStar)
        yield node.subject, {part.name for part in patterns if isinstance(part, caught) and part.name is not None}


def _held(value: ast.expr, resolve: Resolve) -> Iterator[ast.expr]:
    """The expressions whose object an assigned value is or holds."""
    if isinstance(value, (ast.Tuple, ast.List)):
        for each in value.elts:
            yield from _held(each, resolve)
    elif isinstance(value, ast.Dict):
        for each in value.values:
            yield from _held(each, resolve)
    elif isinstance(value, ast.IfExp):
        yield from (*_held(value.body, resolve), *_held(value.orelse, resolve))
    elif isinstance(value, ast.BoolOp):
        for each in value.values:
            yield from _held(each, resolve)
    elif isinstance(value, (ast.Starred, ast.NamedExpr)):
        yield from _held(value.value, resolve)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VIEWS:
        yield value.func.value
        if (resolve(dotted(value.func) or "") or "").startswith("torch."):
            yield from value.args[:1]
    elif isinstance(value, (ast.Name, ast.Subscript)):
        yield value


def _may_be_elsewhere(function: Definition, node: ast.expr) -> bool:
    """True for an attribute, whose list other names may hold, and for a local that was taken from one."""
    if isinstance(node, ast.Attribute):
        return True
    root = _root(node)
    for each in walk_scope(function.node):
        assigned = isinstance(each, ast.Assign) and any(getattr(one, "id", None) == root for one in each.targets)
        if assigned and any(isinstance(part, ast.Attribute) for part in _attributes(each.value)):  # type: ignore[attr-defined]
            return True
    return False


def _attributes(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from (value.body, value.orelse)
    elif isinstance(value, ast.BoolOp):
        yield from value.values
    else:
        yield value
