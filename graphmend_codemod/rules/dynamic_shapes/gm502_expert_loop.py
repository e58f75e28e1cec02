"""expert-loop (GM502): a mixture-of-experts loop that routes rows to experts (data-dependent shapes).

`for i in range(n): slot, row = torch.where(mask[i]); y.index_add_(0, row, expert(x[row]) * w[row, slot, None])` has
shapes that depend on the routing, so every round breaks the graph. The loop, from the first value whose size the
routing decides, moves word for word into a function. Eager mode calls it; torch.compile calls it as one operator
(made with `torch.library`), so there is one graph with an opaque operator in it, whatever experts do to their rows.

The operator runs the loop as eager mode does: same numbers, one wait for the device each time, nothing fused. Its
gradient runs the loop once more, by `torch.func.vjp`, with the random numbers and the buffers that the first run had.
Measured on seven expert blocks of transformers with Inductor on one thread (`docs/cost.md`): 0.9 to 1.0 times the time
at 512 rows, 0.9 to 1.1 times at one, 1.1 to 1.5 times with backward. Start-up takes 0.5 to 1.0 times as long; at one
row up to 1.8 times, where a break in a loop kept Dynamo from compiling the router, too.

Experts without rows get a gradient of zeros where eager mode leaves them without one. Forward hooks of experts run once
more for a gradient. The operator knows its module by a number that torch.compile guards, so compile a model as a whole:
layers that are compiled one by one are compiled once each, up to `torch._dynamo.config.recompile_limit`. Without
gradients the operator finds the experts' parameters itself, so that no call guards or passes them;
`torch.func.functional_call` inside of compiled code is noticed then if it replaces the first or the last of them. With
gradients, a layer of an expert that is replaced after compiling by one of the same class with more or fewer parameters
needs `torch.compiler.reset()`.

The loop has to change one tensor that nothing else refers to, and nothing else; experts are of classes in the same file
whose methods write no attributes. What the operator cannot take is asked for while tracing, and then the loop breaks
the graph as before: subclasses of tensors (DTensor), numbers that are no integers, `torch.export`. Autocast holds
inside the operator as it does around it.

Where a loop cannot be outlined there may be an unsafe fix: every expert sees all rows, masked. That multiplies the work
of the experts by experts / experts per row (for segments of sorted rows, `x[start:end]`, by the number of experts), and
takes experts to treat each row by itself, and a row to be routed to an expert once. Dropout draws other numbers then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.core.findings import Edit, Original, Replacement, Safety, Span
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import region_outlining
from graphmend_codemod.rules.proofs.outlining.custom_op import NotAnOperator
from graphmend_codemod.rules.proofs.rowwise.expert_hits import hits_of, statements_before
from graphmend_codemod.rules.proofs.rowwise.expert_rounds import (
    check_experts,
    chooses_rows,
    is_mask_of_round,
    variables_of,
)
from graphmend_codemod.rules.proofs.rowwise.expert_segments import (
    SegmentRewriter,
    Segments,
    check_counts,
    counts_for_experts,
    segments_of,
)
from graphmend_codemod.rules.proofs.rowwise.rowwise import Rewriter
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import NotRowwise, bound_in, self_cast

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1, dtype=torch.float32), 2, dim=-1)
        result = torch.zeros_like(x)
        ...
        return result
"""
_FUNCTIONAL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 3
        self.gate = nn.Linear(4, 3)
        self.enter = nn.Parameter(torch.randn(3, 8, 4))
        self.leave = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1), 2, dim=-1)
        result = torch.zeros_like(x)
        ...
        return result
