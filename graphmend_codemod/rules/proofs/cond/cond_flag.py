"""Flags that are read from a tensor in one function and choose code in another one of the same module.

`flag = mask.any().item()` is handed down, call by call, to the function that decides by it: its *decider*. Where the
decider can be traced for either value and returns the same kind of result for both, `torch.cond` may hold the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.scope import children, parameters, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.proofs.calls.certain_calls import Link
from graphmend_codemod.rules.proofs.cond.cond_output_dtype import why_not_one_dtype
from graphmend_codemod.rules.proofs.cond.constant_floats import floats_read
from graphmend_codemod.rules.proofs.cond.traceable import is_compile_path, why_not_traced
from graphmend_codemod.rules.proofs.memory.module_memory import is_name
from graphmend_codemod.rules.proofs.rowwise.packed_rows import Packed, packed_in, why_not_static

_READ = re.compile(r"=\s*(?:bool\(\s*)?\w+(?:\s*\.\w+\([-\d]*\))?\s*\.any\(\s*\w*\s*\)\s*(?:\.item\(\)|\))")
"""What a file with a flag holds: a look at its text costs less than its tree."""
_READ_BACK = re.compile(r"\.any\(\s*\w*\s*\)\s*(?:\.item\(\)|\))")
"""The end of that, which begins with a literal: the engine of `re` skips through a text for it."""


@dataclass(frozen=True)
class Choice:
    """A flag, from where it is read to where it decides; `reason` says why the two cannot be put under `torch.cond`.

    `reader` and `decider` are functions with the flag's name in each, `mask` is what it is read from. `guards` are
    names that must be false in the reader for the flag to stay a tensor; neither may there be gradients or autocast.
    `packed` is the statement in the decider that packs rows, `guards_below` are its names of the guards. `floats` is
    what may be a float among all that is read below, `unknown` such a read that the decider has no words for. `links`
    are the calls that hand the flag down.
    """

    reader: Definition
    flag: str
    mask: str
    decider: Definition
    parameter: str
    guards: tuple[str, ...] = ()
    guards_below: tuple[str, ...] = ()
    packed: Packed | None = None
    reason: str | None = None
    floats: tuple[str, ...] = ()
    unknown: str | None = None
    links: tuple[Link, ...] = ()

    @property
    def safety(self) -> Safety:
        """Unsafe where something that is read below cannot be asked whether it is a constant, and with packed rows.

        Packing multiplies work (GM506), and without it the flag must not stay a tensor.
        """
        return Safety.SAFE if self.unknown is None and self.packed is None else Safety.UNSAFE


@lru_cache(maxsize=4)
def choices(text: str) -> tuple[Choice, ...]:
    """All flags of a module that choose code in another function of it. Parses the text only where it may hold one."""
    if _READ_BACK.search(text) is None or _READ.search(text) is None:
        return ()
    calls = calls_in(text)
    return tuple(
        choice
        for reader in calls.definitions.values()
        for node in walk_scope(reader.node)
        if isinstance(node, ast.Assign) and (read := _flag(calls, node)) is not None
        if (choice := _Following(calls, reader, node, *read).choice()) is not None
    )


def _flag(calls: ModuleCalls, node: ast.Assign) -> tuple[str, str] | None:
    """The flag's name and the mask's for `flag = mask.any().item()`."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name) or len(node.targets) != 1 or not isinstance(value, ast.Call) or value.keywords:
        return None
    read: ast.expr | None = None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "item" and not value.args:
        read = value.func.value
    elif isinstance(value.func, ast.Name) and value.func.id == "bool" and len(value.args) == 1:
        read = value.args[0]
    mask = _mask_of(calls, read) if read is not None else None
    return (target.id, mask) if mask is not None else None


def _mask_of(calls: ModuleCalls, node: ast.expr) -> str | None:
    """`mask` for `mask.any()`, `torch.any(mask)` and `mask.flatten().any()`."""
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    if calls.qualified(node.func) == "torch.any":
        return node.args[0].id if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else None
    if node.func.attr != "any" or node.args:
        return None
    inner = node.func.value
    flat = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not inner.keywords
    if flat and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        given = [ast.unparse(each) for each in inner.args]
        if (inner.func.attr, given) in (("flatten", []), ("view", ["-1"]), ("reshape", ["-1"])):
            inner = inner.func.value
    return inner.id if isinstance(inner, ast.Name) else None


@dataclass(frozen=True)
class _Step:
    """A function that gets the flag. `given` maps its names to those of the reader."""

    function: Definition
    flag: str
    given: Mapping[str, str]


