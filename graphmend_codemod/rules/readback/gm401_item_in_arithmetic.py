"""item-in-arithmetic (GM401): `.item()` whose result is only used in tensor arithmetic.

`scale = x.max().item(); x / scale` waits for the device and breaks the graph, and the 0-dim tensor itself would
do. Under `torch.compile` it stays a tensor; eager mode reads the number, as before. `.item()` cuts the gradient, so the
tensor is detached where it could have one, and copied where it may share memory with a tensor that is changed later.
What only an annotation calls a tensor is asked for while tracing.

A 0-dim tensor means the same where it is compared to decide an error (GM301 then checks it on the device), or is in
arithmetic with a tensor of its own dtype: with another one, a Python number would leave the other's dtype alone and a
tensor might not. An integer may divide any tensor (`loss.sum() / max(valid.sum().item(), 1)`), since that gives a float
in any case. Numbers that are used as sizes, in Python arithmetic or as arguments of functions are left alone.

So it is where no name comes between: `x / t.item()`, `x.clamp(low.item(), high.item())`. What such a statement does
not prove is asked for: that both are tensors, the number's 0-dim, of one dtype and on one device. A bound that half
precision does not hold (`max(t.item(), 1e-8)`, where 1e-8 would be 0) is for float32 and float64 alone. Where an
argument or attribute that is read is written in place as well, the compile path is for `torch.no_grad()` alone: torch
2.13 keeps what was written for the gradient, and computes the number anew from that.

A number that is read in every call and used behind a test of Python alone (`if self.training:`, `if self.rate > 0:`) is
not read where the test says that nothing uses it; where it is used, the graph breaks as before.

The position of a queue is the exception: `at = int(self.at)`, `self.queue[:, at : at + n] = keys.T`, and then
`self.at[0] = (at + n) % self.size`. In the compile path the position stays a tensor, and `at + torch.arange(n)` says
where to write. Where eager mode would cut the slice off at the end of the queue, compiled code raises.

Branches on the end of the queue, `if at + n >= size: self.queue[at:] = keys[: size - at]`, are played through for all
small sizes. Where they write row `i` at `(at + i) % size`, all rows or those that fit, so does the compile path, and
the position moves on as they say. A position that is not in the queue raises in compiled code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.edits import line_of, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import (
    FLOAT_WARNING,
    Clean,
    Contract,
    Cost,
    Declined,
    Diagnostic,
    Example,
    Rule,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import number_of
from graphmend_codemod.rules.proofs.conditions.type_conditions import (
    asked_below,
    own_memory,
    tensor_facts,
    tensors_below,
)
from graphmend_codemod.rules.proofs.numbers.kept_operands import (
    asked_wide,
    bounded,
    kept_in,
)
from graphmend_codemod.rules.proofs.numbers.scalar_uses import own_expressions, why_no_tensor

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.LongTensor):
        ...
        return x
"""

_QUEUE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4
        self.register_buffer("queue", torch.zeros(4))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    def forward(self, x: torch.Tensor):
        ...
        return self.queue.clone()
"""

rule = Rule(
    code="GM401",
    slug="item-in-arithmetic",
    title="keep the 0-dim tensor instead of its number",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.NONE,
        compiled_logs=FLOAT_WARNING,
        compiled_exceptions="kept; a position outside of its queue, or a slice that eager mode cuts off, raises one",
    ),
    examples=(
        Example(
            before="""
            scale = x.max().item()
            x = x / scale
            """,
            after="""
            if torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
                # A 0-dim tensor: its number would have to be read back to Python.
                scale = x.max().detach()
            else:
                scale = x.max().item()
            x = x / scale
            """,
            setup=_SETUP,
            inputs=("torch.randn(3), torch.ones(2, dtype=torch.long)",),
        ),
        Example(
            before="""
            x = x / max((ids > 0).sum().item(), 1)
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(ids, torch.Tensor)
                and isinstance(x, torch.Tensor)
                and x.device == ids.device
            ):
                # A 0-dim tensor: its number would have to be read back to Python.
                x = x / (ids > 0).sum().clamp(min=1)
            else:
                x = x / max((ids > 0).sum().item(), 1)
            """,
            setup=_SETUP,
            inputs=("torch.randn(3), torch.ones(2, dtype=torch.long)",),
        ),
        Example(
            before="""
            tokens = (ids == 1).sum().item()
            if tokens != x.shape[0]:
                raise ValueError(f"{tokens} tokens")
            """,
            after="""
            if torch.compiler.is_compiling() and isinstance(ids, torch.Tensor):
                # A 0-dim tensor: its number would have to be read back to Python.
                tokens = (ids == 1).sum()
            else:
                tokens = (ids == 1).sum().item()
            if tokens != x.shape[0]:
                raise ValueError(f"{tokens} tokens")
            """,
            setup=_SETUP,
        ),
        Example(
            before="""
            n = x.shape[0]
            at = int(self.at)
            self.queue[at : at + n] = x
            self.at[0] = (at + n) % self.size
            """,
            after="""
            n = x.shape[0]
            if (
                torch.compiler.is_compiling()
                and not torch.is_grad_enabled()
                and isinstance(self.at, torch.Tensor)
                and self.at.dtype == torch.int64
                and self.at.shape == (1,)
                and isinstance(x, torch.Tensor)
                and isinstance(n, int)
                and isinstance(self.queue, torch.Tensor)
                and 0 not in self.queue.stride()
                and isinstance(self.size, int)
            ):
                # The position stays in its tensor: its number would have to be read back to Python.
                at = self.at.reshape(()).clone()
                self.queue[at + torch.arange(n, device=self.queue.device)] = x.to(self.queue)
                self.at[0] = (at + n) % self.size
            else:
                at = int(self.at)
                self.queue[at : at + n] = x
                self.at[0] = (at + n) % self.size
            """,
            setup=_QUEUE,
            inputs=("torch.randn(2)",),
        ),
        Example(
            before="""
            step = self.at.item()
            if self.training:
                x = x * 0.5**step
            """,
            after="""
            if torch.compiler.is_compiling() and not self.training:
                # Nothing uses the number where this is so, and to read it back would end the graph.
                step = None
            else:
                step = self.at.item()
            if self.training:
                x = x * 0.5**step
            """,
            setup=_QUEUE.replace("self.queue.clone()", "x + self.queue"),
        ),
        Declined(
            source="""
            longest = ids.max().item()
            x = x[:longest]
            """,
            because="is used as a Python number in `:longest`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            count = ids.sum().item()
            x = x * count
            """,
            because="may have a different dtype from `count`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            longest = other["lengths"].max().item()
            x = x / longest
            """,
            because="cannot infer that",
            setup=_SETUP.replace("ids: torch.LongTensor", "other"),
        ),
        Clean(
            source="""
            x = x / x.max()
            """,
            setup=_SETUP,
        ),
    ),
)

_ITEM = frozenset({"item"})
_REDUCES = frozenset({"max", "amax", "min", "amin", "sum", "mean", "argmax", "argmin"})
_READS_BACK = "converts a tensor to a Python scalar (device sync)"
_COMMENT = "# A 0-dim tensor: its number would have to be read back to Python."


@rule.on(ast.Assign, words=("item", "int", "float"), here=True)
def number_in_a_name(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`n = t.item()`."""
    found = _kept(site, node)
    if found is not None and found.edit is not None:
        return found
    from graphmend_codemod.rules.proofs.numbers.unread_numbers import not_read  # a commit hook waits for it

    if (edit := not_read(site, node)) is None:
        return found
    return Diagnostic(f"{_READS_BACK}: `{speculation.short(node.value)}`", edit=edit)


