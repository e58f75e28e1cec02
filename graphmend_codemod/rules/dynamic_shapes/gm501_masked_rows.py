"""masked-rows (GM501): boolean-mask indexing (data-dependent shape) in a reduction or a write.

`x[mask].sum()` and `x[torch.where(mask)] = 0` make a tensor whose size depends on data, and the graph breaks. The
compile path keeps the size: `torch.where(mask, x, 0).sum()`, and the mask as the index of a write. A mean adds up in
float32, as eager mode does for half precision, and divides by the number of true elements. Eager mode runs the original
statement, word for word; sums add up in another order under `torch.compile`.

The path is taken where the mask has the shape of what it chooses from, or of its first dimensions, which Dynamo knows
while it traces, and for the sum of `masked_select` wherever both broadcast. A name such as `mask` or `valid_mask` is
enough for a mask: the path asks for its dtype. Loops that
give each expert its rows are GM502's; GM510 takes masks and tensors that are computed in place.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.outline import INDEXED
from graphmend_codemod.analysis.patterns import same
from graphmend_codemod.analysis.scope import parameter_names, walk_in_layers
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.masks.devices import on_one_device
from graphmend_codemod.rules.proofs.rowwise.selectors import Selection, is_plain, selection, where_of
from graphmend_codemod.rules.proofs.untraced.subscripts import chosen_anywhere

rule = Rule(
    __name__,
    __doc__,
    title="use the mask instead of boolean-mask indexing under torch.compile",
    contract=Contract(
        cost=Cost.BOTH_ARMS, cost_note="all elements are read; unselected ones are masked out", saves_masks=True
    ),
)


@rule.on(ast.Assign, words={INDEXED}, here=True, when=lambda node: isinstance(node.targets[0], ast.Subscript))
def written_where(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`x[torch.where(mask)] = number`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
        return None
    found = where_of(site, target.slice)
    if found is None or found[1] is not None:
        return None
    mask = found[0]
    message = f"writes at data-dependent indices: `{speculation.short(target)}`"
    if not isinstance(node.value, (ast.Constant, ast.UnaryOp)):
        return Diagnostic(message, declined=f"`{speculation.short(node.value)}` is not a Python number")
    if site.value(mask).dtype != BOOL and not isinstance(mask, ast.Compare):
        return Diagnostic(
            message,
            declined=(
                f"cannot infer that `{speculation.short(mask)}` is a bool tensor; "
                "annotate it with `torch.BoolTensor`, or compare it: `!= 0`"
            ),
        )
    text = f"{site.text(target.value)}[{site.text(mask)}] = {site.text(node.value)}"
    return Diagnostic(message, edit=two_paths(site, node, [site.compiling], [text]))


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words=("sum", "mean"), here=True)
def reduced(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`x[mask].sum()`, `total += x.masked_select(mask).mean()`."""
    if node.value is None or (isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name)):
        return None
    for part in walk_in_layers(node.value):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in {"sum", "mean"}:
            found = None if part.args or part.keywords else _selected(site, part.func.value)
            if found is not None and is_plain(found, part.func.attr) and _is_all(node.value, found):
                return _reduction(site, node, part, found)
    return None


def _is_all(value: ast.expr, found: Selection) -> bool:
    """False where the mask chooses something else in the same statement, which ends the graph all the same."""
    reduced = {
        id(part.func.value)
        for part in walk_in_layers(value)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and not (part.args or part.keywords)
        if part.func.attr in {"sum", "mean"} and (each := selection(part.func.value)) is not None
        if is_plain(each, part.func.attr)
    }
    chosen = ((part, selection(part)) for part in walk_in_layers(value))
    return all(id(part) in reduced for part, each in chosen if each is not None and same(each.mask, found.mask))


