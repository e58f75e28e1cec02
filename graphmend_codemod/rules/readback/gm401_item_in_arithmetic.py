"""item-in-arithmetic (GM401): `.item()` whose result is only used in tensor arithmetic, or is tested.

`scale = x.max().item(); x / scale` waits for the device and breaks the graph, and the 0-dim tensor itself would
do. Under `torch.compile` it stays a tensor; eager mode reads the number, as before. `.item()` cuts the gradient, so the
tensor is detached where it could have one, and copied where it may share memory with a tensor that is changed later.
What only an annotation calls a tensor is asked for while tracing.

A 0-dim tensor means the same where it is compared to decide an error (GM301 then checks it on the device), or is in
arithmetic with a tensor of its own dtype: with another one, a Python number would leave the other's dtype alone and a
tensor might not. An integer may divide any tensor (`loss.sum() / max(valid.sum().item(), 1)`), since that gives a float
in any case. Numbers that are used as sizes, in Python arithmetic or as arguments of functions are left alone.

A name that is tested (`if n > 0:`, `y = a if n > 0 else b`) holds the tensor where other fixes mend each of these
tests, and so does a flag that a tensor decides: `empty = not bool(mask.any())`, `same = torch.equal(x, y)`. What is
compared with anything but a small integer is of float64, as Python's number is.

So it is where no name comes between: `x / t.item()`, `x.clamp(low.item(), high.item())`. What such a statement does
not prove is asked for: that both are tensors, the number's 0-dim, of one dtype and on one device. A bound that half
precision does not hold (`max(t.item(), 1e-8)`, where 1e-8 would be 0) is for float32 and float64 alone. Where an
argument or attribute that is read is written in place as well, the compile path is for `torch.no_grad()` alone: torch
2.13 keeps what was written for the gradient, and computes the number anew from that.

Numbers that are computed with further (`max(n, 1)`, `a / (a + b)`), counted or tested stay tensors in all statements up
to their last use: of float64, as Python's are, and of float32 where they meet a tensor of float32. What `if n > 0:`
leads to is done under the test: `x / n` becomes `x / torch.where(n > 0, n, 1)`, `w[mask] = v` writes under the mask,
and `count += 1` adds the test. Other dtypes, devices without float64 and numbers that are used for anything else take
the way of eager mode. A division by zero, which raises in eager mode, raises in compiled code as checks of GM301 do
(setting `guards`).

A number that is read in every call and used behind a test of Python alone (`if self.training:`, `if self.rate > 0:`) is
not read where the test says that nothing uses it, and its tensor's size and dtype say that reading it raises no error;
elsewhere, the graph breaks as before. It may be a count, `int((target == 1).sum())`.

From torch 2.15 on, `clamp` with a bound that is NaN, whose result is NaN as well, has another gradient for a bound that
is a tensor (ones) than for a Python number (zeros).

The position of a queue, `at = int(self.at)` in front of `self.queue[:, at : at + n] = keys.T`, is a Python number: as a
tensor it would make one graph of what reads the queue for a gradient and what fills it, and Inductor computes that
gradient from the filled queue. `--opaque` makes an operator of such a method (GM801).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import own_parts
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.rules.framework.edits import holding, line_of, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import FLOAT_WARNING, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import number_of
from graphmend_codemod.rules.proofs.conditions.type_conditions import (
    asked_below,
    own_memory,
    tensor_facts,
    tensors_below,
    without_dimensions,
)
from graphmend_codemod.rules.proofs.numbers.kept.kept_operands import (
    asked_double,
    asked_wide,
    bounded,
    kept_in,
)
from graphmend_codemod.rules.proofs.numbers.kept.scalar_uses import use_of
from graphmend_codemod.rules.proofs.numbers.kept.tested_numbers import tests_of

rule = Rule(
    __name__,
    __doc__,
    title="keep the 0-dim tensor instead of its number",
    contract=Contract(
        cost=Cost.NONE,
        compiled_logs=FLOAT_WARNING,
        compiled_exceptions="kept, RuntimeError for a division by zero",
    ),
)

_ITEM = frozenset({"item"})
_REDUCES = frozenset({"max", "amax", "min", "amin", "sum", "mean", "argmax", "argmin"})
_FLAGS = ("all", "allclose", "any", "bool", "equal", "is_nonzero", "item", "max", "mean", "min", "norm", "sum")
_READS_BACK = "converts a tensor to a Python scalar (device sync)"
_COMMENT = "# A 0-dim tensor: its number would have to be read back to Python."


@rule.on(ast.Assign, words=_FLAGS, here=True)
def flag_in_a_name(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`empty = not bool(mask.any())`, `same = torch.equal(x, y)`."""
    from graphmend_codemod.rules.proofs.numbers.kept.tested_flags import kept_flag  # a commit hook waits for it

    edit = kept_flag(site, node) if site.torch is not None else None
    return None if edit is None else Diagnostic(f"{_READS_BACK}: `{speculation.short(node.value)}`", edit=edit)


