"""Floats that code under `torch.cond` reads: Dynamo has to take them for constants there.

A float of a module is an input of the graph with `dynamic=True`, and once it was another one in an earlier
compilation. `torch.cond` takes no such input, so the compile path asks for the floats that its code would read.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls
from graphmend_codemod.analysis.scope import dotted, parameters, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.project.summary.candidates import is_python_annotation
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.cond.traceable import is_compile_path, traced_nodes
from graphmend_codemod.rules.proofs.memory.module_memory import is_name

NAME = "_floats_are_constant"
_HELPER = f'''
def {NAME}(*values):
    """True where torch.compile takes floats for constants, these among them: code under torch.cond can take no others.

    It does not with dynamic=True, nor for a float that was another one when the code was compiled before.
    """
    others = (str, torch.dtype, torch.Tensor, type(None))
    numbers = [each for each in (torch.pi, *values) if not isinstance(each, others)]
    is_constant = torch.fx.experimental.symbolic_shapes.has_static_value
    return all(isinstance(each, (int, float)) and is_constant(each) for each in numbers)
'''
LAYER_FLOATS = {
    **dict.fromkeys(("LayerNorm", "GroupNorm", "RMSNorm"), ("eps",)),
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"), ("p",)),
    **dict.fromkeys(("ReLU6", "Hardtanh"), ("min_val", "max_val")),
    **dict.fromkeys(("ELU", "CELU"), ("alpha",)),
    "LeakyReLU": ("negative_slope",),
    "Softplus": ("beta", "threshold"),
    "Embedding": ("norm_type",),
}
"""The floats that layers of torch read when they are called, of those that may stand under `torch.cond`."""
_OF_TENSORS = frozenset("shape dtype device ndim T mT H data grad real imag is_cuda itemsize requires_grad".split())
_SIZED = frozenset("view reshape expand new_zeros new_ones new_empty zeros ones empty narrow range as_strided".split())
_SIZED_LAYERS = frozenset({"Linear", "Bilinear", "Embedding", "Conv1d", "Conv2d", "Conv3d"})
_DEEPEST = 8


def helper(site: Site, line: int) -> Helper:
    """The function that asks, in front of the definition at this line."""
    return Helper(NAME, _HELPER.strip("\n").replace("torch.", f"{site.torch}."), after=above(site, line))


def above(site: Site, line: int) -> tuple[str, ...]:
    """The top-level definition above the one that holds this line: behind it a helper stands next to what it serves."""
    summary = site.summary
    tops = [
        (each.line, each.qualname) for each in summary.functions if each.qualname and not (each.owner or each.outer)
    ]
    tops += [(each.line, each.qualname) for each in summary.classes if "." not in each.qualname]
    before = [name for start, name in sorted(tops) if start < line]
    return (before[-2],) if len(before) > 1 else ()


def floats_read(calls: ModuleCalls, decider: Definition, flag: str) -> tuple[tuple[str, ...], str | None]:
    """What may be a float among all that a method and its callees read, in words of the method.

    The second is a read that has no such words; then nobody can ask for it.
    """
    reads = _Reads(calls)
    reads.add(decider, "self")
    for argument, default in _with_defaults(decider):
        if argument.arg not in {"self", flag} and not _is_flag(argument, default):
            is_tensor = "Tensor" in ast.unparse(argument.annotation) if argument.annotation else False
            if not is_tensor and not _has_other_type(calls, decider, argument.arg):
                reads.parameter(decider, argument.arg)
    return tuple(reads.found), reads.unknown


def _with_defaults(function: Definition) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    args = list(parameters(function.node))
    defaults = function.node.args.defaults
    yield from zip(args, [*([None] * (len(args) - len(defaults))), *defaults], strict=True)


def _is_flag(argument: ast.arg, default: ast.expr | None) -> bool:
    known = argument.annotation is not None and is_python_annotation(ast.unparse(argument.annotation))
    floats = argument.annotation is not None and "float" in ast.unparse(argument.annotation)
    return (isinstance(default, ast.Constant) and isinstance(default.value, bool)) or (known and not floats)


@dataclass
class _Reads:
    """Collects reads; `found` keeps their order."""

    calls: ModuleCalls
    found: dict[str, None] = field(default_factory=dict)
    unknown: str | None = None
    _seen: set[tuple[Key, str]] = field(default_factory=set)

    def add(self, function: Definition, own: str) -> None:
        """All reads of a function, whose `self` is `own` in words of the first one; empty if there are no words."""
        key = ((function.qualname, function.node.lineno), own)
        if key in self._seen:
            return
        self._seen.add(key)
        nodes = list(traced_nodes(function))
        tests = (each.test for each in walk_scope(function.node) if isinstance(each, ast.If) and is_compile_path(each))
        nodes += [part for test in tests for part in walk_in_layers(test)]
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and dotted(node) is not None}
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        # What holds several values is no number, and cannot be asked for.
        parted = {id(node.value) for node in nodes if isinstance(node, ast.Subscript)}
        silent = {id(part) for node in nodes if isinstance(node, ast.Call) for part in _flags_of_objects(node)}
        for node in sorted(nodes, key=lambda each: (getattr(each, "lineno", 0), getattr(each, "col_offset", 0))):
            if isinstance(node, ast.Call):
                self._call(function, node, own)
            elif id(node) in inner | called | silent or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            elif isinstance(node, ast.Attribute):
                self._attribute(function, node, "" if id(node) in parted else own)
            elif isinstance(node, ast.Name):
                self._name(function, node)

    def parameter(self, function: Definition, name: str) -> None:
        """A parameter of the first function, which may be given a float."""
        self.found.setdefault(name)
        for node in walk_scope(function.node):
            if isinstance(node, ast.Subscript) and is_name(node.value, name):
                self._say(function, node)

    def _say(self, function: Definition, node: ast.AST) -> None:
        self.unknown = self.unknown or f"`{short(node)}` in `{function.qualname}` may be a float"

    def _read(self, function: Definition, node: ast.AST, own: str, rest: str) -> None:
        if own:
            self.found.setdefault(rest)
        else:
            self._say(function, node)

    def _call(self, function: Definition, call: ast.Call, own: str) -> None:
        callee = self.calls.callee(function, call)
        name = dotted(call.func)
        if callee is not None:
            root, _, rest = (name or "").partition(".")
            method = bool(callee.owner) and callee.node.name == rest.rpartition(".")[2]
            below = [own, *rest.split(".")[: -1 if method else None]]
            self.add(callee, ".".join(filter(None, below)) if root == "self" and own else "")
        elif name is not None and name.startswith("self.") and name.count(".") == 1:
            for made in self.calls.constructions(function.owner, name.removeprefix("self.")):
                self._layer(function, made, f"{own}.{name.removeprefix('self.')}" if own else "")

    def _layer(self, function: Definition, made: ast.Call, layer: str) -> None:
        """The floats of a layer of torch, also of those in a `Sequential`."""
        for position, inner in enumerate(each for each in made.args if isinstance(each, ast.Call)):
            self._layer(function, inner, f"{layer}[{position}]" if layer else "")
        for name in LAYER_FLOATS.get(torch_api.torch_module_class(self.calls.qualified(made.func)) or "", ()):
            self._read(function, made, layer, f'getattr({layer}, "{name}", None)')

    def _attribute(self, function: Definition, node: ast.Attribute, own: str) -> None:
        name = dotted(node)
        if node.attr in _OF_TENSORS:
            return
        root, _, rest = (name or "").partition(".")
        if root == "self" and name is not None:
            first, _, deeper = rest.partition(".")
            if name != "self.training" and (deeper or not _is_no_float(self.calls, function, first)):
                self._read(function, node, own, f"{own}.{rest}")
        elif not (self.calls.qualified(node) or "").startswith(("torch.", "math.")) and not _is_limit(node):
            self._say(function, node)

    def _name(self, function: Definition, node: ast.Name) -> None:
        known = {each.arg for each in parameters(function.node)} | {
            each.id for each in walk_scope(function.node) if isinstance(each, ast.Name) and not _is_load(each)
        }
        if node.id not in known and not hasattr(builtins, node.id):
            self._say(function, node)


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _flags_of_objects(call: ast.Call) -> Sequence[ast.AST]:
    """What `getattr(self.config, "flag", False)` and `isinstance(x, C)` read, which is no float."""
    name = getattr(call.func, "id", "")
    default = call.args[-1] if call.args else None
    flag = name == "getattr" and isinstance(default, ast.Constant) and isinstance(default.value, bool)
    return [part for each in call.args for part in walk_in_layers(each)] if flag or name == "isinstance" else []


def _is_limit(node: ast.Attribute) -> bool:
    """True for `torch.finfo(dtype).min`, which is a constant."""
    made = node.value.func if isinstance(node.value, ast.Call) else None
    return isinstance(made, ast.Attribute) and made.attr in {"finfo", "iinfo"}


def _is_no_float(calls: ModuleCalls, function: Definition, attribute: str) -> bool:
    """True for an attribute that is a tensor, a size, or another Python value that is no float."""
    values = calls.assigned(function.owner, attribute)
    sizes = {ast.unparse(each) for made in calls.assigned(function.owner) for each in _sizes_of_layer(calls, made)}
    size = f"self.{attribute}" in sizes or any(ast.unparse(each) in sizes for each in values)
    if size or (values and all(_is_other(calls, each) for each in values)):
        return True
    return any(_is_sized(calls, function, f"self.{attribute}", 0) for function in _methods(calls, function.owner))


def _sizes_of_layer(calls: ModuleCalls, made: ast.expr) -> Sequence[ast.expr]:
    name = torch_api.torch_module_class(calls.qualified(made.func)) if isinstance(made, ast.Call) else None
    return made.args[:2] if name in _SIZED_LAYERS and isinstance(made, ast.Call) else ()


def _methods(calls: ModuleCalls, owner: str) -> list[Definition]:
    return [each for each in calls.definitions.values() if each.owner == owner]


def _is_other(calls: ModuleCalls, node: ast.expr) -> bool:
    """True for integers, tensors, strings, None."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, float)
    made = node.func if isinstance(node, ast.Call) else None
    return getattr(made, "id", "") in {"int", "len", "bool", "str"} or (
        made is not None and (calls.qualified(made) or "").startswith("torch.")
    )


