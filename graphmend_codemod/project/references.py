"""Which of the names that a function uses are worth following, and which candidates it holds."""

from __future__ import annotations

import ast
import builtins
import sys
from typing import NamedTuple

from graphmend_codemod.project.assignments import types_of
from graphmend_codemod.project.body import Body, chooses_by_mask, chooses_rows
from graphmend_codemod.project.candidates import COUNT, is_python_annotation
from graphmend_codemod.project.computing import COMPUTES
from graphmend_codemod.project.held import Held
from graphmend_codemod.project.summary import FunctionSummary
from graphmend_codemod.project.walking import import_root

_BUILTINS = frozenset(dir(builtins)) - {"super"}
UNINTERESTING_ROOTS = frozenset(sys.stdlib_module_names) | {
    "einops", "jax", "flax", "numpy", "pandas", "PIL", "scipy", "tensorflow", "torch", "torchvision", "tqdm",
    "typing_extensions",
}  # fmt: skip
"""Packages that lead to no code of the project."""


_TENSOR_METHODS = frozenset(
    {
        "add", "any", "argmax", "clone", "contiguous", "copy_", "cpu", "detach", "device", "dim", "dtype", "expand",
        "fill_", "flatten", "float", "gather", "half", "is_floating_point", "item", "long", "masked_fill",
        "masked_fill_", "max", "mean",
        "min", "mul", "mul_", "ndim", "new_ones", "new_zeros", "numel", "permute", "pow", "repeat", "reshape",
        "requires_grad", "shape", "size", "softmax", "split", "sqrt", "squeeze", "std", "sum", "tolist", "transpose",
        "type", "type_as", "unbind", "unsqueeze", "view", "view_as", "zero_",
    }
)  # fmt: skip
"""Methods that are followed only on names whose class is said: nearly always they belong to tensors."""


class Pending(NamedTuple):
    """A function whose summary waits for its class or module to be known."""

    summary: FunctionSummary
    body: Body
    local: set[str]


class Around(NamedTuple):
    """What the module around a function binds and defines. `stars` is true where a star import may bind more."""

    bound: set[str]
    methods: set[str]
    stars: bool
    held: Held


def finish(pending: Pending, around: Around) -> FunctionSummary:
    """The summary of a function with its references, sorted, and its candidates."""
    summary, body = pending.summary, pending.body
    if summary.owner and not body.test:
        asked = [name[5:] for name in body.asked if name.startswith("self.")]
        body.test = not all(around.held.is_python(summary.owner, name) for name in asked)
    types: dict[str, list[str]] = {}
    for name, spelled in body.types:
        types.setdefault(name, []).append(spelled)
    for name, annotation in body.parameters.items():
        if annotation and name != body.own and not is_python_annotation(annotation):
            types.setdefault(name, []).append(f":{annotation}")
    keep = _Keep(pending, around, types)
    refs = [f"{kept}()" for call in body.calls if (kept := keep.ref(call, True))]
    refs += [kept for read in body.reads.difference(body.calls) if (kept := keep.ref(read, False))]
    names = body.names.difference(body.calls, pending.local, _BUILTINS).union(keep.inner & body.names)
    refs += [kept for name in names if (kept := keep.ref(name, False))]
    return _with_body(summary, body, sorted(set(refs)), types)


class _Keep:
    """Which of the names that a function uses are worth following."""

    def __init__(self, pending: Pending, around: Around, types: dict[str, list[str]]) -> None:
        body, summary = pending.body, pending.summary
        self._local, self._bound, self._methods = pending.local, around.bound, around.methods
        self._types, self._values = types, body.values()
        self._open = around.stars or bool(summary.outer)
        self._own = body.own or ("self" if "self" in body.parameters or summary.outer else "")
        self._renamed = bool(body.own)
        self._imports = {name for name, target in summary.imports if import_root(target) not in UNINTERESTING_ROOTS}
        self.inner = {node.name for node in body.definitions if not isinstance(node, ast.ClassDef)}  # type: ignore[attr-defined]

    def ref(self, used: str, called: bool) -> str:
        """The reference to keep, an empty string for none."""
        root, _, rest = used.partition(".")
        if root in (self._own, "super()"):
            if not rest and not called:
                return ""
            return f"self{used[len(root) :]}" if self._renamed and root == self._own else used
        if root == "?":
            return used if rest in self._methods else ""
        if root in self._imports or root in self.inner:
            return used
        if root in self._local:
            if root in self._types:
                return used if rest or called else ""
            if root in self._values and rest not in _TENSOR_METHODS:
                return used if rest or called else ""
            return f"?.{rest}" if rest in self._methods else ""
        if root in self._bound or (self._open and root not in _BUILTINS):
            return used
        return ""


def _with_body(summary: FunctionSummary, body: Body, refs: list[str], types: dict[str, list[str]]) -> FunctionSummary:
    values = body.values()
    todo = sorted({ref.partition(".")[0].removesuffix("()") for ref in refs})
    seen: set[str] = set()
    pairs: dict[tuple[str, str], None] = {}
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for spelled in [*types.get(name, ()), *(known for value in values.get(name, ()) for known in types_of(value))]:
            pairs[name, spelled] = None
            todo.append(spelled.partition(".")[0].removesuffix("()"))
    candidates = tuple(
        word
        for word, present in (
            ("test", body.test),
            ("log", body.log),
            ("value", body.value),
            ("rows", chooses_rows(body)),
            ("masked", chooses_by_mask(body)),
        )
        if present
    )
    return summary._replace(
        refs=tuple(refs),
        types=tuple(pairs),
        returned=_returned(body),
        compiles=tuple(body.compiles),
        candidates=candidates,
    )


def _returned(body: Body) -> tuple[str, ...]:
    inner = {node.name for node in body.definitions if not isinstance(node, ast.ClassDef)}  # type: ignore[attr-defined]
    called = {name for name in inner if f"{name}()" in body.returned}
    names = [f"{name}()" if name in called else name for name in body.returned if name in inner]
    if body.returned and all(name in ("True", "False") or name.endswith("ing()") for name in body.returned):
        names += list(body.returned)
    names += [mark for mark in (COUNT, COMPUTES) if mark in body.returned]
    return tuple(names)