class _Following:
    """Follows one flag down."""

    def __init__(self, calls: ModuleCalls, reader: Definition, read: ast.Assign, flag: str, mask: str) -> None:
        self.calls, self.reader, self.read, self.flag, self.mask = calls, reader, read, flag, mask

    def choice(self) -> Choice | None:
        """The choice, None when no other function of the module decides by the flag."""
        own = {node.id: node.id for node in walk_scope(self.reader.node) if isinstance(node, ast.Name)}
        todo, deciders, reasons = [_Step(self.reader, self.flag, own)], [], []
        seen: dict[tuple[str, int], _Step] = {}
        self.links: list[Link] = []
        while todo:
            step = todo.pop(0)
            key = (step.function.qualname, step.function.node.lineno)
            if key in seen:
                reasons += [f"`{step.function.qualname}` is called in several ways"] * (seen[key] != step)
                continue
            seen[key] = step
            reasons += [f"`{self.flag}` is bound in several places"] * self._bound_again(step)
            if step.function is not self.reader and _tests(step.function, step.flag):
                deciders.append(step)
                continue
            below, other = self._handed_down(step)
            todo += below
            self.links += self._links_of(step)
            if step.function is not self.reader:
                reasons += [f"`{step.flag}` is used as a Python value in `{short(each)}`" for each in other]
        if not deciders:
            return None
        reasons += self._other_callers(seen)
        reason = reasons[0] if reasons else None
        if len(deciders) > 1:
            reason = reason or f"`{self.flag}` is branched on in several functions"
        return self._judged(deciders[0], reason)

    def _other_callers(self, seen: Mapping[tuple[str, int], _Step]) -> Iterator[str]:
        """Functions on the way that get another flag from a call somewhere in the module."""
        for key, step in seen.items():
            for by, arguments in self.calls.sites(key) if step.function is not self.reader else ():
                given = arguments.get(step.flag)
                own = isinstance(given, ast.Name) and by in seen and given.id == seen[by].flag
                if not own and not (given is None or (isinstance(given, ast.Constant) and not given.value)):
                    yield f"`{step.function.qualname}` gets a different flag from `{by[0]}`"

    def _bound_again(self, step: _Step) -> bool:
        """True when a function binds the flag other than by reading it, or beside that on a compile path."""
        for node in walk_scope(step.function.node):
            if isinstance(node, ast.Name) and node.id == step.flag and not isinstance(node.ctx, ast.Load):
                beside = step.function is self.reader and self._beside_read(node)
                if not beside:
                    return True
        return False

    def _beside_read(self, name: ast.Name) -> bool:
        if any(name is target for target in self.read.targets):
            return True
        for node in walk_scope(self.reader.node):
            if isinstance(node, ast.If) and self.read in node.orelse and is_compile_path(node):
                return any(name is part for statement in node.body for part in walk_in_layers(statement))
        return False

    def _handed_down(self, step: _Step) -> tuple[list[_Step], list[ast.AST]]:
        """Calls that hand the flag on, and the nodes that use it for something else."""
        below: list[_Step] = []
        allowed: set[int] = set()
        for node in walk_scope(step.function.node):
            if not isinstance(node, ast.Call):
                continue
            call = _called_by_name(node)
            callee = self.calls.callee(step.function, call)
            if callee is None:
                continue
            arguments = callee.arguments(call)
            flags = [p for p, given in arguments.items() if isinstance(given, ast.Name) and given.id == step.flag]
            for parameter in flags:
                allowed.add(id(arguments[parameter]))
                given = {
                    p: step.given[each.id]
                    for p, each in arguments.items()
                    if isinstance(each, ast.Name) and each.id in step.given and not _rebinds(callee, p)
                }
                below.append(_Step(callee, parameter, given))
        return below, [node for node in _uses(step.function, step.flag) if id(node) not in allowed]

    def _judged(self, step: _Step, reason: str | None) -> Choice:
        decider = step.function
        packed = packed_in(self.calls, decider)
        own_guards, misused = self._own_uses()
        below = tuple(dict.fromkeys(_guards(decider, step.flag)))
        above = [step.given.get(name) for name in below]
        guards = tuple(dict.fromkeys([*own_guards, *(name for name in above if name is not None)]))
        reason = reason or misused or self._why_no_mask(step, packed)
        if None in above:
            reason = reason or f"`{below[above.index(None)]}` may have a different value where the flag is read"
        changed = next((name for name in guards if self._changes_below(name)), None)
        if changed is not None:
            reason = reason or f"`{changed}` changes after the flag is read"
        reason = reason or why_not_traced(self.calls, decider, step.flag, below, packed)
        if packed is not None:
            reason = reason or why_not_static(self.calls, decider, packed)
        reason = reason or why_not_one_dtype(self.calls, decider, step.flag, below)
        floats, unknown = floats_read(self.calls, decider, step.flag) if reason is None else ((), None)
        return Choice(
            self.reader,
            self.flag,
            self.mask,
            decider,
            step.flag,
            guards,
            below,
            packed,
            reason,
            floats,
            unknown,
            tuple(self.links),
        )

    def _links_of(self, step: _Step) -> Iterator[Link]:
        for node in walk_scope(step.function.node):
            call = _called_by_name(node) if isinstance(node, ast.Call) else None
            callee = self.calls.callee(step.function, call) if call is not None else None
            if call is not None and callee is not None:
                given = callee.arguments(call).values()
                if any(isinstance(each, ast.Name) and each.id == step.flag for each in given):
                    yield Link(step.function, call, callee)

    def _why_no_mask(self, step: _Step, packed: Packed | None) -> str | None:
        if packed is None:
            return None
        if step.given.get(packed.mask) != self.mask:
            return f"`{packed.mask}` may not be the mask that `{self.flag}` was read from"
        bound = [
            node.value
            for node in walk_scope(self.reader.node)
            if isinstance(node, ast.Assign) and any(is_name(each, self.mask) for each in node.targets)
        ]
        known = len(bound) == 1 and isinstance(bound[0], ast.Compare)
        return (
            None
            if known
            else (
                f"cannot infer that `{self.mask}` is a bool mask; "
                "annotate it with `torch.BoolTensor`, or compare it: `!= 0`"
            )
        )

    def _own_uses(self) -> tuple[list[str], str | None]:
        """Names that keep the reader from using the flag where they are false, or the use that nothing guards."""
        _, used = self._handed_down(_Step(self.reader, self.flag, {}))
        guards: list[str] = []
        for node in used:
            guard = _guard_of(self.reader, node)
            if guard is None:
                return [], f"`{self.flag}` is used as a Python value in `{short(_around(self.reader, node))}`"
            guards.append(guard)
        return guards, None

    def _changes_below(self, name: str) -> bool:
        return any(
            isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
            for node in walk_scope(self.reader.node)
            if getattr(node, "lineno", 0) > self.read.lineno
        )


