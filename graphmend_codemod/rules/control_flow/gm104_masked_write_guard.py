"""masked-write-guard (GM104): a data-dependent `if mask.any()` around a write under the same mask.

Without a true element the masked write changes nothing, so the test decides nothing and costs a break and a sync.
The compile path writes without asking; the original stays behind it, and eager mode runs that. Where all is known, the
test only gets `torch.compiler.is_compiling() or` in front. Else the compile path asks while tracing whether the mask
is a bool tensor that leaves the shape of the target as it is, and whether the target's dtype holds what is written.

With the setting `one-path = true`, a write that makes a new tensor stands alone where all is known (an unsafe fix).
"""

from __future__ import annotations

import ast
import enum
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import same
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, Kind, Value
from graphmend_codemod.core.findings import Edit, Form, Original, Replacement, Safety
from graphmend_codemod.rules.framework.edits import beside, in_front
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions import split
from graphmend_codemod.rules.proofs.select.select_proof import demand_no_later_write

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        ...
        return x
"""

rule = Rule(
    code="GM104",
    slug="masked-write-guard",
    title="write under the mask without testing it first",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(cost=Cost.BOTH_ARMS, cost_note="the write is always done"),
    examples=(
        Example(
            before="""
            scores = torch.sigmoid(x.float())
            mask = torch.gt(scores, 0.7)
            if mask.any():
                scores = scores.masked_fill(mask, 0.0)
            x = scores
            """,
            after="""
            scores = torch.sigmoid(x.float())
            mask = torch.gt(scores, 0.7)
            if torch.compiler.is_compiling() or mask.any():
                scores = scores.masked_fill(mask, 0.0)
            x = scores
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4), torch.zeros(2, 4, dtype=torch.bool)",),
        ),
        Example(
            before="""
            if torch.any(mask):
                x = x.masked_fill(mask, 0.0)
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(x, torch.Tensor)
                and isinstance(mask, torch.Tensor)
                and mask.dtype == torch.bool
                and x.is_floating_point()
                and torch.broadcast_shapes(x.shape, mask.shape) == x.shape
            ):
                x = x.masked_fill(mask, 0.0)
            elif torch.any(mask):
                x = x.masked_fill(mask, 0.0)
            """,
            setup=_SETUP,
            inputs=(
                "torch.ones(2, 4), torch.zeros(2, 4, dtype=torch.bool)",
                "torch.ones(2, 4), torch.ones(2, 4, dtype=torch.bool)",
            ),
        ),
        Declined(
            source="""
            if mask.any():
                x = x.masked_fill(mask, float(x.max()))
            """,
            because="reads a tensor's value",
            setup=_SETUP,
        ),
        Clean(
            source="""
            x = x.masked_fill(mask, 0.0)
            """,
            setup=_SETUP,
        ),
    ),
)


class _Form(enum.Enum):
    """How a masked write is spelled: a new tensor, `masked_fill_`, or `x[mask] = fill`."""

    COPY = enum.auto()
    FILL = enum.auto()
    INDEX = enum.auto()


class _Write(NamedTuple):
    """A masked write of `fill` into `target` under `mask`."""

    target: ast.expr
    mask: ast.expr
    fill: ast.expr
    form: _Form

    @property
    def copies(self) -> bool:
        """True when it makes a new tensor and binds it to the target's name."""
        return self.form is _Form.COPY


@rule.on(ast.If, candidate="test")
def guard_around_masked_write(site: Site, node: ast.If) -> Verdict | None:
    """`if m.any(): x = x.masked_fill(m, v)` and its in-place forms."""
    if node.orelse or len(node.body) != 1 or (condition := split(site, node.test)) is None:
        return None
    guarded = _any_of(site, condition.tensors[0]) if len(condition.tensors) == 1 else None
    inner = site.at(node.body[0])
    write = _masked_write(inner, node.body[0]) if inner else None
    if guarded is None or inner is None or write is None or not same(guarded, write.mask):
        return None
    message = f"data-dependent branch around a masked write: `{speculation.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    try:
        facts = _facts(site, inner, write)
    except NotProven as reason:
        return Verdict(message, declined=str(reason))
    if site.settings.one_path and not (facts or condition.static or site.flow.splits) and write.copies:
        comments = [part for text in site.comments(node, (node.body[0],)) for part in (text, "\n")]
        alone: tuple[str | Original, ...] = (*comments, site.original(node.body[0], -1))
        edit = Edit((Replacement(site.span(node), alone),), form=Form.ONE_PATH, scriptable=True, since="")
        return Verdict(message, edit=edit, safety=Safety.UNSAFE)
    if facts:
        static = [site.operand_of_and(operand) for operand in condition.static]
        return Verdict(message, edit=in_front(site, node, [*static, *facts], [site.original(node.body[0])]))
    test = condition.tensors[0]
    opening, closing = ("(", ")") if condition.static else ("", "")
    parts = (f"{opening}{site.compiling} or ", site.original(test), closing)
    return Verdict(message, edit=beside(site, site.span(test), parts, scriptable=True))


