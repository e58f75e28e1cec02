"""branch-writes-state (GM105): a data-dependent branch that assigns a tensor to an attribute or buffer.

Rotary embeddings keep several frequency tables and register the one that fits the longest position. The compile path
computes what both branches would write, without touching anything else, asks whether both have one shape and dtype, and
writes the selected tensor under the same name. It never copies in place: attributes often alias each other
(`self.original_inv_freq = self.inv_freq`), and a copy into one would change the other. Eager mode runs the original
statements, word for word.

A branch without `else` selects between the new value and the one that the attribute has: a state that grows with the
longest input (dynamic rotary embeddings) is computed for every input, and kept where it would not be replaced. A Python
number that the same call gives is written in any case.

A branch that initialises parameters or buffers once, under a flag that is kept in a buffer
(`if not self.done: self.scale.data = 1 / x.std(0); self.done.fill_(True)`), is computed for every input, and each
tensor gets the selected value where it fits; otherwise the branch runs as it did. Statements of the branch must be
cheap, draw no random numbers, and be unable to raise where eager mode skips them.

A value that a branch caches for itself (`if not hasattr(self, "a"): self.a = ...`) is computed in the graph instead of
stored, where every call would compute the same one and nothing else in the project reads it. An attribute that a branch
only moves to a device is moved there for the select alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.core.findings import Edit, Safety
from graphmend_codemod.rules.framework.edits import computed_in_front
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import (
    FLOAT_WARNING,
    Clean,
    Contract,
    Cost,
    Declined,
    Example,
    Rule,
    Verdict,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions import Condition, is_registered, split
from graphmend_codemod.rules.proofs.memory.cached_values import cached_value, why_it_is_needed, why_it_may_change
from graphmend_codemod.rules.proofs.memory.growing_state import alike, growing_edit, larger_of
from graphmend_codemod.rules.proofs.memory.initialised_state import FILLS, initialising_edit
from graphmend_codemod.rules.proofs.select.identity import why_attributes_must_stay

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.short_scale = self.scale

    def build(self, factor: float) -> torch.Tensor:
        return torch.full((4,), factor)

    def forward(self, x: torch.Tensor):
        longest = torch.max(x)
        ...
        return x * self.scale
"""

_GROWING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.longest = 3

    def scaled(self, length: torch.Tensor) -> tuple[torch.Tensor, float]:
        return torch.ones(4) * length, 1.0

    def forward(self, x: torch.Tensor):
        length = torch.max(x)
        ...
        return x * self.scale
"""

rule = Rule(
    code="GM105",
    slug="branch-writes-state",
    title="select the written tensor instead of branching around the write",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="what each branch would write is always computed, and one is selected",
        compiled_state="the selected tensor is written; values that a branch caches are not stored",
        compiled_logs=FLOAT_WARNING,
    ),
    examples=(
        Example(
            before="""
            if longest > 3:
                if not hasattr(self, "long_scale"):
                    self.long_scale = self.build(2.0)
                self.register_buffer("scale", self.long_scale, persistent=False)
            else:
                self.register_buffer("scale", self.short_scale, persistent=False)
            """,
            after="""
            if torch.compiler.is_compiling():
                # What either branch writes, before it is known which one is taken.
                long_scale = self.build(2.0)
            if (
                torch.compiler.is_compiling()
                and (long_scale.shape, long_scale.dtype) == (self.short_scale.shape, self.short_scale.dtype)
            ):
                self.register_buffer(
                    "scale",
                    torch.where(longest > 3, long_scale, self.short_scale),
                    persistent=False,
                )
            elif longest > 3:
                if not hasattr(self, "long_scale"):
                    self.long_scale = self.build(2.0)
                self.register_buffer("scale", self.long_scale, persistent=False)
            else:
                self.register_buffer("scale", self.short_scale, persistent=False)
            """,
            setup=_SETUP,
            inputs=("torch.ones(4)", "torch.full((4,), 5.0)", "torch.ones(4)"),
        ),
        Example(
            before="""
            if length > self.longest:
                scale, self.factor = self.scaled(length)
                self.register_buffer("scale", scale, persistent=False)
                self.longest = length
            """,
            after="""
            if torch.compiler.is_compiling() and hasattr(self, "scale"):
                # What either branch writes, before it is known which one is taken.
                scale, factor = self.scaled(length)
            if (
                torch.compiler.is_compiling()
                and hasattr(self, "scale")
                and (scale.shape, scale.dtype) == (self.scale.shape, self.scale.dtype)
            ):
                outgrown = length > self.longest
                self.factor = factor
                self.register_buffer(
                    "scale",
                    torch.where(outgrown, scale, self.scale),
                    persistent=False,
                )
                self.longest = torch.where(outgrown, length, self.longest)
            elif length > self.longest:
                scale, self.factor = self.scaled(length)
                self.register_buffer("scale", scale, persistent=False)
                self.longest = length
            """,
            setup=_GROWING,
            inputs=("torch.ones(4)", "torch.full((4,), 5.0)", "torch.full((4,), 4.0)", "torch.full((4,), 6.0)"),
        ),
        Declined(
            source="""
            if longest > 3:
                self.scale = self.build(2.0)
            """,
            because="may have side effects",
            setup=_SETUP,
        ),
        Declined(
            source="""
            if longest > 3:
                self.scale = torch.ones(int(longest))
            else:
                self.scale = self.short_scale
            """,
            because="depends on `longest`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            if longest > 3:
                if not hasattr(self, "long_scale"):
                    self.long_scale = self.build(x.shape[0])
                self.scale = self.long_scale
            else:
                self.scale = self.short_scale
            """,
            because="the branch would keep the value of the first call",
            setup=_SETUP,
        ),
        Clean(
            source="""
            if self.training:
                self.scale = self.short_scale
            """,
            setup=_SETUP,
        ),
    ),
)


