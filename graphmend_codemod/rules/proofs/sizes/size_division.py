"""Sizes that are divided as tensors, and the division of Python integers that takes its place under `torch.compile`.

`torch.div(x.size(1), n, rounding_mode="trunc")` is a tensor. With sizes that Dynamo takes for constants its value is
known; with dynamic ones it has to be read back wherever it is used as a size.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_literal, is_name, last_name
from graphmend_codemod.analysis.scope import children, parents_in, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import Origin
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.sizes.size_multiples import told_multiples
from graphmend_codemod.rules.proofs.sizes.size_spellings import is_size

_TAKES_SIZES = frozenset(
    """view reshape expand repeat new_zeros new_ones new_empty new_full zeros ones empty full arange narrow
    unflatten as_strided range""".split()
)


def divisions(site: Site, node: ast.expr) -> list[ast.Call]:
    """The divisions of sizes in an expression."""
    return [part for part in walk_in_layers(node) if isinstance(part, ast.Call) and _is_division(site, part)]


def division_edit(site: Site, node: ast.Assign, calls: list[ast.Call]) -> Edit:
    """The statement with integers under `torch.compile`; NotProven with the reason if it may differ."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        raise NotProven("the result is not assigned to a single variable")
    target = node.targets[0].id
    parents = parents_in(node)
    for call in calls:
        if not _is_size(call, parents, node):
            _demand_number(site, target)
    written = {id(call): (call, _divided(site, call, parents[id(call)])) for call in calls}
    inside = site.but(written=written)
    value = node.value
    line = f"{target} = {inside.text(value)}"
    if site.indentation(1) + len(line) > site.line_limit and isinstance(value, ast.Call):
        arguments = [inside.text(each) for each in value.args]
        arguments += [f"{word.arg}={inside.text(word.value)}" for word in value.keywords]
        line = site.call(f"{target} = {inside.text(value.func)}(", arguments, deeper=1)
    elif site.indentation(1) + len(line) > site.line_limit and isinstance(value, ast.List):
        line = site.call(f"{target} = [", [inside.text(each) for each in value.elts], deeper=1, after="]")
    # Rounding down is the same as towards zero as long as the divisor is positive.
    asserted, told = told_multiples(site, node, calls)
    conditions = [
        site.compiling,
        *asserted,
        *dict.fromkeys(f"{site.text(call.args[1])} > 0" for call in calls if _may_differ(call)),
    ]
    return Edit((in_front(site, [node], conditions, [*told, line]),), imports=site.imports)


def is_division(node: ast.Call) -> bool:
    """True for what is spelled like one."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in {"div", "floor_divide"} and len(node.args) == 2


def _is_division(site: Site, node: ast.Call) -> bool:
    if not is_division(node) or not _is_length(site, node.args[0]):
        return False
    qualified, words = site.resolve(node.func), {word.arg: word.value for word in node.keywords}
    if qualified == "torch.floor_divide":
        return not words
    mode = words.get("rounding_mode")
    rounded = isinstance(mode, ast.Constant) and mode.value in ("trunc", "floor")
    return qualified == "torch.div" and rounded and len(words) == 1


def _is_length(site: Site, node: ast.expr) -> bool:
    """True for the size of something, which is never negative."""
    if is_size(node):
        return True
    value = site.value(node)
    return isinstance(node, ast.Name) and value.is_python and value.origin is Origin.SHAPE


def _may_differ(call: ast.Call) -> bool:
    mode = next((word.value for word in call.keywords), None)
    positive = isinstance(call.args[1], ast.Constant) and isinstance(call.args[1].value, int) and call.args[1].value > 0
    return is_literal(mode, "trunc") and not positive


def _divided(site: Site, call: ast.Call, parent: ast.AST) -> str:
    size, divisor = call.args
    tight = isinstance(divisor, (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript))
    text = f"{site.text(size)} // {site.text(divisor) if tight else f'({site.text(divisor)})'}"
    loose = isinstance(parent, (ast.Call, ast.Assign, ast.Tuple, ast.List, ast.keyword))
    added = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))
    return text if loose or added else f"({text})"


def _is_size(call: ast.Call, parents: dict[int, ast.AST], statement: ast.Assign) -> bool:
    """True where the result is handed to something that takes sizes, alone or with a number added."""
    node: ast.AST = call
    while node is not statement:
        node = parents[id(node)]
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            return name in _TAKES_SIZES
        if not isinstance(node, (ast.BinOp, ast.Tuple, ast.List, ast.Constant)):
            return False
    return False


def _demand_number(site: Site, name: str) -> None:
    """NotProven when something is asked of `name`, or done with it, that an integer has another answer for."""
    function = site.evaluator.scope.node
    for parent in [function, *walk_scope(function)]:
        for part in children(parent):
            if not is_name(part, name) or not isinstance(part.ctx, ast.Load):
                continue
            called = parent.func if isinstance(parent, ast.Call) else None
            known = called is None or getattr(called, "attr", getattr(called, "id", "")) in _TAKES_SIZES
            if isinstance(parent, ast.Attribute) or not known:
                raise NotProven(f"`{speculation.short(parent)}` may need a Tensor")
