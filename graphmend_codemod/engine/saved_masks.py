"""Masks and indices that autograd saves for a compile path, and that the function changes in place below.

`x[mask].sum()` saves places in eager mode, `torch.where(mask, x, 0)` the mask itself: `mask &= other` in a later line
would end compiled code with an error as soon as gradients are taken. So it is with what an operator is given: it saves
all of that, where a layer of torch may save a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.patterns import all_names, last_name
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import is_bool_or_byte, is_floating_dtype
from graphmend_codemod.core.findings import Span
from graphmend_codemod.rules.framework.rule import Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site


def saved(diagnostic: Diagnostic, rule: Rule, site: Site) -> Diagnostic:
    """The diagnostic without its edit where a mask or an index of the site is written in place below it."""
    contract = rule.contract
    if diagnostic.edit is None or not (contract.saves_masks or contract.saves_inputs) or site.no_grad:
        return diagnostic
    texts = [part for each in diagnostic.edit.replacements for part in each.parts if isinstance(part, str)]
    statement = site.span(site.place.statement)
    around = next((each.span for each in diagnostic.edit.replacements if _holds(each.span, statement)), statement)
    inside = [part for part in walk_scope(site.evaluator.scope.node) if _is_in(part, around)]
    own = {_root(part) for part in inside if _is_target(part)}
    if contract.saves_inputs:
        here = any(_holds(each.span, statement) for each in diagnostic.edit.replacements)
        read = _read(inside) - own - {site.evaluator.scope.self_name} if here else set()
        names = _sharing(site, {name for name in read if not site.value(ast.Name(name, ast.Load())).is_python})
    else:
        names = {name for name in all_names(site.place.statement) - own if _is_mask(site, name, texts)}
    written = next((part for part, name in _writes(site, around) if name in names), None)
    if written is None:
        return diagnostic
    reason = f"`{short(written)}` changes in place what a gradient of the compile path would need"
    return diagnostic._replace(edit=None, declined=f"{reason}; assign a new tensor there")


def _holds(span: Span, statement: Span) -> bool:
    """True for the place of the statement, alone or with others around it."""
    return span[:2] <= statement[:2] and statement[2:] <= span[2:]


def _is_in(part: ast.AST, span: Span) -> bool:
    start = (getattr(part, "lineno", 0), getattr(part, "col_offset", 0))
    return span[:2] <= start < span[2:]


def _read(parts: Sequence[ast.AST]) -> set[str]:
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _sharing(site: Site, names: set[str]) -> set[str]:
    """These names, and those that assignments make of them, or them of those: `v` for `v = x.view(-1)`."""
    pairs = [
        {target.id, _root(part.value)}
        for part in walk_scope(site.evaluator.scope.node)
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, ast.Name) and _root(part.value)
    ]
    while more := {name for pair in pairs if pair & names for name in pair} - names - {site.evaluator.scope.self_name}:
        names = names | more
    return names


def _is_target(part: ast.AST) -> bool:
    return isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load)


def _is_mask(site: Site, name: str, texts: list[str]) -> bool:
    """True for a tensor of bools or integers, or one that the header asks to be so."""
    value = site.place.env.get(name)
    dtype = value.dtype if value is not None and value.is_tensor else None
    integers = dtype is not None and dtype.startswith("torch.") and not is_floating_dtype(dtype)
    asked = (f"{name}.dtype == torch.bool", f"{name}.dtype == torch.int", f"{name}.dtype in (torch.bool")
    return integers or is_bool_or_byte(dtype) or any(each in text for text in texts for each in asked)


def _writes(site: Site, around: Span) -> Iterator[tuple[ast.AST, str]]:
    """What is written in place below a place, or anywhere in a loop around it, with the name that leads there."""
    looped = any(isinstance(each, (ast.For, ast.AsyncFor, ast.While)) for each in site.place.parents)
    for part in walk_scope(site.evaluator.scope.node):
        line = getattr(part, "lineno", 0)
        if around.start_line <= line <= around.end_line or (line < around.start_line and not looped):
            continue
        if isinstance(part, ast.AugAssign):
            yield part, _root(part.target)
        elif _is_target(part):
            yield part, _root(part)
        elif isinstance(part, ast.Call):
            yield from ((part, _root(each)) for each in _written_by(part))


def _written_by(call: ast.Call) -> Sequence[ast.expr]:
    """What a call writes in place by its name or arguments: `x.add_(1)`, `torch.relu_(x)`, `silu(x, inplace=True)`."""
    name = last_name(call.func)
    if name.endswith("_") and not name.endswith("__"):
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return [*owner, *call.args[:1]]
    found = aliasing.of_operator(name, call, None)
    words = [word.value for word in call.keywords if word.arg == "out"]
    return [*words, *found.writes] if found.known else words


def _root(node: ast.AST) -> str:
    """`m` for `m`, `m[0]`, `m.view(-1)` and `m.data`; an empty string where no name leads there."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id
