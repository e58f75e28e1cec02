"""Masks and indices that autograd saves for a compile path, and that the function changes in place below.

`x[mask].sum()` saves places in eager mode, `torch.where(mask, x, 0)` the mask itself: `mask &= other` in a later line
would end compiled code with an error as soon as gradients are taken. So it is with what an operator is given: it saves
all of that, where a layer of torch may save a copy.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import is_bool_or_byte, is_floating_dtype
from graphmend_codemod.core.findings import Edit, Span
from graphmend_codemod.engine.written_below import is_element, root, written_below, written_in
from graphmend_codemod.rules.framework.rule import Contract
from graphmend_codemod.rules.framework.site import Site


def why_not(edit: Edit, site: Site, contract: Contract) -> str | None:
    """The reason where a mask or an index of the site is written in place below it."""
    if not (contract.saves_masks or contract.saves_inputs) or site.no_grad:
        return None
    texts = [part for each in edit.replacements for part in each.parts if isinstance(part, str)]
    statement = site.span(site.place.statement)
    around = next((each.span for each in edit.replacements if _holds(each.span, statement)), statement)
    inside = [part for part in walk_scope(site.evaluator.scope.node) if _is_in(part, around)]
    own = {root(part) for part in inside if is_element(part)}
    looped = any(isinstance(each, (ast.For, ast.AsyncFor, ast.While)) for each in site.place.parents)
    if contract.saves_inputs:
        here = any(_holds(each.span, statement) for each in edit.replacements)
        read = _read(inside) - own - {site.evaluator.scope.self_name} if here else set()
        read = {name for name in read if not site.value(ast.Name(name, ast.Load())).is_python}
        names = _sharing(site, read, sys.maxsize if looped else around.end_line)
    else:
        names = {name for name in all_names(site.place.statement) - own if _is_mask(site, name, texts)}
    if looped:
        writes = written_in(walk_scope(site.evaluator.scope.node), skipped=around)
        written = next((part for part, name in writes if name in names), None)
    else:
        bound = {part.id for part in inside if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
        names -= bound if contract.saves_inputs else set()  # what an operator returns shares nothing with its inputs
        written = written_below(site.evaluator.scope.node, around, names, site.evaluator.scope.self_name)
    if written is None:
        return None
    return (
        f"`{short(written)}` changes in place what a gradient of the compile path would need; assign a new tensor there"
    )


def _holds(span: Span, statement: Span) -> bool:
    """True for the place of the statement, alone or with others around it."""
    return span[:2] <= statement[:2] and statement[2:] <= span[2:]


def _is_in(part: ast.AST, span: Span) -> bool:
    start = (getattr(part, "lineno", 0), getattr(part, "col_offset", 0))
    return span[:2] <= start < span[2:]


def _read(parts: Sequence[ast.AST]) -> set[str]:
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _sharing(site: Site, names: set[str], last_line: int) -> set[str]:
    """These names, and those that assignments up to a line make of them, or them of those: `v` for `v = x.view(-1)`."""
    pairs = [
        {target.id, root(part.value)}
        for part in walk_scope(site.evaluator.scope.node)
        if isinstance(part, ast.Assign) and part.lineno <= last_line
        for target in part.targets
        if isinstance(target, ast.Name) and root(part.value)
    ]
    while more := {name for pair in pairs if pair & names for name in pair} - names - {site.evaluator.scope.self_name}:
        names = names | more
    return names


def _is_mask(site: Site, name: str, texts: list[str]) -> bool:
    """True for a tensor of bools or integers, or one that the header asks to be so."""
    value = site.place.env.get(name)
    dtype = value.dtype if value is not None and value.is_tensor else None
    integers = dtype is not None and dtype.startswith("torch.") and not is_floating_dtype(dtype)
    asked = (f"{name}.dtype == torch.bool", f"{name}.dtype == torch.int", f"{name}.dtype in (torch.bool")
    return integers or is_bool_or_byte(dtype) or any(each in text for text in texts for each in asked)