def _called_by_name(call: ast.Call) -> ast.Call:
    """`layer(x)` for `checkpoint(layer.__call__, x)`."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Attribute) and first.attr == "__call__":
        return ast.Call(func=first.value, args=call.args[1:], keywords=[])
    return call


def _uses(function: Definition, name: str) -> list[ast.Name]:
    return [
        node
        for node in walk_scope(function.node)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _rebinds(function: Definition, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in walk_scope(function.node)
    )


def _tests(function: Definition, flag: str) -> bool:
    return any(
        isinstance(node, (ast.If, ast.IfExp)) and any(part.id == flag for part in _names(node.test))
        for node in walk_scope(function.node)
    )


def _names(node: ast.AST) -> Iterator[ast.Name]:
    yield from (part for part in walk_in_layers(node) if isinstance(part, ast.Name))


def _around(function: Definition, node: ast.AST) -> ast.AST:
    return next((each for each in walk_scope(function.node) if node in children(each)), node)


def _guard_of(function: Definition, use: ast.AST) -> str | None:
    """The name that must be true for `use` to be evaluated: `guard and flag`, or `if guard:` around it."""
    for node in walk_scope(function.node):
        first = node.values[0] if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else None
        rest = node.values[1:] if isinstance(node, ast.BoolOp) else []
        if isinstance(first, ast.Name) and any(part is use for value in rest for part in walk_in_layers(value)):
            return first.id
        inside = node.body if isinstance(node, ast.If) and node.test is not use else []
        if any(part is use for statement in inside for part in walk_in_layers(statement)):
            guard = node.test if isinstance(node, ast.If) else None
            if isinstance(guard, ast.Name):
                return guard.id
    return None


def _guards(decider: Definition, flag: str) -> Iterator[str]:
    """Parameters that are tested together with the flag, or add to the result: it is taken for a plain one without."""
    names = {each.arg for each in parameters(decider.node)}
    for node in walk_scope(decider.node):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            named = [value.id for value in node.values if isinstance(value, ast.Name)]
            if flag in named:
                yield from (name for name in named if name != flag and name in names and not _rebinds(decider, name))


def is_dispatched(choice: Choice) -> bool:
    """True when the decider already hands the flag to `torch.cond`."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cond"
        for node in walk_scope(choice.decider.node)
    )