@rule.on(ast.Assign, words=("item", "int", "float"), here=True)
def number_in_a_name(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`n = t.item()`."""
    found = _kept(site, node)
    if found is not None and found.edit is not None:
        return found
    from graphmend_codemod.rules.proofs.numbers.kept.unread_numbers import not_read  # a commit hook waits for it

    edit = None
    try:
        edit = not_read(site, node)
    except NotProven as unsure:
        found = found or Diagnostic(f"{_READS_BACK}: `{speculation.short(node.value)}`", declined=str(unsure))
    computed = computed_with(site, node) if edit is None else None
    if computed is not None:
        return computed
    return found if edit is None else Diagnostic(f"{_READS_BACK}: `{speculation.short(node.value)}`", edit=edit)


@rule.on(ast.For, words=("item", "int", "float"), here=True)
def computed_with(site: Site, node: ast.Assign | ast.For) -> Diagnostic | None:
    """Numbers that are computed with and tested, in all statements that use them; None where that cannot be.

    `for i in range(bins): n = mask.sum().item(); if n > 0: ...`.
    """
    from graphmend_codemod.rules.proofs.numbers.kept.kept_numbers import kept_numbers  # a commit hook waits for it

    if site.torch is None or site.place.in_try:
        return None
    try:
        edit = kept_numbers(site)
    except NotProven:
        return None
    return None if edit is None else Diagnostic(f"{_READS_BACK}: `{speculation.short(node)}`", edit=edit)


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
    reason, wider, whole = use_of(site, read, target.id, tensor)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    try:
        wide = () if exact else (asked_wide(site, tensor),)
        wide = (*wide, *(asked_double(site, tensor) if wider else ()), *filter(None, [whole]))
        facts = dict.fromkeys([*tensor_facts(site, tensor), *wide, *_facts_of_others(site, target.id, tensor)])
    except NotProven as unproven:
        return Diagnostic(message, declined=str(unproven))
    cut = ".detach()" if site.value(tensor).grad and not site.no_grad else ""
    changed = f"{cut}{bound}{'.double()' if wider else '.long()' if whole else ''}"
    bare = site.value(tensor).is_single and not changed
    kept = site.text(tensor) if bare else f"{without_dimensions(site, tensor)}{changed}"
    kept = kept if bound else own_memory(site, tensor, kept)
    edit = two_paths(site, node, [site.compiling, *facts], [_COMMENT, f"{target.id} = {kept}"])
    return Diagnostic(message, edit=holding(site, edit, tests_of(site, target.id)))


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words=("item", "int", "float"), here=True)
def number_in_an_expression(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`y = x / t.item()`."""
    if site.torch is None or (kept := kept_in(site, node)) is None:
        return None
    message = f"{_READS_BACK}: `{speculation.short(kept.first)}`"
    lines = [_COMMENT, line_of(site.but(written=kept.written), node)]
    return Diagnostic(message, edit=two_paths(site, node, [site.compiling, *kept.facts], lines), node=kept.first)


def _facts_of_others(site: Site, name: str, tensor: ast.expr) -> Iterator[str]:
    """What must hold for the tensors that meet the number to have the dtypes that they are taken to have."""
    dtype = site.value(tensor).dtype
    for place in site.flow.places.values():
        for part in own_parts(place.statement):
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