def _any_of(site: Site, node: ast.expr) -> ast.expr | None:
    """`m` for `m.any()`, `torch.any(m)` and `m.any().item()`."""
    if not isinstance(node, ast.Call):
        return None
    if torch_function(site.resolve(node.func)) == "any":
        return node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        if node.func.attr == "any":
            return node.func.value
        if node.func.attr == "item":
            return _any_of(site, node.func.value)
    return None


def _masked_write(site: Site, statement: ast.stmt) -> _Write | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            return _Write(target.value, target.slice, statement.value, _Form.INDEX)
        if isinstance(target, ast.Name):
            return _copying(site, target, statement.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "masked_fill_" and len(call.args) == 2:
            return _Write(call.func.value, call.args[0], call.args[1], _Form.FILL)
    return None


def _copying(site: Site, target: ast.Name, value: ast.expr) -> _Write | None:
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    name, arguments = torch_function(site.resolve(value.func)), list(value.args)
    if name is None and isinstance(value.func, ast.Attribute):
        name, arguments = value.func.attr, [value.func.value, *arguments]
    if name == "where" and len(arguments) == 3:
        arguments = [arguments[2], arguments[0], arguments[1]] if torch_function(site.resolve(value.func)) else []
    elif name != "masked_fill":
        return None
    if len(arguments) != 3 or not (isinstance(arguments[0], ast.Name) and arguments[0].id == target.id):
        return None
    return _Write(arguments[0], arguments[1], arguments[2], _Form.COPY)


def _facts(site: Site, inner: Site, write: _Write) -> list[str]:
    """Trace-time conditions under which the write does nothing where the mask has no true element."""
    target, mask, fill = inner.value(write.target), inner.value(write.mask), inner.value(write.fill)
    verdict = inner.judge(write.fill) & inner.judge(write.mask)
    if verdict.impure or verdict.raises:
        raise NotProven(verdict.impure or f"{verdict.raises} where eager mode skips it")
    if write.form is not _Form.COPY and not (fill.is_python or fill.is_single):
        raise NotProven(f"`{site.text(write.fill)}` may have more than one element, as many as the mask selects")
    texts = {id(each): site.operand(each) for each in (write.target, write.mask)}
    name, mask_name = texts[id(write.target)], texts[id(write.mask)]
    facts = []
    for node in (write.target, write.mask):
        known = site.value(node)
        if not known.is_tensor or known.hint:
            facts.append(f"isinstance({texts[id(node)]}, {site.torch}.Tensor)")
    if site.value(write.mask).dtype != BOOL or mask.hint:
        facts.append(f"{mask_name}.dtype == {site.torch}.bool")
    facts += [f"{text}.is_floating_point()" for text in sorted(verdict.needs_floating)]
    facts += _fitting(site, inner, write, target, fill, name)
    if mask.shape != target.shape:
        facts.append(_same_places(site, write, name, mask_name))
    if write.copies:
        if target.hint or not (isinstance(write.target, ast.Name) and site.sole_owner(write.target.id)):
            demand_no_later_write(site, [write.target], [name])
    else:
        facts.append(f"not ({name}.is_leaf and {name}.requires_grad)")
    return list(dict.fromkeys(facts))


def _fitting(site: Site, inner: Site, write: _Write, target: Value, fill: Value, name: str) -> list[str]:
    """What must be asked for the target to hold the fill: torch raises where a number does not fit."""
    if fill.kind is Kind.TENSOR:
        if write.form is _Form.COPY and not fill.is_single:
            raise NotProven(f"`{site.text(write.fill)}` may have a different shape from `{name}`")
        return [f"{site.operand(write.fill)}.dtype == {name}.dtype"]
    if speculation.fits(inner.evaluator, write.fill, inner.place.env, target) and not target.hint:
        return []
    floating = inner.evaluator.names.tensor(f"float:{inner.evaluator.names.new('dtype')}")
    if not speculation.fits(inner.evaluator, write.fill, inner.place.env, floating):
        raise NotProven(f"`{site.text(write.fill)}` may not fit into the dtype of `{name}`, which raises")
    return [f"{name}.is_floating_point()"]


def _same_places(site: Site, write: _Write, name: str, mask: str) -> str:
    """The condition under which the mask chooses places of the target and makes it no larger."""
    if write.form is _Form.INDEX:
        return f"{name}.shape[: {mask}.dim()] == {mask}.shape"
    return f"{site.torch}.broadcast_shapes({name}.shape, {mask}.shape) == {name}.shape"
