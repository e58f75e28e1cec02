"""Which of the names that a function uses are worth following, and which candidates it holds."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator
from itertools import compress
from typing import NamedTuple

from graphmend_codemod.project.summary.assignments import types_of
from graphmend_codemod.project.summary.body import Body, asks_history, chooses_by_mask, chooses_rows
from graphmend_codemod.project.summary.candidates import (
    COUNT,
    SCRIPT,
    TENSORS,
    is_of_a_script,
    is_python_annotation,
    takes_tensors,
)
from graphmend_codemod.project.summary.check_functions import CHECKS
from graphmend_codemod.project.summary.computing import COMPUTES, MAKES_OPERATOR, MARKS_CONSTANT
from graphmend_codemod.project.summary.context_managers import PASSES_ON, SWALLOWS, THROUGH, catchers
from graphmend_codemod.project.summary.imports import import_root
from graphmend_codemod.project.summary.numbers import takes_tensor
from graphmend_codemod.project.summary.python_attributes import Held
from graphmend_codemod.project.summary.quiet import AWAITED, LOUD, MAKES_LOGGER
from graphmend_codemod.project.summary.records import FunctionSummary
from graphmend_codemod.project.summary.results import GIVES, MAKES
from graphmend_codemod.project.summary.spelling import dotted
from graphmend_codemod.project.summary.walking import walk

_BUILTINS = frozenset(dir(builtins)) - {"super"}
UNINTERESTING_ROOTS = frozenset(sys.stdlib_module_names) | {
    "einops", "jax", "flax", "numpy", "pandas", "PIL", "scipy", "tensorflow", "torch", "tqdm",
    "typing_extensions",
}  # fmt: skip
"""Packages that lead to no code of the project."""


_TENSOR_METHODS = frozenset(
    """add any argmax clone contiguous copy_ cpu detach device dim dtype expand fill_ flatten float gather half
    is_floating_point item long masked_fill masked_fill_ max mean min mul mul_ ndim new_ones new_zeros numel
    permute pow repeat reshape requires_grad shape size softmax split sqrt squeeze std sum tolist transpose type
    type_as unbind unsqueeze view view_as zero_""".split()
)
"""Methods that are followed only on names whose class is said: nearly always they belong to tensors."""
_CANDIDATES = ("test", "log", "value", "rows", "masked", "list")


_Pairs = tuple[tuple[str, str], ...]
Head = tuple[str, int, int, str, str, tuple[str, ...], _Pairs, str, tuple[str, ...], _Pairs]
"""What the head of a function says: the first fields of its summary, up to `imports`."""


class Pending:
    """A function whose summary waits for its class or module to be known. `local` are the names that it binds."""

    __slots__ = ("body", "head", "local", "outer", "owner")

    def __init__(self, head: Head, body: Body, local: set[str], owner: str, outer: str) -> None:
        self.head = head
        self.body = body
        self.local = local
        self.owner = owner
        self.outer = outer


class Around(NamedTuple):
    """What the module around a function binds and defines. `stars` is true where a star import may bind more."""

    bound: set[str]
    methods: set[str]
    stars: bool
    held: Held


def finish(pending: Pending, around: Around) -> FunctionSummary:
    """The summary of a function with its references, sorted, and its candidates."""
    body, owner = pending.body, pending.owner
    if owner and body.asked and not body.test:
        asked = [name[5:] for name in body.asked if name.startswith("self.")]
        body.test = not all(around.held.is_python(owner, name) for name in asked)
    types: dict[str, list[str]] = {}
    for name, spelled in body.types:
        types.setdefault(name, []).append(spelled)
    for name, annotation in body.parameters.items():
        if annotation and name != body.own and not is_python_annotation(annotation):
            types.setdefault(name, []).append(f":{annotation}")
    if not pending.outer and is_of_a_script(body.calls):
        body.returned[SCRIPT] = None
    elif not pending.outer and takes_tensors(body.parameters, body.reads | body.calls, body.given, body.types):
        body.returned[TENSORS] = None
    inner = {node.name for node in body.definitions if not isinstance(node, ast.ClassDef)}  # type: ignore[attr-defined]
    refs = _references(pending, around, types, inner)
    flags = (
        body.test,
        body.log,
        body.value or body.lines.switches_off or asks_history(body) or takes_tensor(body, owner, around.held),
        chooses_rows(body),
        chooses_by_mask(body),
        bool(owner) and body.lines.keeps_integers,
    )
    return FunctionSummary(
        *pending.head,
        tuple(refs),
        _types(refs, body, types),
        _returned(body.returned, inner),
        tuple(body.compiles),
        tuple(compress(_CANDIDATES, flags)),
        tuple(_caught(pending, around, types, inner)) if body.catching else (),
    )


CALLED = "?"
"""Stands for a function that was given to this one, or to the one around it, among what is called."""
COMPUTED = "self.?()"
"""A call of something looked up at run time, `getattr(self, name)(x)`: it may be any module of the instance."""

CALLS = "?()"
"""Says that something is called there, among what is used where an exception may be caught."""


def _caught(pending: Pending, around: Around, types: Collection[str], inner: set[str]) -> Iterator[tuple[str, str]]:
    """What is used where an exception may be caught, with what may catch it."""
    whole = pending.body
    for node in whole.catching:
        body = Body(whole.lines, whole.own, whole.parameters, whole.python)
        walk(node.body, body)
        body.values, body.imports = whole.values, whole.imports
        part = Pending(pending.head, body, pending.local, pending.owner, pending.outer)
        found = _references(part, around, types, inner)
        if not body.calls.isdisjoint(whole.dynamic):
            # A loop over `self.layers` calls each: what such attributes hold is called as well.
            found += [
                f"self.{name[len(whole.own) + 1 :]}()" for name in whole.reads if name.startswith(f"{whole.own}.")
            ]
        for caught in catchers(node):
            spelled = caught.removeprefix("with ")
            values = whole.values.get(spelled, ()) if caught != spelled else ()
            made = [f"with {next(types_of(value), spelled).removesuffix('()')}" for value in values]
            by = made[-1] if made else caught
            yield from ((used, by) for used in found)
            if _calls_given(body, pending, around, inner):
                yield CALLED, by
            if whole.own and _calls_computed(node):
                yield COMPUTED, by
            yield from ((used, by) for used in _calls_made(node))
            if any(isinstance(part, ast.Call) for each in node.body for part in ast.walk(each)):
                yield CALLS, by


def _calls_made(node: ast.Try | ast.With | ast.AsyncWith) -> Iterator[str]:
    """`Part.forward()` for `Part(3)(x)`, `Part.prepare()` for `Part(3).prepare(x)`: what is called once it is made."""
    for part in (part for each in node.body for part in ast.walk(each) if isinstance(part, ast.Call)):
        method = part.func.attr if isinstance(part.func, ast.Attribute) else "forward"
        for inner in ast.walk(part.func):
            if isinstance(inner, ast.Call) and (spelled := dotted(inner.func)):
                yield f"{spelled}.{method}()"


def _calls_computed(node: ast.Try | ast.With | ast.AsyncWith) -> bool:
    """True where something computed is called: `getattr(self, name)(x)`."""
    parts = (part for each in node.body for part in ast.walk(each))
    return any(isinstance(part, ast.Call) and not isinstance(part.func, (ast.Name, ast.Attribute)) for part in parts)


def _calls_given(body: Body, pending: Pending, around: Around, inner: set[str]) -> bool:
    """True where a function may call what it, or the function around it, was given: no function that it knows."""
    known = inner | _BUILTINS | {name for name, _ in body.imports}
    return any(
        used in pending.local or (pending.outer and used not in around.bound)
        for used in body.calls
        if "." not in used and used not in known
    )


def _references(pending: Pending, around: Around, types: Collection[str], inner: set[str]) -> list[str]:
    """The names that are worth following among those that a function uses."""
    body, local = pending.body, pending.local
    bound, methods, values = around.bound, around.methods, body.values
    anything = around.stars or bool(pending.outer)
    own = body.own or ("self" if pending.outer or "self" in body.parameters else "")
    renamed = own if body.own and own != "self" else ""
    inside = inner
    if body.imports:
        inside = inner | {name for name, target in body.imports if import_root(target) not in UNINTERESTING_ROOTS}
    names = body.names - body.calls - local - _BUILTINS
    found = names if anything else names & bound
    found |= inner & body.names
    found.discard(own)
    for uses, end in ((body.calls, "()"), (body.reads - body.calls, "")):
        for used in uses:
            root, _, rest = used.partition(".")
            if root in (own, "super()"):
                if rest or end:
                    found.add((f"self{used[len(root) :]}" if root == renamed else used) + end)
            elif root == "?":
                if rest in methods:
                    found.add(used + end)
            elif root in inside:
                found.add(used + end)
            elif root in local:
                if root in types or (root in values and rest not in _TENSOR_METHODS):
                    if rest or end:
                        found.add(used + end)
                elif rest in methods:
                    found.add(f"?.{rest}{end}")
            elif root in bound or (anything and root not in _BUILTINS):
                found.add(used + end)
    return sorted(found)


def _types(refs: list[str], body: Body, types: dict[str, list[str]]) -> tuple[tuple[str, str], ...]:
    """What is known of the values of local names in these references, and of those that they come from."""
    values = body.values
    if not types and not values:
        return ()
    todo = sorted({ref.partition(".")[0].removesuffix("()") for ref in [*refs, *(given for _, given in body.compiles)]})
    seen: set[str] = set()
    pairs: dict[tuple[str, str], None] = {}
    while todo:
        name = todo.pop()
        if name in seen or not (name in types or name in values):
            continue
        seen.add(name)
        for spelled in [*types.get(name, ()), *(known for value in values.get(name, ()) for known in types_of(value))]:
            pairs[name, spelled] = None
            todo.append(spelled.partition(".")[0].removesuffix("()"))
    return tuple(pairs)


def _returned(returned: dict[str, None], inner: set[str]) -> tuple[str, ...]:
    if not returned:
        return ()
    names: list[str] = []
    if inner:
        called = {name for name in inner if f"{name}()" in returned}
        names = [f"{name}()" if name in called else name for name in returned if name in inner]
    if all(name.endswith("ing()") or name in ("True", "False") for name in returned):
        names += returned
    marks = (
        COUNT,
        TENSORS,
        SCRIPT,
        COMPUTES,
        LOUD,
        SWALLOWS,
        PASSES_ON,
        AWAITED,
        MARKS_CONSTANT,
        MAKES_OPERATOR,
        MAKES_LOGGER,
    )
    names += [mark for mark in returned if mark in marks or mark.startswith((CHECKS, GIVES, THROUGH))]
    names += [f"{MAKES}{name[:-2]}" for name in returned if name.endswith("()") and name[:-2] not in inner]
    return tuple(names)


def finished(functions: list[Pending], around: Around, *, foreign: bool) -> list[FunctionSummary]:
    """The summaries of functions; in a file with `foreign` imports, with a note on those that call one with such."""
    found = [finish(each, around) for each in functions]
    near = {f"{each.qualname}()" for each in found if foreign and "value" in each.candidates and not each.owner}
    return [
        each._replace(candidates=(*each.candidates, "value"))
        if near and "value" not in each.candidates and not near.isdisjoint(each.refs)
        else each
        for each in found
    ]