def _is_sized(calls: ModuleCalls, function: Definition, spelled: str, depth: int) -> bool:
    """True when a name or attribute is a size or an index somewhere, where a float is an error."""
    for node in walk_scope(function.node):
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper)
            if any(each is not None and _counts(each, spelled) for each in bounds):
                return True
        if not isinstance(node, ast.Call):
            continue
        callee = calls.callee(function, node)
        named = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if callee is None and named in _SIZED and any(_counts(each, spelled) for each in node.args):
            return True
        given = callee.arguments(node) if callee is not None and depth < _DEEPEST else {}
        handed = [name for name, each in given.items() if _counts(each, spelled) and not isinstance(each, ast.BinOp)]
        if callee is not None and any(_is_sized(calls, callee, each, depth + 1) for each in handed):
            return True
    return False


def _counts(node: ast.expr, spelled: str) -> bool:
    """True when a number is part of the arithmetic of a size."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        sides = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        exact = not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))
        return exact and any(_counts(each, spelled) for each in sides)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_counts(each, spelled) for each in node.elts)
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == spelled


def _has_other_type(calls: ModuleCalls, function: Definition, name: str, depth: int = 0) -> bool:
    """True for a parameter that is used as a tensor or as a size, here or in what it is handed to."""
    for node in walk_scope(function.node):
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and _is_of_tensor(node.slice)):
            inner = node.value
            compared = isinstance(inner, ast.Compare) and isinstance(inner.comparators[0], ast.Constant)
            inner = inner.left if isinstance(inner, ast.Compare) and compared else inner
            if is_name(inner, name):
                return True
        if isinstance(node, ast.Call) and depth < _DEEPEST:
            callee = calls.callee(function, node)
            given = callee.arguments(node) if callee is not None else {}
            handed = [each for each, value in given.items() if is_name(value, name)]
            if callee is not None and any(_has_other_type(calls, callee, each, depth + 1) for each in handed):
                return True
    return _is_sized(calls, function, name, depth)


def _is_of_tensor(index: ast.expr) -> bool:
    """True for an index with several dimensions, which no list takes."""
    return isinstance(index, ast.Tuple) and any(isinstance(each, ast.Slice) for each in index.elts)
