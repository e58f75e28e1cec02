"""loop-over-chosen (GM504): a loop with a data-dependent number of iterations or slices.

`for i in range(idxs.shape[0])` with `idxs = torch.nonzero(mask)` runs as often as the data says, and `torch.arange(n)`
with a tensor `n` is as long as the data says, so neither can be traced. torch.compile can call such a loop as a whole:
as a custom operator (`torch.library.custom_op`). The operator runs the loop's own text, so compiled results are those
of eager mode, to the last bit.

A function that takes only tensors and returns new tensors whose shapes do not depend on the data becomes an
operator itself. Its fake is the part of the function that makes the results, without the loop that
fills them in.

A loop that fills tensors in place, `places[row, :n] = ...`, moves into a function of its own, which is an operator that
changes these tensors. Eager mode calls the function, where the same text computes the same: the loop reads names that
are certainly bound, no name that it binds is read elsewhere, and it ends at its own end. The tensors have to be made
just before the loop, so that nothing else shares their memory; they and whatever the loop reads are arguments. What the
text of a module does not tell of these, such as that `self.step` is an integer that the instance itself holds, is asked
for while tracing.

No gradient goes through an operator, so trace-time conditions ask that no argument takes one, and that autocast does
nothing to it, but for what was just made of numbers: where one does, the loop breaks the graph as before. A loop that
changes anything else, draws random numbers, or calls more than torch, builtins and functions that only compute is left
alone. An operator hides its inside from the compiler: it is not fused with its surroundings, and waits for the device
as eager mode does. CUDA graphs are recorded around it, where torch is 2.9 or newer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import Edit, Safety
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Diagnostic, Example, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import loop_functions, loop_outlining

_SETUP = """
import torch
from torch import nn


def segments(ids: torch.LongTensor):
    ...


class Model(nn.Module):
    def forward(self, ids: torch.LongTensor):
        return segments(ids) * 2
"""

_IN_A_METHOD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 2

    def forward(self, mask: torch.BoolTensor):
        ...
        return places * 2
"""

rule = Rule(
    code="GM504",
    slug="loop-over-chosen",
    title="run a data-dependent loop as one custom operator under torch.compile",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(cost=Cost.OUTLINED, cost_note="the loop runs as it does in eager mode"),
    examples=(
        Example(
            before="""
            rows, columns = ids.shape
            starts = torch.nonzero(ids == 1)
            segment = torch.zeros(rows, columns, dtype=torch.long, device=ids.device)
            for i in range(starts.shape[0]):
                row, column = starts[i]
                segment[row, column:] += 1
            return segment
            """,
            after="""
            # The loop depends on the data: torch.compile calls this function as one operator.
            if (
                torch.compiler.is_dynamo_compiling()
                and not (torch.is_grad_enabled() and ids.requires_grad)
                and not (ids.is_floating_point() and torch.is_autocast_enabled(ids.device.type))
            ):
                return _segments_operator(ids)
            rows, columns = ids.shape
            starts = torch.nonzero(ids == 1)
            segment = torch.zeros(rows, columns, dtype=torch.long, device=ids.device)
            for i in range(starts.shape[0]):
                row, column = starts[i]
                segment[row, column:] += 1
            return segment
            """,
            setup=_SETUP,
            inputs=("torch.tensor([[1, 0, 1, 0]])", "torch.tensor([[0, 1, 1, 1]])"),
        ),
        Example(
            before="""
            places = torch.full((mask.shape[0], 4), -1)
            for row, chosen in enumerate(mask):
                # the places of what is chosen
                found = torch.where(chosen)[0] * self.step
                places[row, : found.shape[0]] = found
            """,
            after="""
            places = torch.full((mask.shape[0], 4), -1)
            _fill_places(self, places, mask)
            """,
            setup=_IN_A_METHOD,
            inputs=(
                "torch.tensor([[True, False, True, False]])",
                "torch.tensor([[False, True, True, True], [False] * 4])",
            ),
        ),
        Declined(
            source="""
            starts = torch.nonzero(ids == 1)
            for i in range(starts.shape[0]):
                row, column = starts[i]
                ids[row, column:] += 1
            return ids
            """,
            because="changes its argument `ids`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            starts = torch.nonzero(ids == 1)
            found = torch.zeros(starts.shape[0])
            for i in range(starts.shape[0]):
                found[i] = starts[i].sum()
            return found
            """,
            because="the shape of a result depends on `starts`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            places = torch.full((mask.shape[0], 4), -1)
            kept = places[0]
            for row, chosen in enumerate(mask):
                places[row, chosen.nonzero()[:, 0]] = 1
            """,
            because="something may refer to `places` since `kept = places[0]`",
            setup=_IN_A_METHOD,
        ),
        Declined(
            source="""
            places = torch.full((mask.shape[0], 4), -1)
            for row, chosen in enumerate(mask):
                found = chosen.nonzero()
                places[row, found[:, 0]] = 1
            places = places + found.shape[0]
            """,
            because="`found` is used after the loop",
            setup=_IN_A_METHOD,
        ),
        Declined(
            source="""
            places = torch.full((mask.shape[0], 4), -1)
            for row, chosen in enumerate(mask):
                places[row, chosen.nonzero()[:, 0]] = torch.randint(0, 9, ())
            """,
            because="`torch.randint(0, 9, ())` may have side effects",
            setup=_IN_A_METHOD,
        ),
        Declined(
            source="""
            places = torch.full((mask.shape[0], 4), -1)
            for row, chosen in enumerate(mask):
                places[row, chosen.nonzero()[:, 0]] = 1
                mask[row, 0] = False
            """,
            because="`mask` is not made just before the loop",
            setup=_IN_A_METHOD,
        ),
        Clean(
            source="""
            for i in range(ids.shape[0]):
                ids = ids + i
            return ids
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(ast.For)
def loop_over_chosen(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i in range(chosen.shape[0])` in a function outside of classes."""
    scope = site.evaluator.scope
    if scope.class_qualified is not None or "." in site.function or site.place.in_loop:
        return None
    if not loop_functions.depends_on_data(site, node.iter):
        return None
    message = f"data-dependent number of loop iterations: `{speculation.short(node.iter)}`"
    return _verdict(site, message, lambda: loop_functions.edit(site, scope.node))


@rule.on(ast.For, lines=loop_outlining.writes_of_elements)
def filling_loop(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, row in enumerate(mask): found[i, : row.sum()] = 1`."""
    filling = None if site.place.in_loop else loop_outlining.found(site, node)
    if filling is None:
        return None
    message = f"data-dependent loop that fills `{filling.filled[0]}`: `{speculation.short(filling.cause.node)}`"
    return _verdict(site, message, lambda: loop_outlining.edit(site, filling))


def _verdict(site: Site, message: str, edit: Callable[[], Edit]) -> Diagnostic:
    return judged(message, edit, AS_OPERATOR)
