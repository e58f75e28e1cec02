"""Tensors built from a Python list that is still available, followed through the calls of one module.

Detection models build `shapes = torch.as_tensor(shapes_list)` once and hand both down. Wherever a function gets the two
as arguments, the list tells under `torch.compile` what the tensor would have to be read back for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from graphmend_codemod.analysis.arguments import Arguments
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import all_given, holds_integers, root_of, stores_name
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameters, walk_scope
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS

_CALLED = re.compile(r"tensor\(\s*[A-Za-z_]\w*\s*[,)]")
_FROM_EQUALS = re.compile(r"=[\s\\(]*[A-Za-z_][\w.]*\.(?:as_)?\Z")
_LONGEST_HEAD = 400
_CHANGES = frozenset("append extend insert pop remove clear sort reverse".split())

Resolve = Callable[[str], "str | None"]
_NONE: Mapping[tuple[str, int], Mapping[str, str]] = {}


class Origins(NamedTuple):
    """What is known of one module: `lists` maps a function (qualified name, line) to its parameters that are tensors
    built from lists, and those to the parameter that is the list. `builders` does so for locals."""

    calls: ModuleCalls
    lists: Mapping[tuple[str, int], Mapping[str, str]] = _NONE
    builders: Mapping[tuple[str, int], Mapping[str, str]] = _NONE

    @property
    def functions(self) -> frozenset[tuple[str, int]]:
        """The functions that have such a tensor."""
        return frozenset(self.builders) | frozenset(self.lists)


def origins(text: str, calls_inside: Callable[[], ModuleCalls], resolve: Resolve) -> Origins | None:
    """The origins in a module, None where it builds no tensor from a list; its calls are asked for where it may."""
    ends = [end for start in _places("tensor(", text) if (end := _assigned_call(text, start))]
    if not ends:
        return None
    calls = calls_inside()
    lines = [text.count("\n", 0, end) + 1 for end in ends]
    built = {
        key: pairs
        for key, each in calls.definitions.items()
        if ("\r" in text or _holds(each.node, lines)) and (pairs := _built(each.node, resolve))
    }
    if not built:
        return None
    # Most modules hand nothing down: then nobody needs to know who calls whom.
    hands_on = any(_hands_on(calls.definitions[key].node, pairs) for key, pairs in built.items())
    return Origins(calls, _handed_down(calls, built) if hands_on else {}, built)


def _places(word: str, text: str) -> Iterator[int]:
    start = text.find(word)  # faster than the engine of `re`
    while start >= 0:
        yield start
        start = text.find(word, start + 1)


def _assigned_call(text: str, start: int) -> int:
    """Where the first argument of the call ends that is assigned, 0 for other calls."""
    match = _CALLED.match(text, start)
    equals = text.rfind("=", max(0, start - _LONGEST_HEAD), start) if match is not None else -1
    if match is None or equals <= 0 or _FROM_EQUALS.match(text, equals, start) is None:
        return 0
    before = text[max(0, equals - _LONGEST_HEAD) : equals].rstrip()[-1:]
    return match.end() if before.isalnum() or before == "_" else 0


def _holds(function: FunctionNode, lines: list[int]) -> bool:
    return any(function.lineno <= line <= (function.end_lineno or line) for line in lines)


def _built(function: FunctionNode, resolve: Resolve) -> dict[str, str]:
    """Locals that are assigned once, to a tensor of integers built from a list that does not change afterwards."""
    found = {}
    for node in walk_scope(function):
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1):
            continue
        call = node.value
        if not (isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name)):
            continue
        name = dotted(call.func)
        if name is None or resolve(name) not in TENSOR_MAKERS:
            continue
        dtype = next((dotted(word.value) for word in call.keywords if word.arg == "dtype"), "torch.long")
        if dtype is None or (resolve(dtype) or dtype) not in INT64_NAMES:
            continue
        tensor, source = node.targets[0].id, call.args[0].id
        uses = _Uses(function)
        if len(uses.stores(tensor)) != 1 or not uses.is_list_of_sizes(source):
            continue
        if not uses.changes(source, node.lineno) and not uses.changes(tensor, node.lineno):
            found[tensor] = source
    return found


class _Uses:
    """How a function uses its names."""

    def __init__(self, function: FunctionNode) -> None:
        self.function = function

    @cached_property
    def _bindings(self) -> dict[str, list[tuple[int, ast.expr | None]]]:
        """Values by name, with the line; None for one that is not known."""
        first = self.function.lineno
        found: dict[str, list[tuple[int, ast.expr | None]]] = {
            each.arg: [(first, None)] for each in parameters(self.function)
        }
        seen: set[int] = set()
        for node in walk_scope(self.function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for name, value in _bound(target, node.value):
                        seen.add(id(name))
                        found.setdefault(name.id, []).append((name.lineno, value))
        for node in walk_scope(self.function):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in seen:
                found.setdefault(node.id, []).append((node.lineno, None))
        return found

    def stores(self, name: str) -> list[ast.expr | None]:
        """The values that a name is bound to, parameters included."""
        return [value for _, value in self._bindings.get(name, [])]

    def _reaching(self, node: ast.Name) -> list[ast.expr | None]:
        """Those that may reach a place: the ones above it, and all in the outermost loop around it."""
        last = node.lineno
        for statement in self.function.body:
            for part in [statement, *walk_scope(statement)]:
                if isinstance(part, (ast.For, ast.While)) and part.lineno <= node.lineno <= (part.end_lineno or 0):
                    last = max(last, part.end_lineno or 0)
        return [value for line, value in self._bindings.get(node.id, []) if line <= last]

    def changes(self, name: str, line: int) -> bool:
        """True when the object that a name holds is changed below a line, or the name is bound again."""
        for node in walk_scope(self.function):
            if getattr(node, "lineno", 0) <= line:
                continue
            if stores_name(node, name):
                return True
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and root_of(node) == name:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and root_of(node.func.value) == name:
                method = node.func.attr
                if method in _CHANGES or method.endswith("_"):
                    return True
        return False

    def is_list_of_sizes(self, name: str) -> bool:
        """True for a list of Python integers, or of tuples of them."""
        bindings = self.stores(name)
        if len(bindings) != 1:
            return False
        (value,) = bindings
        if value is None:
            annotation = next((p.annotation for p in parameters(self.function) if p.arg == name), None)
            return holds_integers(annotation)
        if isinstance(value, ast.ListComp):
            return self._is_size(value.elt)
        if not isinstance(value, ast.List):
            return False
        return all(self._is_size(element) for element in [*value.elts, *self._appended(name)])

    def _appended(self, name: str) -> Iterator[ast.expr]:
        for node in walk_scope(self.function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and root_of(node.func.value) == name:
                if node.func.attr == "append":
                    yield from node.args
                elif node.func.attr in _CHANGES:
                    yield ast.Constant(None)  # who knows what is in it then

    def _is_size(self, node: ast.expr, depth: int = 6) -> bool:
        """True for sizes of tensors, integer literals, and what is computed from them."""
        if depth == 0:
            return False
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.Attribute):
            return node.attr == "shape"
        if isinstance(node, ast.Subscript):
            return self._is_size(node.value, depth - 1)
        if isinstance(node, ast.BinOp):
            return self._is_size(node.left, depth - 1) and self._is_size(node.right, depth - 1)
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(self._is_size(element, depth - 1) for element in node.elts)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                return node.func.attr in {"size", "numel"}
            return isinstance(node.func, ast.Name) and node.func.id in {"len", "tuple", "list"}
        if isinstance(node, ast.Name):
            values = self._reaching(node)
            return bool(values) and all(value is not None and self._is_size(value, depth - 1) for value in values)
        return False


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts: list[ast.expr] = [value] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            parts = value.elts
        elif not (isinstance(value, (ast.Attribute, ast.Subscript, ast.Call))):
            return
        for element, part in zip(target.elts, parts, strict=True):
            if isinstance(element, ast.Name):
                yield element, part


def _handed_down(
    calls: ModuleCalls, built: Mapping[tuple[str, int], dict[str, str]]
) -> dict[tuple[str, int], dict[str, str]]:
    """Pairs of parameters that hold a built tensor and its list in every call of the module that is understood."""
    known: dict[tuple[str, int], dict[str, str]] = {}
    while True:
        found: dict[tuple[str, int], dict[str, str]] = {}
        for key, definition in calls.definitions.items():
            pairs = [
                _pairs_at({**known.get(caller.key, {}), **built.get(caller.key, {})}, definition.arguments(call))
                for caller, call in calls.callers(definition)
            ]
            common = set.intersection(*pairs) if pairs else set()
            kept = {tensor: source for tensor, source in sorted(common) if _untouched(definition, tensor, source)}
            if kept:
                found[key] = kept
        if found == known:
            return found
        known = found


def _hands_on(function: FunctionNode, pairs: Mapping[str, str]) -> bool:
    """True when a call gets a tensor together with its list."""
    for node in walk_scope(function):
        if isinstance(node, ast.Call):
            given = all_given(node)
            names = {each.id for each in given if isinstance(each, ast.Name)}
            if any(tensor in names and source in names for tensor, source in pairs.items()):
                return True
    return False


def _pairs_at(related: Mapping[str, str], arguments: Arguments) -> set[tuple[str, str]]:
    named = {parameter: node.id for parameter, node in arguments.plain.items() if isinstance(node, ast.Name)}
    return {
        (tensor, source)
        for tensor, name in named.items()
        if name in related
        for source, other in named.items()
        if related[name] == other
    }


def _untouched(definition: Definition, tensor: str, source: str) -> bool:
    """True when a function neither binds these parameters again nor changes what they hold."""
    uses = _Uses(definition.node)
    line = definition.node.body[0].lineno - 1
    return not uses.changes(tensor, line) and not uses.changes(source, line)
