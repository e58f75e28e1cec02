"""packed-rows (GM506): rows selected by a mask are packed to the front of each sequence of a batch.

Attention that is global for some tokens counts them (`mask.sum(dim=1).max()`), takes their indices with `nonzero`, and
works on tensors with so many places. All of these sizes depend on the data. Under `torch.compile` there is a place
for every column of the mask and one more: the indices of chosen elements have a static length, with one of them
repeated instead of those that are not chosen, and all other places are marked as free, as they are in eager mode where
a row has fewer than the largest number. Eager mode packs as before.

So the work on packed rows is that of a mask in which all are chosen, columns / largest number of chosen times as much:
where few are chosen and rows are long, measure it. It only runs where the flag says that any are chosen (GM106).

Nothing may depend on the number of places: indices may only read and write rows, a number or what was read by the
other indices, and the count may only be a size. Code that works on places must not care how many are free, as it must
not for rows with fewer than the largest number; where all scores of a row are `-inf`, a softmax may give nan in one
mode and not in the other. A gradient would count a repeated element several times, so compiled code with gradients
packs as eager mode does, with its graph breaks.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import Definition, calls_in
from graphmend_codemod.core.findings import Edit, Helper, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.cond.cond_flag import choices
from graphmend_codemod.rules.proofs.cond.constant_floats import above
from graphmend_codemod.rules.proofs.rowwise.packed_rows import Packed, is_packed_statically

_SETUP = """
import torch
from torch import nn


class Part(nn.Module):
    @staticmethod
    def indices(mask):
        counts = mask.long().sum(dim=1)
        count = counts.max()
        chosen = mask.nonzero(as_tuple=True)
        taken = torch.arange(count, device=mask.device) < counts.unsqueeze(dim=-1)
        places = taken.nonzero(as_tuple=True)
        free = (taken == 0).nonzero(as_tuple=True)
        return count, chosen, places, free

    def forward(self, x, mask, masked=None):
        if torch.compiler.is_compiling() and isinstance(masked, torch.Tensor):
            return torch.cond(masked, lambda: self.forward(x, mask, True), lambda: self.forward(x, mask, False))
        y = x * 2
        if masked:
            ...
            packed = x.new_zeros(x.shape[0], count, x.shape[2])
            packed[places] = x[chosen]
            scores = packed.sum(dim=-1)
            scores[free] = torch.finfo(scores.dtype).min
            packed = packed * torch.softmax(scores, dim=-1).unsqueeze(-1)
            y[chosen] = packed[places]
        assert y.size() == x.size()
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor):
        mask = x[:, :, 0] > 3
        if torch.compiler.is_compiling() and not torch.is_grad_enabled():
            masked = mask.any()
        else:
            masked = mask.any().item()
        return self.part(x, mask, masked)