class _Write(NamedTuple):
    """One attribute's new value: as an assignment, or as `register_buffer` with the keyword arguments `rest`."""

    value: str
    node: ast.expr
    registers: bool
    rest: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class _Branch:
    """What one branch computes for itself and what it writes."""

    lines: list[str] = field(default_factory=list)
    writes: dict[str, _Write] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)


@rule.on(ast.If, candidate="test")
def state_branch(site: Site, node: ast.If) -> Verdict | None:
    """`if t: self.a = A ... else: self.a = B`."""
    condition = split(site, node.test)
    if condition is None or not any(_writes_state(site, statement) for statement in [*node.body, *node.orelse]):
        return None
    message = f"data-dependent branch that writes attributes: `{speculation.short(node.test)}`"
    own = _self(site)
    try:
        if (reason := why_attributes_must_stay(site, _replaced(site, node))) is not None:
            raise NotProven(reason)
        if (
            not node.orelse
            and own is not None
            and site.torch is not None
            and condition.verdict.impure is condition.skipped is None
        ):
            return Verdict(message, edit=_alone(site, node, condition, own))
        return Verdict(message, edit=_edit(site, node, condition))
    except NotProven as reason:
        return Verdict(message, declined=str(reason))


def _alone(site: Site, node: ast.If, condition: Condition, own: str) -> Edit:
    """A branch without `else`: state that grows, or that is initialised once."""
    try:
        return growing_edit(site, node, own)
    except NotProven:
        if not any(_fills(site, part) for statement in node.body for part in walk(statement)):
            raise
    return initialising_edit(site, node, condition, own)


def _fills(site: Site, node: ast.AST) -> bool:
    """`self.a.data = x`, `self.a.copy_(x)`, `self.a.data.fill_(1)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "data":
        return _attribute(site, node.value) is not None
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in FILLS:
        return False
    filled = called.value
    inner = filled.value if isinstance(filled, ast.Attribute) and filled.attr == "data" else filled
    return _attribute(site, inner) is not None


def _replaced(site: Site, node: ast.If) -> set[str]:
    """The attributes that get a tensor of the select, and those whose tensor they would have held."""
    found: set[str] = set()
    for part in [part for statement in [*node.body, *node.orelse] for part in walk(statement)]:
        if isinstance(part, ast.Assign):
            pairs: list[ast.expr] = [*part.targets, part.value]
        elif isinstance(part, ast.Call) and _attribute(site, part.func) == "register_buffer" and part.args:
            pairs = part.args[1:2]
            name = part.args[0].value if isinstance(part.args[0], ast.Constant) else None
            found |= {name} if isinstance(name, str) else set()
        else:
            continue
        found |= {name for each in pairs if (name := _attribute(site, each)) is not None}
    return found


@rule.on(ast.Assign, candidate="test", when=lambda node: isinstance(node.value, ast.IfExp))
def larger_of_two(site: Site, node: ast.Assign) -> Verdict | None:
    """`n = n if n is not None and n > m else m`, for a state that grows with a tensor's largest value."""
    edit = larger_of(site, node)
    return (
        None
        if edit is None
        else Verdict(f"data-dependent maximum of two sizes: `{speculation.short(node.value)}`", edit=edit)
    )


