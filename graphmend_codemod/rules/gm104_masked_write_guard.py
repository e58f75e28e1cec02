"""masked-write-guard (GM104): an `any()` test around a write that its mask already limits.

Without a true element the masked write changes nothing, so the test decides nothing and costs a break and a sync.
Where the source proves that eager cannot tell the write stands alone; otherwise the test gets
`torch.compiler.is_compiling() or` in front, so that eager runs as before and the compiler takes the write without
asking.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, Kind
from graphmend_codemod.findings import Edit, Original, Replacement, Safety
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.conditions import split
from graphmend_codemod.rules.site import Site

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
    contract=Contract(),
    examples=(
        Example(
            before="""
            scores = self.linear(x)
            mask = scores > 1.0
            if mask.any():
                scores = scores.masked_fill(mask, 0.0)
            x = scores
            """,
            after="""
            scores = self.linear(x)
            mask = scores > 1.0
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
            if torch.compiler.is_compiling() or torch.any(mask):
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


class _Write(NamedTuple):
    """A masked write: `target` under `mask`.

    `copies` when it makes a new tensor and binds it to the target's name; `fills` when it takes no mask but a bool one.
    """

    target: ast.expr
    mask: ast.expr
    fill: ast.expr
    copies: bool
    fills: bool = True


@rule.on(ast.If, candidate="test")
def guard_around_masked_write(site: Site, node: ast.If) -> Verdict | None:
    """`if m.any(): x = x.masked_fill(m, v)` and its in-place forms."""
    if node.orelse or len(node.body) != 1 or (condition := split(site, node.test)) is None:
        return None
    guarded = _any_of(site, condition.tensors[0]) if len(condition.tensors) == 1 else None
    inner = site.at(node.body[0])
    write = _masked_write(inner, node.body[0]) if inner else None
    if guarded is None or inner is None or write is None or ast.dump(guarded) != ast.dump(write.mask):
        return None
    message = f"asks whether the mask of a masked write has a true element: `{purity.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    reason, proven = _judge(site, inner, write)
    if reason:
        return Verdict(message, declined=reason)
    if proven and not condition.static and not site.flow.splits:
        comments = [part for text in site.comments(node, (node.body[0],)) for part in (text, "\n")]
        alone: tuple[str | Original, ...] = (*comments, site.original(node.body[0], -1))
        return Verdict(message, edit=Edit((Replacement(site.span(node), alone),)))
    test = condition.tensors[0]
    opening, closing = ("(", ")") if condition.static else ("", "")
    parts = (f"{opening}{site.compiling} or ", site.original(test), closing)
    return Verdict(message, edit=Edit((Replacement(site.span(test), parts),), imports=site.imports))


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
            return _Write(target.value, target.slice, statement.value, False, fills=False)
        if isinstance(target, ast.Name):
            return _copying(site, target, statement.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "masked_fill_" and len(call.args) == 2:
            return _Write(call.func.value, call.args[0], call.args[1], False)
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
    return _Write(arguments[0], arguments[1], arguments[2], name == "masked_fill")


def _judge(site: Site, inner: Site, write: _Write) -> tuple[str | None, bool]:
    """Why the write cannot be taken, and whether it can stand alone in eager too."""
    target, mask, fill = inner.value(write.target), inner.value(write.mask), inner.value(write.fill)
    verdict = inner.judge(write.fill) & inner.judge(write.mask)
    if verdict.impure:
        return verdict.impure, False
    if target.kind is not Kind.TENSOR:
        return f"`{site.text(write.target)}` is not known to be a tensor", False
    if mask.dtype != BOOL and not write.fills:
        return f"`{site.text(write.mask)}` is not known to be a bool tensor", False
    if not write.copies and not (fill.is_python or fill.is_single):
        return f"`{site.text(write.fill)}` may hold more than one element, whose number depends on the mask", False
    same_shape = mask.shape == target.shape
    owner = isinstance(write.target, ast.Name) and site.sole_owner(write.target.id)
    fitting = purity.fits(inner.evaluator, write.fill, inner.place.env, target)
    proven = write.copies and owner and same_shape and fitting and not verdict.raises and not verdict.needs_floating
    return None, proven and target.is_tensor
