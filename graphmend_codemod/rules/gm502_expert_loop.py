"""expert-loop (GM502): a mixture of experts that gives each expert its own rows.

`for i in range(n): slot, row = torch.where(mask[i]); y.index_add_(0, row, expert(x[row]) * w[row, slot, None])` has
shapes that depend on the routing, so every round breaks the graph. The compile path gives every expert all rows: rows
that are not routed to it are zero on the way in and masked on the way out, so that whatever an expert makes of them,
overflow and nan included, reaches neither the result nor a gradient. Eager mode runs the original loop, word for word.

Rows that are sorted by expert and cut into segments (`x[start:end]`, `x.split(sizes)`) get the same treatment.

That multiplies the work of the experts by experts / experts per token, for segments by the number of experts. It pays
off where launching and breaking cost more than the products, with few experts or few tokens; measure it, and ignore
the rule where it does not.

An expert is taken to treat each row by itself, as it must for the loop to make sense; one that is known to mix rows
(batch norm) is left alone. A row is taken to be routed to an expert once. Parameters of an expert without rows get a
gradient of zeros under `torch.compile` where eager mode leaves them without one, and dropout draws other numbers.
Where eager mode raises for results of another dtype than the tensor that they go into, as under autocast, compiled
code casts them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.findings import Edit, Original, Replacement, Safety, Span
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.expert_hits import hits_of
from graphmend_codemod.rules.expert_rounds import check_experts, chooses_rows, is_mask_of_round, variables_of
from graphmend_codemod.rules.expert_segments import (
    SegmentRewriter,
    Segments,
    check_counts,
    counts_for_experts,
    segments_of,
)
from graphmend_codemod.rules.rowwise import Rewriter
from graphmend_codemod.rules.rowwise_expressions import NotRowwise, bound_in, self_cast
from graphmend_codemod.rules.site import Site

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
_TIMES = "as many times as much as there are experts"

rule = Rule(
    code="GM502",
    slug="expert-loop",
    title="give every expert all rows under torch.compile",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(),
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
            if torch.compiler.is_compiling():
                # Every expert sees all rows, masked, so that no shape depends on the routing.
                for i in range(3):
                    expert = self.experts[i]
                    slots = mask[i].bool().T
                    routed = slots.any(-1, keepdim=True)
                    row_weights = torch.where(slots, weights, 0).sum(-1, keepdim=True)
                    state = expert(torch.where(routed, x, 0)) * row_weights
                    result += torch.where(routed, state.to(x.dtype), 0)
            else:
                for i in range(3):
                    expert = self.experts[i]
                    slot, row = torch.where(mask[i])
                    if row.shape[0] == 0:
                        continue
                    state = x[None, row].reshape(-1, 4)
                    state = expert(state) * weights[row, slot, None]
                    result.index_add_(0, row, state.to(x.dtype))
            """,
            setup=_SETUP,
            inputs=("torch.randn(5, 4)", "torch.randn(6, 4)"),
        ),
        Example(
            before="""
            best = chosen[:, 0]
            for i, expert in enumerate(self.experts):
                result[best == i] = expert(x[best == i])
            """,
            after="""
            best = chosen[:, 0]
            if torch.compiler.is_compiling() and x.dim() == best.dim() + 1:
                # Every expert sees all rows, masked, so that no shape depends on the routing.
                for i, expert in enumerate(self.experts):
                    routed = (best == i).unsqueeze(-1)
                    expert_output = expert(torch.where(routed, x, 0))
                    result.copy_(torch.where(routed, expert_output, result))
            else:
                for i, expert in enumerate(self.experts):
                    result[best == i] = expert(x[best == i])
            """,
            setup=_SETUP,
            inputs=("torch.randn(5, 4)", "torch.randn(6, 4)"),
        ),
        Example(
            before="""
            order = chosen.view(-1).argsort()
            sorted_rows = x[order // 2]
            counts = nn.functional.one_hot(chosen, num_classes=3).sum((0, 1)).cpu().numpy()
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
            if torch.compiler.is_compiling() and sorted_rows.dim() == 2:
                # Every expert sees all rows, masked, so that no shape depends on the routing.
                counts = nn.functional.one_hot(chosen, num_classes=3).sum((0, 1))
                start = 0
                positions = torch.arange(sorted_rows.shape[0], device=sorted_rows.device)
                joined = 0
                for i, count in enumerate(counts):
                    end = start + count
                    routed = ((positions >= start) & (positions < end)).unsqueeze(-1)
                    part = self.experts[i](torch.where(routed, sorted_rows, 0))
                    joined = torch.where(routed, part, joined)
                    start = end
            else:
                counts = nn.functional.one_hot(chosen, num_classes=3).sum((0, 1)).cpu().numpy()
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
            setup=_SETUP,
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
            if torch.compiler.is_compiling():
                # Every expert sees all rows, masked, so that no shape depends on the routing.
                with torch.no_grad():
                    mask = nn.functional.one_hot(chosen, num_classes=self.count + 1).permute(2, 1, 0)
                for number in range(mask.shape[0]):
                    if number == self.count:
                        continue
                    slots = mask[number].bool().T
                    routed = slots.any(-1, keepdim=True)
                    gate, up = nn.functional.linear(x, self.enter[number]).chunk(2, dim=-1)
                    state = nn.functional.linear(torch.sigmoid(gate) * up, self.leave[number])
                    row_weights = torch.where(slots, weights, 0).sum(-1, keepdim=True)
                    state = state * row_weights
                    result += torch.where(routed, state.to(result.dtype), 0)
            else:
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
            setup=_FUNCTIONAL,
            inputs=("torch.randn(5, 4)", "torch.randn(1, 4)"),
        ),
        Declined(
            source="""
            mask = nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
            for number in (mask.sum(-1) > 0).nonzero():
                slot, row = torch.where(mask[number[0]])
                result.index_add_(0, row, self.experts[number[0]](x[row]) * weights[row, slot, None])
            """,
            because="`mask.sum(-1) > 0` is not known to have one element for each expert",
            setup=_SETUP,
        ),
        Declined(
            source="""
            mask = nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
            for number in (mask.sum((-1, -2)) > 0).nonzero():
                slot, row = torch.where(mask[number[0]])
                result.index_add_(0, row, self.experts[number](x[row]) * number.to(x.dtype))
            """,
            because="`number.to` needs a tensor",
            setup=_SETUP,
        ),
        Declined(
            source="""
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                state = expert(x[row])
                result[row] += state - state.mean(dim=0)
            """,
            because="`state.mean(dim=0)` may not treat each row by itself",
            setup=_SETUP,
        ),
        Declined(
            source="""
            for i, expert in enumerate(self.experts):
                row, slot = torch.where(chosen == i)
                result[row] += expert(x[row]) * row.numel()
            """,
            because="`row` is used for more than choosing rows",
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
    cost = "experts / experts per row times as much"
    message = f"gives each expert its own rows: `{purity.short(node.iter)}`; all rows in every expert cost {cost}"
    try:
        return Verdict(message, edit=_edit(site, node))
    except NotRowwise as reason:
        return Verdict(message, declined=str(reason))


@rule.on(ast.Assign, words=("tolist",), here=True)
def expert_counts(site: Site, node: ast.Assign) -> Verdict | None:
    """`sizes = sizes.tolist()`, for experts that split their rows by `sizes`."""
    name = counts_for_experts(site, node)
    if name is None:
        return None
    message = f"reads back how many rows each expert gets: `{name}`"
    try:
        check_counts(site, node, name)
        if site.torch is None:
            raise NotRowwise("the name `torch` is taken by something else in this module")
    except NotRowwise as reason:
        return Verdict(message, declined=str(reason))
    header = f"if not {site.compiling}:\n    # Compiled experts take the counts as a tensor.\n    "
    parts = (header, site.original(node, 1))
    return Verdict(message, edit=Edit((Replacement(site.span(node), parts),), imports=site.imports))


def _segment_loop(site: Site, node: ast.For) -> Verdict | None:
    edit, declined = None, None
    try:
        segments = segments_of(site, node)
        if segments is None:
            return None
        edit = _segment_edit(site, node, segments)
    except NotRowwise as reason:
        declined = str(reason)
    message = f"gives each expert its own rows: `{purity.short(node.iter)}`; all rows in every expert cost {_TIMES}"
    return Verdict(message, edit=edit, declined=declined)


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
        raise NotRowwise("the name `torch` is taken by something else in this module")
    if node.orelse:
        raise NotRowwise("the loop has an `else`")
    casts = {name for part in walk_in_layers(node) if (name := self_cast(part)) is not None}
    for name in bound_in(node) - allowed - casts:
        if site.live_after(name):
            raise NotRowwise(f"`{name}` is read after the loop")
    inner = site.at(node.body[0])
    if inner is None:
        raise NotRowwise("the loop is not reached by the compiler")
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
            raise NotRowwise(f"`{condition}` has to hold, and is known only inside the loop")
    body = "\n    ".join(line.replace("\n", "\n    ") for line in lines)
    parts = (f"if {header}:\n    {body}\nelse:\n    ", Original(whole, 1))
    return Edit((Replacement(whole, parts),), imports=site.imports)