def _self(site: Site) -> str | None:
    arguments = [*site.evaluator.scope.node.args.posonlyargs, *site.evaluator.scope.node.args.args]
    return arguments[0].arg if arguments and arguments[0].arg == (site.evaluator.scope.self_name or "self") else None


def _attribute(site: Site, node: ast.expr) -> str | None:
    """`a` for `self.a`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == _self(site):
        return node.attr
    return None


def _writes_state(site: Site, statement: ast.stmt) -> bool:
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _attribute(site, node):
            return True
        if (isinstance(node, ast.Call) and _attribute(site, node.func) == "register_buffer") or _fills(site, node):
            return True
    return False


def _edit(site: Site, node: ast.If, condition: Condition) -> Edit:
    if site.torch is None:
        raise NotProven(name_taken())
    if condition.several is not None:
        raise NotProven(f"`{condition.several}` may have more than one element; reduce it with `.any()` or `.all()`")
    if (why := condition.verdict.impure or condition.skipped) is not None:
        raise NotProven(why)
    if condition.static:
        raise NotProven(
            f"`{site.text(condition.static[0])}` and a tensor are combined in one condition; "
            f"nest them: `if {site.text(condition.static[0])}:` around the tensor test"
        )
    if not node.orelse:
        raise NotProven("the attributes are written in only one branch")
    read = {part.id for tensor in condition.tensors for part in walk_in_layers(tensor) if isinstance(part, ast.Name)}
    read = {name for name in read if (value := site.place.env.get(name)) is not None and value.is_tensor}
    for part in [part for statement in [*node.body, *node.orelse] for part in walk_in_layers(statement)]:
        if isinstance(part, ast.Name) and part.id in read:
            raise NotProven(f"the written tensor depends on `{part.id}`, and so may its shape")
    taken, other = _branch(site, node.body), _branch(site, node.orelse)
    for name in sorted(taken.writes.keys() ^ other.writes.keys()):
        raise NotProven(f"`self.{name}` is written in only one branch")
    lines = [*taken.lines, *other.lines]
    facts, selects = [*_asked_of_buffers(site, condition), *condition.facts], []
    for name, write in taken.writes.items():
        both = [
            _named(site, f"{first}{name}", each, lines) for first, each in (("", write), ("other_", other.writes[name]))
        ]
        facts.append(alike(*both))
        selects.append(_selected(site, name, condition.text, both[0], both[1], write, other.writes[name]))
    return computed_in_front(site, node, [], lines, facts, selects)


def _asked_of_buffers(site: Site, condition: Condition) -> list[str]:
    """A buffer that is tested by itself may have been made None."""
    tested = [part for tensor in condition.tensors for part in walk(tensor) if isinstance(part, ast.Attribute)]
    own = dict.fromkeys(site.text(part) for part in tested if is_registered(site, part))
    return [f"isinstance({each}, {site.torch}.Tensor)" for each in own]


def _named(site: Site, name: str, write: _Write, lines: list[str]) -> str:
    """A name for the value, so that it can be asked for its shape: its own, or one that is bound in a new line."""
    if site.value(write.node).is_python:
        raise NotProven(f"`{write.value}` is not a Tensor")
    if write.value.replace(".", "_").isidentifier():
        return write.value
    local = site.free_name(name)
    lines.append(f"{local} = {write.value}")
    return local


def _branch(site: Site, body: Sequence[ast.stmt]) -> _Branch:
    branch = _Branch()
    for statement in body:
        inner = site.at(statement)
        if inner is None:
            raise NotProven(f"`{speculation.short(statement)}` is not reached by torch.compile")
        _statement(inner, statement, branch)
    return branch


def _statement(site: Site, statement: ast.stmt, branch: _Branch) -> None:
    cached = cached_value(site, statement, _self(site))
    if cached is not None:
        _compute(site, cached, branch)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        _assignment(site, statement, branch)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _registration(site, statement.value, branch)
    else:
        raise NotProven(f"`{speculation.short(statement)}` does more than assign an attribute")


def _compute(site: Site, node: ast.Assign, branch: _Branch) -> None:
    """Bind locals where the branch would have filled its cache."""
    changes = why_it_may_change(site, node.value, _self(site))
    if changes is not None:
        raise NotProven(changes)
    target = node.targets[0]
    names = []
    for element in target.elts if isinstance(target, ast.Tuple) else [target]:
        attribute = _attribute(site, element)
        if attribute is not None:
            local = site.free_name(attribute)
            reader = why_it_is_needed(site, attribute, node)
            if reader is not None:
                raise NotProven(reader)
            branch.stands_for[attribute] = local
            names.append(local)
        elif isinstance(element, ast.Name):
            names.append(element.id)
        else:
            raise NotProven(f"`{speculation.short(element)}` is also written")
    arguments = _arguments(site, node.value)
    before = f"{', '.join(names)} = "
    branch.lines.append(
        site.call(
            before + arguments[0],
            list(arguments[1:]),
            deeper=1,
            after=")" if len(arguments) > 1 or arguments[0].endswith("(") else "",
        )
    )


def _arguments(site: Site, node: ast.expr) -> tuple[str, ...]:
    """A call's head with its opening bracket and its arguments; any other expression as it is."""
    if not isinstance(node, ast.Call):
        return (site.text(node),)
    return (f"{site.text(node.func)}(", *(site.text(part) for part in [*node.args, *node.keywords]))