"""
_COMMENT = "# Every expert sees all rows, masked, so that no shape depends on the routing."
_COSTS = "the fix runs every expert on all rows: experts / experts per row times the work"
_ABOUT = "Add to `{}` what each expert makes of its own rows."

rule = Rule(
    code="GM502",
    slug="expert-loop",
    title="run experts as one custom operator under torch.compile",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.OUTLINED,
        cost_note="experts run as in eager mode, once more for a gradient; the unsafe fix multiplies their work",
        compiled_state="kept; torch.compile notes a number for each module among the globals of the file",
    ),
    examples=(
        Example(
            before="""
            mask = nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
            for i in range(3):
                expert = self.experts[i]
                slot, row = torch.where(mask[i])
                if row.shape[0] == 0:
                    continue
                state = x[None, row].reshape(-1, 4)
                state = expert(state) * weights[row, slot, None]
                result.index_add_(0, row, state.to(x.dtype))
            """,
            after="""
            mask = nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
            result = _run_experts(self, result, mask, x, weights)
            """,
            setup=_SETUP,
            inputs=("torch.randn(5, 4)", "torch.randn(6, 4)"),
        ),
        Example(
            before="""
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                state = expert(x[row])
                result[row] += (state - state.mean(dim=0)) / row.numel()
            """,
            after="""
            result = _run_experts(self, result, chosen, x)
            """,
            setup=_SETUP,
            inputs=("torch.randn(5, 4)",),
        ),
        Example(
            before="""
            order = chosen.view(-1).argsort()
            sorted_rows = x[order // 2]
            counts = nn.functional.one_hot(chosen, num_classes=3).sum((0, 1)).tolist()
            pieces = []
            start = 0
            for i, count in enumerate(counts):
                end = start + count
                if count == 0:
                    continue
                part = self.experts[i](sorted_rows[start:end])
                pieces.append(part)
                start = end
            joined = torch.cat(pieces, dim=0)
            result[order // 2] = joined
            """,
            after="""
            order = chosen.view(-1).argsort()
            sorted_rows = x[order // 2]
            result = _run_experts(self, result, chosen, sorted_rows, order)
            """,
            setup=_SETUP,
            inputs=("torch.randn(5, 4)",),
        ),
        Example(
            before="""
            with torch.no_grad():
                mask = nn.functional.one_hot(chosen, num_classes=self.count + 1).permute(2, 1, 0)
                hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
            for number in hit:
                number = number[0]
                if number == self.count:
                    continue
                slot, row = torch.where(mask[number])
                gate, up = nn.functional.linear(x[row], self.enter[number]).chunk(2, dim=-1)
                state = nn.functional.linear(torch.sigmoid(gate) * up, self.leave[number])
                state = state * weights[row, slot, None]
                result.index_add_(0, row, state.to(result.dtype))
            """,
            after="""
            result = _run_enter(self, result, chosen, x, weights)
            """,
            setup=_FUNCTIONAL,
            inputs=("torch.randn(5, 4)", "torch.randn(1, 4)"),
        ),
        Declined(
            source="""
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                self.rows = row
                result[row] += expert(x[row]) * row.numel()
            """,
            because="the loop changes `self.rows`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            loads = torch.zeros(3, dtype=torch.long)
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                loads[i] = row.numel()
                result[row] += expert(x[row])
            """,
            because="the loop changes `loads` and `result`, not one tensor",
            setup=_SETUP,
        ),
        Declined(
            source="""
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                print(row.shape)
                result[row] += expert(x[row])
            """,
            because="`print(row.shape)` may have side effects",
            setup=_SETUP,
        ),
        Clean(
            source="""
            for i, expert in enumerate(self.experts):
                result = result + expert(x)
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(ast.For)
def expert_loop(site: Site, node: ast.For) -> Verdict | None:
    """`for i, expert in enumerate(self.experts): ... expert(x[rows]) ...`, or `... expert(x[start:end]) ...`."""
    if not chooses_rows(site, node):
        return _segment_loop(site, node)
    return _verdict(site, node, [*statements_before(site, node), node], lambda: _edit(site, node))


def _verdict(site: Site, node: ast.For, statements: list[ast.stmt], dense: Callable[[], Edit]) -> Verdict:
    """The loop as one operator, else all rows in every expert, which costs too much to be done unasked."""
    message = f"loop over selected rows (data-dependent shapes): `{speculation.short(node.iter)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    try:
        return Verdict(message, edit=region_outlining.edit(site, statements, _ABOUT))
    except NotAnOperator as reason:
        declined = str(reason)
    try:
        return Verdict(f"{message}; no custom operator ({declined}); {_COSTS}", edit=dense(), safety=Safety.UNSAFE)
    except NotRowwise:
        return Verdict(message, declined=declined)


@rule.on(ast.Assign, words=("tolist",), here=True)
def expert_counts(site: Site, node: ast.Assign) -> Verdict | None:
    """`sizes = sizes.tolist()`, for experts that split their rows by `sizes`."""
    name = counts_for_experts(site, node)
    if name is None:
        return None
    message = f"converts the row count of each expert to a Python scalar (device sync): `{name}`"
    try:
        check_counts(site, node, name)
        if site.torch is None:
            raise NotRowwise(name_taken())
    except NotRowwise as reason:
        return Verdict(message, declined=str(reason))
    header = f"if not {site.compiling}:\n    # Compiled experts take the counts as a tensor.\n    "
    parts = (header, site.original(node, 1))
    edit = Edit((Replacement(site.span(node), parts),), imports=site.imports)
    return Verdict(message, edit=edit, safety=Safety.UNSAFE)


def _segment_loop(site: Site, node: ast.For) -> Verdict | None:
    try:
        segments = segments_of(site, node)
    except NotRowwise as reason:
        return Verdict(
            (f"loop over selected rows (data-dependent shapes): `{speculation.short(node.iter)}`"), declined=str(reason)
        )
    if segments is None:
        return None
    statements = [*segments.before, node, *segments.after]
    return _verdict(site, node, statements, lambda: _segment_edit(site, node, segments))


def _segment_edit(site: Site, node: ast.For, segments: Segments) -> Edit:
    inside = _checked_loop(site, node, {segments.collected[0]} if segments.collected else set())
    rewriter = SegmentRewriter(inside, segments, node, 1)
    rewriter.statements(node.body)
    if not rewriter.writes:
        raise NotRowwise("no rows are written")
    for statement in segments.before:
        after = segments.after[0] if segments.after else node
        place = site.at(after) or site
        for name in bound_in(statement) & (segments.read.keys() | {segments.pieces[0] if segments.pieces else ""}):
            if place.live_after(name):
                raise NotRowwise(f"`{name}` is read after the loop")
    lines = [_COMMENT, *rewriter.prelude(), rewriter.header()]
    lines += ["    " + line.replace("\n", "\n    ") for line in rewriter.lines]
    return _two_paths(site, [*segments.before, node, *segments.after], list(rewriter.conditions), lines)


def _checked_loop(site: Site, node: ast.For, allowed: set[str]) -> Site:
    """The site inside the loop; NotRowwise where the loop has effects that last."""
    if site.torch is None:
        raise NotRowwise(name_taken())
    if node.orelse:
        raise NotRowwise("the loop has an `else`")
    casts = {name for part in walk_in_layers(node) if (name := self_cast(part)) is not None}
    for name in bound_in(node) - allowed - casts:
        if site.live_after(name):
            raise NotRowwise(f"`{name}` is read after the loop")
    inner = site.at(node.body[0])
    if inner is None:
        raise NotRowwise("the loop is not reached by torch.compile")
    return site.but(node=node, place=inner.place)


def _edit(site: Site, node: ast.For) -> Edit:
    hits = hits_of(site, node)
    inside = _checked_loop(site, node, set()).but(written=hits.written)
    variables = variables_of(node) | hits.numbers
    rewriter = Rewriter(inside, lambda part: is_mask_of_round(inside, part, variables), 1, variables)
    rewriter.skips = bool(hits.statements)
    rewriter.statements([each for each in node.body if id(each) not in hits.dropped])
    check_experts(site, rewriter)
    lines = [_COMMENT, *hits.kept, hits.header]
    lines += ["    " + line.replace("\n", "\n    ") for line in rewriter.lines]
    return _two_paths(site, [*hits.statements, node], list(rewriter.conditions), lines)


def _two_paths(site: Site, statements: Sequence[ast.stmt], conditions: Sequence[str], lines: Sequence[str]) -> Edit:
    """The edit that puts `lines` in front of the statements, which stay as they are under `else`."""
    first, last = site.span(statements[0]), site.span(statements[-1])
    whole = Span(first.start_line, first.start_column, last.end_line, last.end_column)
    header = " and ".join([site.compiling, *conditions])
    bound = {name for statement in statements for name in bound_in(statement)}
    for condition in conditions:
        if not bound.isdisjoint(re.findall(r"\w+", condition)):
            raise NotRowwise(f"the condition `{condition}` is only known inside the loop")
    body = "\n    ".join(line.replace("\n", "\n    ") for line in lines)
    parts = (f"if {header}:\n    {body}\nelse:\n    ", Original(whole, 1))
    return Edit((Replacement(whole, parts),), imports=site.imports)
