"""Positions that a function is given: how many there are, by who makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import all_given, is_literal, is_name, is_none, only_target, stores_name
from graphmend_codemod.analysis.scope import parameters, walk_scope
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses


def demand_length(site: Site, uses: MaskUses, function: Definition, positions: str) -> None:
    """NotProven unless those who give the positions make as many as `x` has places, where `x` goes with the mask."""
    callers = uses.calls.sites((function.qualname, function.node.lineno))
    given = [(uses.calls.definitions[by], arguments.get(positions)) for by, arguments in callers]
    if not given or any(_counted(site, function, positions)):
        given = [(function, ast.Name(positions))]
    for caller, argument in given:
        name = argument.id if isinstance(argument, ast.Name) else ""
        counted = set(_counted(site, caller, name))
        counted |= set(_renamed(caller, counted))
        together = [call for by, call in uses.companions if by is caller]
        if not together or not all(any(_is_one_of(each, counted) for each in all_given(call)) for call in together):
            raise NotProven(f"cannot infer the length of `{positions}` from `{caller.qualname}`")


def companion_of(uses: MaskUses, caller: Definition, statement: ast.stmt) -> str | None:
    """A parameter of the caller that all calls with the mask take first, and that keeps its tensor from there on.

    The calls may take another name of it, and give that their result.
    """
    links = [link for link in uses.links if link.caller is caller]
    first = [link.callee.arguments(link.call).get((link.callee.parameters or [""])[0]) for link in links]
    last = max((link.call.end_lineno or 0 for link in links), default=0)
    names = [part for part in walk_scope(caller.node) if isinstance(part, ast.Name)]
    stored = [part for part in names if not isinstance(part.ctx, ast.Load) and part.lineno <= last]
    for name in (each.arg for each in parameters(caller.node)):
        same = {name, *_renamed(caller, {name})}
        given = [part for part in walk_scope(caller.node) if isinstance(part, ast.Assign) and len(part.targets) == 1]
        kept = {id(part.targets[0]) for part in given if any(part.value is link.call for link in links)}
        kept |= {id(part.targets[0]) for part in given if _is_one_of(_unscaled(part.value), {name})}
        later = any(part.id == name and part.lineno >= statement.lineno for part in stored)
        other = any(part.id in same - {name} and id(part) not in kept for part in stored)
        if first and not later and not other and all(each is not None and _is_one_of(each, same) for each in first):
            return name
    return None


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _counted(site: Site, caller: Definition, name: str) -> Iterator[str]:
    """`x` for `if name is None: name = torch.arange(x.shape[1])`, where nothing else binds `name`."""
    bound = [node for node in walk_scope(caller.node) if stores_name(node, name)]
    for node in walk_scope(caller.node):
        given = isinstance(node, ast.If) and _asks_for_none(node.test, name)
        body = node.body if isinstance(node, ast.If) and given else []
        made = next((part for part in body if isinstance(part, ast.Assign) and bound == part.targets), None)
        if made is not None and isinstance(made.value, ast.Call) and _is_arange(site, made.value):
            yield from _length_of(made.value.args)


def _is_arange(site: Site, call: ast.Call) -> bool:
    plain = all(word.arg in {"device", "dtype"} for word in call.keywords)
    return plain and site.resolve_global(call.func) == "torch.arange"


def _length_of(arguments: list[ast.expr]) -> Iterator[str]:
    """`x` for `x.shape[1]` and for `a, a + x.shape[1]`."""
    if len(arguments) == 2 and isinstance(arguments[1], ast.BinOp) and isinstance(arguments[1].op, ast.Add):
        end = arguments[1]
        if ast.dump(end.left) != ast.dump(arguments[0]):
            return
        size: ast.expr = end.right
    elif len(arguments) == 1:
        size = arguments[0]
    else:
        return
    asked, number = (size.value, size.slice) if isinstance(size, ast.Subscript) else (size, None)
    if isinstance(size, ast.Call) and len(size.args) == 1 and not size.keywords:
        asked, number = size.func, size.args[0]
    wanted = "size" if isinstance(size, ast.Call) else "shape"
    second = is_literal(number, 1)
    if second and isinstance(asked, ast.Attribute) and asked.attr == wanted and isinstance(asked.value, ast.Name):
        yield asked.value.id


def _asks_for_none(test: ast.expr, name: str) -> bool:
    """True for `name is None`."""
    if not isinstance(test, ast.Compare) or not is_name(test.left, name) or not isinstance(test.ops[0], ast.Is):
        return False
    compared = test.comparators[0]
    return len(test.ops) == 1 and is_none(compared)


def _renamed(caller: Definition, names: set[str]) -> Iterator[str]:
    """Other names for the same, or for a multiple of it."""
    for node in walk_scope(caller.node):
        target = only_target(node)
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and _is_one_of(_unscaled(node.value), names):
            yield target.id


def _unscaled(node: ast.expr) -> ast.expr:
    """`x` for `x * self.scale`."""
    scaled = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Attribute)
    return node.left if scaled and isinstance(node, ast.BinOp) else node
