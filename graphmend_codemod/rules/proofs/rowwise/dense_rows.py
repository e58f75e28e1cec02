"""A branch that works on chosen rows, written for all rows of which a mask keeps some: text and conditions."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.scope import FunctionNode, walk_in_layers
from graphmend_codemod.core.findings import Span
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link
from graphmend_codemod.rules.proofs.rowwise.row_values import NotRowwise
from graphmend_codemod.rules.proofs.rowwise.rowblocks import Blocks, Layers


def about_layers(site: Site, layers: Layers, owner: str, function: FunctionNode) -> list[str]:
    """What must hold for the layers to be those of which is known that they treat each row by itself."""
    certain, own = CertainCalls(site, layers.calls), Definition(site.function, function, owner)
    for holder, attribute in layers.checked:
        if holder == owner:
            instance = ast.Name(site.evaluator.scope.self_name or "self", ast.Load())
            call = ast.Call(ast.Attribute(instance, attribute, ast.Load()), [], [])
            callee = layers.calls.callee(own, call)
            if callee is not None:
                certain.follow(certain.start(), Link(own, call, callee))
            else:
                certain.demand_layer(certain.start(), own, call)
        made = layers.calls.constructions(holder, attribute)
        if holder != owner or any(each.args and isinstance(each.args[0], ast.Call) for each in made):
            certain.demand_attribute(attribute)
    return certain.conditions()


def text_for_all_rows(site: Site, node: ast.If, blocks: Blocks, target: str, name: str) -> str:
    """The branch for all rows, from its own text."""
    last = node.body[-1]
    pieces: list[tuple[Span, str]] = []
    for read in blocks.reads:
        pieces.append(_without_choice(site, read))
    assert isinstance(last, ast.Assign)
    body = _replaced(site, Span(*_start(node.body[0]), *_start(last)), pieces)
    value = _replaced(site, site.span(last.value), pieces)
    if any(isinstance(part, ast.Constant) and part.end_lineno != part.lineno for part in walk_in_layers(node)):
        raise NotRowwise("the branch contains a multi-line string")
    column = node.body[0].col_offset
    lines = textwrap.dedent(f"{' ' * column}{body}").splitlines()
    folded = " ".join(part.strip() for part in value.splitlines())
    folded = folded.replace("( ", "(").replace(" )", ")")
    mask = f"{name}.reshape(-1, *[1] * ({target}.dim() - 1))"
    # What is written takes the dtype of what it is written into.
    whole = folded if isinstance(last.value, (ast.Name, ast.Call, ast.Attribute)) else f"({folded})"
    select = site.call(f"{target} = {site.torch}.where(", [mask, f"{whole}.to({target}.dtype)", target], deeper=1)
    return "\n    ".join([*(line for line in lines if line.strip()), select])


def _start(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _without_choice(site: Site, node: ast.Subscript) -> tuple[Span, str]:
    """`x` for `x[rows]`, `x[:, 1:]` for `x[rows, 1:]`."""
    base = site.text(node.value)
    if not isinstance(node.slice, ast.Tuple):
        return site.span(node), base
    rest = ", ".join(site.text(part) for part in node.slice.elts[1:])
    return site.span(node), f"{base}[:, {rest}]"


def _replaced(site: Site, span: Span, pieces: Sequence[tuple[Span, str]]) -> str:
    text, at = "", (span.start_line, span.start_column)
    end = (span.end_line, span.end_column)
    for place, written in sorted(pieces):
        start = (place.start_line, place.start_column)
        if at <= start and (place.end_line, place.end_column) <= end:
            text += site.source.segment(Span(*at, *start)) + written
            at = (place.end_line, place.end_column)
    return text + site.source.segment(Span(*at, *end))