"""
_HELPER = '''
def _static_places(mask):
    """Places for the true elements of a mask (rows, columns) in rows of columns + 1 places, the last of which is free.

    Returns the number of places; the indices of true elements, two tensors (rows * columns), in which one of them
    stands for all that are false as well; their places, which are the same; and the free places, two tensors
    (rows * (columns + 1)), in which the last place stands for all that are taken. One element must be true.
    """
    rows, columns = mask.shape
    position = torch.arange(rows * columns, device=mask.device)
    position = torch.where(mask.flatten(), position, mask.flatten().to(torch.uint8).argmax())
    chosen = (position // columns, position % columns)
    place = torch.arange(columns + 1, device=mask.device).expand(rows, -1)
    free = torch.where(torch.nn.functional.pad(mask, (0, 1)), columns, place)
    row = torch.arange(rows, device=mask.device).unsqueeze(-1).expand_as(free)
    return columns + 1, chosen, chosen, (row.flatten(), free.flatten())
'''
_COMMENT = "# No size depends on the mask: there is a place for each of its columns."

rule = Rule(
    code="GM506",
    slug="packed-rows",
    title="pack selected rows into static shapes",
    documentation=__doc__,
    safety=Safety.UNSAFE,
    contract=Contract(
        cost=Cost.MULTIPLIED,
        cost_note="all columns are packed: columns / longest row times the work",
        compiled_state=ASKS_CLASSES,
    ),
    examples=(
        Example(
            before="""
            count, chosen, places, free = self.indices(mask)
            """,
            after="""
            count, chosen, places, free = (
                # No size depends on the mask: there is a place for each of its columns.
                _static_places(mask)
                if torch.compiler.is_compiling()
                and isinstance(mask, torch.Tensor)
                and mask.dtype == torch.bool
                and mask.dim() == 2
                and type(self) is Part
                and not torch.is_grad_enabled()
                else self.indices(mask)
            )
            """,
            setup=_SETUP,
            inputs=("torch.arange(24.0).view(2, 3, 4) % 7", "torch.ones(2, 3, 4)", "torch.ones(2, 3, 4) * 4"),
        ),
        Declined(
            source="""
            count, chosen, places, free = self.indices(mask)
            y = y / count
            """,
            because="does more with `count` than read and write the selected rows",
            setup=_SETUP,
        ),
        Clean(
            source="""
            count, chosen, places, free = self.indices(mask)
            """,
            setup=_SETUP.replace("self.part(x, mask, masked)", "self.part(x, mask, True)"),
        ),
    ),
)


@rule.on(ast.Assign, candidate="test", when=lambda node: isinstance(node.targets[0], ast.Tuple))
def packed_rows(site: Site, node: ast.Assign) -> Verdict | None:
    """`count, chosen, places, free = self.indices(mask)`."""
    line = site.evaluator.scope.node.lineno
    for choice in choices(site.source.text):
        packed = choice.packed
        if packed is None or choice.decider.node.lineno != line or packed.statement.lineno != node.lineno:
            continue
        if is_packed_statically(packed):
            return None
        message = (
            f"packs the rows selected by `{packed.mask}` (data-dependent shape); "
            "the fix multiplies the work by columns / longest row"
        )
        if site.torch is None:
            return Verdict(message, declined=name_taken())
        if choice.reason is not None:
            return Verdict(message, declined=choice.reason)
        certain = CertainCalls(site, calls_in(site.source.text))
        try:
            certain.demand_class(certain.start(), choice.decider.owner)
            _demand_known_callers(site, choice.decider)
        except NotProven as unsure:
            return Verdict(message, declined=str(unsure))
        given = [f"isinstance({packed.mask}, {site.torch}.Tensor)", f"{packed.mask}.dtype == {site.torch}.bool"]
        static = [*given, f"{packed.mask}.dim() == 2", *certain.conditions()]
        return Verdict(message, edit=_edit(site, node, packed, choice.guards_below, static))
    return None


def _demand_known_callers(site: Site, decider: Definition) -> None:
    """NotProven where another file may say that rows are chosen when none are: one has to be."""
    users = site.evaluator.scope.index.users(f"{site.summary.name}.{decider.owner}")
    if users:
        raise NotProven(f"`{decider.owner}` is used in {users[0]} as well, which may pass another flag with the mask")


def _edit(site: Site, node: ast.Assign, packed: Packed, guards: tuple[str, ...], static: list[str]) -> Edit:
    text = _HELPER.strip("\n").replace("torch.", f"{site.torch}.")
    helper = Helper("_static_places", text, after=above(site, node.lineno))
    conditions = [site.compiling, *static, f"not {site.torch}.is_grad_enabled()", *(f"not {name}" for name in guards)]
    asked = "\n    and ".join(conditions)
    lines = [
        f"(\n    {_COMMENT}",
        f"    {helper.name}({packed.mask})",
        f"    if {asked}",
        "    else ",
    ]
    parts = ("\n".join(lines), site.original(node.value), "\n)")
    return Edit((Replacement(site.span(node.value), parts),), imports=site.imports, helpers=(helper,))