def _assignment(site: Site, statement: ast.Assign, branch: _Branch) -> None:
    name = _attribute(site, statement.targets[0])
    if name is None:
        raise NotProven(f"`{speculation.short(statement)}` writes to something other than an attribute of `self`")
    text = _substituted(site, statement.value, branch)
    if _moves_itself(site, statement.value, name):
        branch.stands_for[name] = text
    else:
        _write(site, name, _Write(text, statement.value, False), branch)


def _moves_itself(site: Site, node: ast.expr, name: str) -> bool:
    """`self.a.to(...)` for the attribute `a`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"to", "cuda", "cpu"}
        and _attribute(site, node.func.value) == name
    )


def _registration(site: Site, call: ast.Call, branch: _Branch) -> None:
    if _attribute(site, call.func) != "register_buffer" or len(call.args) != 2:
        raise NotProven(f"`{speculation.short(call)}` may have side effects")
    name = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    if not isinstance(name, str):
        raise NotProven("the buffer's name is not a constant")
    rest = tuple(site.text(word) for word in call.keywords)
    _write(site, name, _Write(_substituted(site, call.args[1], branch), call.args[1], True, rest), branch)


def _write(site: Site, name: str, write: _Write, branch: _Branch) -> None:
    del site
    if name in branch.writes:
        raise NotProven(f"`self.{name}` is written twice in one branch")
    branch.writes[name] = write


def _substituted(site: Site, node: ast.expr, branch: _Branch) -> str:
    """The text of `node` with attributes that the branch computed for itself replaced by what stands for them."""
    name = _attribute(site, node)
    if name is not None and name in branch.stands_for:
        return branch.stands_for[name]
    for part in walk_in_layers(node):
        inner = _attribute(site, part) if isinstance(part, ast.expr) else None
        if inner is not None and (inner in branch.stands_for or inner in branch.writes):
            raise NotProven(f"`{speculation.short(node)}` reads `self.{inner}`, which the branch writes")
    verdict = site.judge(node)
    if verdict.impure is not None and not _moves_itself(site, node, _attribute_of_move(site, node)):
        raise NotProven(verdict.impure)
    return site.text(node)


def _attribute_of_move(site: Site, node: ast.expr) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _attribute(site, node.func.value) or ""
    return ""


def _selected(site: Site, name: str, condition: str, one: str, two: str, taken: _Write, other: _Write) -> str:
    if (taken.registers, taken.rest) != (other.registers, other.rest):
        raise NotProven(f"`self.{name}` is written differently in each branch")
    select = f"{site.torch}.where({condition}, {one}, {two})"
    owner = _self(site)
    if taken.registers:
        return site.call(f"{owner}.register_buffer(", [f'"{name}"', select, *taken.rest], deeper=1)
    return f"{owner}.{name} = {select}"