def _selected(site: Site, node: ast.expr) -> Selection | None:
    found = selection(node)
    if found is None or found.more:
        return None
    if isinstance(node, ast.Call):
        return found if site.resolve(node.func) == ("torch.masked_select" if len(node.args) > 1 else None) else None
    mask = site.value(found.mask)
    known = mask.is_tensor and mask.dtype == BOOL
    return found if known or (isinstance(node, ast.Subscript) and chosen_anywhere(site, node) is not None) else None


def _reduction(
    site: Site, node: ast.Assign | ast.AugAssign | ast.Return, call: ast.Call, found: Selection
) -> Diagnostic:
    assert isinstance(call.func, ast.Attribute)
    message = f"reduces over boolean-mask indexing (data-dependent shape): `{speculation.short(call)}`"
    chosen = (part.test for part in walk_in_layers(node) if isinstance(part, ast.IfExp) and split(site, part.test))
    if (test := next(chosen, None)) is not None:
        reason = f"`{speculation.short(test)}` in the same statement breaks the graph too; make it an `if` of its own"
        return Diagnostic(message, declined=reason)
    mean = call.func.attr == "mean"
    tensor, mask = site.text(found.base), site.text(found.mask)
    facts = _facts(site, found, broadcast=found.by_element and not mean)
    widened = ""
    if _may_choose_rows(site, found):
        wide = site.free_name("chosen", "is_chosen")
        shape = f"{mask}.shape + (1,) * ({tensor}.dim() - {mask}.dim())"
        widened = site.broken_line(f"{wide} = {mask}.reshape({shape}).expand_as({tensor})", 1) + "\n    "
        mask = wide
    kept = f"{site.torch}.where({mask}, {tensor}, 0)"
    dense = f"{kept}.sum()"
    if mean:
        narrow = ", ".join(f"{site.torch}.{each}" for each in ("float16", "bfloat16", "float32"))
        facts.append(f"{tensor}.dtype in ({narrow})")
        dense = f"({kept}.sum(dtype={site.torch}.float32) / {mask}.sum()).to({tensor}.dtype)"
    text = site.but(written={**site.written, id(call): (call, dense)}).text(node)
    if "\n" in text:
        return Diagnostic(message, declined="the statement spans several lines; assign its parts to variables first")
    return Diagnostic(
        message, edit=two_paths(site, node, [site.compiling, *facts], [widened + site.broken_line(text, 1)])
    )


def _facts(site: Site, found: Selection, *, broadcast: bool) -> list[str]:
    """What has to hold while tracing for a select by the mask to keep what the mask chooses.

    A sum of `masked_select` takes all shapes that broadcast, as the select does.
    """
    tensor, mask = site.value(found.base), site.value(found.mask)
    asked = [found.base] if not broadcast and (tensor.hint or not tensor.is_tensor) else []
    given = parameter_names(site.evaluator.scope.node)
    # What is given, or returned by a function of the project, may be None or a bool, whatever its annotation says.
    told = isinstance(found.mask, ast.Name) and (found.mask.id in given or not site.is_fresh(mask))
    none = mask.hint and told
    asked += [found.mask] if none or not mask.is_tensor else []
    facts = [f"isinstance({site.text(part)}, {site.torch}.Tensor)" for part in asked]
    if mask.dtype != BOOL or mask.hint:
        facts.append(f"{site.text(found.mask)}.dtype == {site.torch}.bool")
    chosen, chooser = site.text(found.base), site.text(found.mask)
    rows = f"[: {chooser}.dim()]" if _may_choose_rows(site, found) else ""
    facts += [] if broadcast else [f"{chooser}.shape == {chosen}.shape{rows}"]
    return [*facts, *on_one_device(site, found.mask, found.base)]


def _may_choose_rows(site: Site, found: Selection) -> bool:
    """True where a mask of fewer dimensions may choose whole rows: no shapes tell that it does not."""
    tensor, mask = site.value(found.base), site.value(found.mask)
    return not found.by_element and (tensor.shape is None or tensor.shape != mask.shape)