def _kept(site: Site, node: ast.Assign) -> Diagnostic | None:
    """The tensor in the place of its number."""
    target = node.targets[0]
    read, bound, exact = bounded(site, node.value)
    tensor = number_of(site, read)
    if tensor is None and (unknown := _reduced(site, node.value)) is not None:
        message = f"{_READS_BACK}: `{speculation.short(node.value)}`"
        return Diagnostic(message, declined=cannot_infer_tensor(site, unknown))
    if tensor is None or len(node.targets) != 1 or not isinstance(target, ast.Name):
        return None
    if site.value(tensor).dtype == BOOL:
        return None
    message = f"{_READS_BACK}: `{speculation.short(node.value)}`"
    reason = why_no_tensor(site, read, target.id, tensor)
    if reason is not None:
        from graphmend_codemod.rules.proofs.numbers.kept_positions import position_kept  # a commit hook waits for it

        try:
            edit = position_kept(site, node, target.id, tensor) if site.torch is not None else None
        except NotProven as unsure:
            return Diagnostic(message, declined=str(unsure))
        return Diagnostic(message, edit=edit) if edit is not None else Diagnostic(message, declined=reason)
    try:
        wide = () if exact else (asked_wide(site, tensor),)
        facts = dict.fromkeys([*tensor_facts(site, tensor), *wide, *_facts_of_others(site, target.id, tensor)])
    except NotProven as unproven:
        return Diagnostic(message, declined=str(unproven))
    cut = ".detach()" if site.value(tensor).grad and not site.no_grad else ""
    kept = f"{site.operand(tensor)}{cut}{bound}" if cut or bound else site.text(tensor)
    kept = kept if bound else own_memory(site, tensor, kept)
    header = site.header("if", [site.compiling, *facts])
    path = f"{header}\n    {_COMMENT}\n    {target.id} = {kept}\nelse:\n    "
    parts = (path, site.original(node, 1))
    return Diagnostic(message, edit=Edit((Replacement(site.span(node), parts),), imports=site.imports))


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words=("item", "int", "float"), here=True)
def number_in_an_expression(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`y = x / t.item()`."""
    if site.torch is None or (kept := kept_in(site, node)) is None:
        return None
    message = f"{_READS_BACK}: `{speculation.short(kept.first)}`"
    header = site.header("if", [site.compiling, *kept.facts])
    path = f"{header}\n    {_COMMENT}\n    {line_of(site.but(written=kept.written), node)}"
    return Diagnostic(message, edit=two_paths(site, node, (path,)), node=kept.first)


def _facts_of_others(site: Site, name: str, tensor: ast.expr) -> Iterator[str]:
    """What must hold for the tensors that meet the number to have the dtypes that they are taken to have."""
    dtype = site.value(tensor).dtype
    for place in site.flow.places.values():
        for part in own_expressions(place.statement):
            sides = [part.left, part.right] if isinstance(part, ast.BinOp) else []
            for side in sides if any(is_name(each, name) for each in sides) else ():
                there = site.at(place.statement)
                if there is not None and getattr(side, "id", "") != name:
                    yield from asked_below(there, side)
                    yield from tensors_below(there, side) if there.value(side).dtype != dtype else ()


def _reduced(site: Site, node: ast.expr) -> ast.expr | None:
    """`x` for `x.max().item()` where nothing tells what `x` is."""
    inner = node
    for methods in (_ITEM, _REDUCES):
        plain = isinstance(inner, ast.Call) and not inner.args and not inner.keywords
        if not plain or not isinstance(inner.func, ast.Attribute) or inner.func.attr not in methods:  # type: ignore[attr-defined]
            return None
        inner = inner.func.value  # type: ignore[attr-defined]
    return inner if site.value(inner).kind is ValueKind.UNKNOWN else None
