"""Operands that Python's `and` and `or` skip where another one decides, and that compiled code computes in any case."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis import shape_needs, speculation
from graphmend_codemod.analysis.hazards import FREE, Hazards
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.narrowing import narrow
from graphmend_codemod.analysis.patterns import is_attribute, is_not, item_of
from graphmend_codemod.analysis.values import SCALAR, is_bool_or_byte
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts

_OF_SOME_ELEMENT = frozenset({"max", "min", "amax", "amin", "argmax", "argmin"})


def unwrapped(site: Site, node: ast.expr) -> ast.expr:
    """`t` for `bool(t)`, and for `t.item()` where `t` is bool, or uint8 as what it asks about."""
    while isinstance(node, ast.Call):
        if site.resolve(node.func) == "builtins.bool" and len(node.args) == 1 and not node.keywords:
            node = node.args[0]
        elif (read := item_of(node)) is not None and is_bool_or_byte(site.value(read).dtype):
            node = read
        else:
            break
    return node


def _asked(site: Site, node: ast.expr) -> ast.expr:
    """`t` for `not bool(t)` as well: whose truth an operand asks."""
    node = unwrapped(site, node)
    while is_not(node):
        node = unwrapped(site, node.operand)
    return node


def tested(site: Site, node: ast.expr) -> ast.expr:
    """The same for a test, which comes out for `t` as for `t.item()`, whatever the dtype of `t` is."""
    while (inner := item_of(unwrapped(site, node))) is not None and site.value(inner).is_tensor:
        node = inner
    return unwrapped(site, node)


def asked_earlier(site: Site, conjuncts: list[ast.expr], static: tuple[ast.expr, ...]) -> Hazards:
    """Static conjuncts behind a tensor now come before it."""
    hazards = FREE
    before: list[ast.expr] = []
    for operand in conjuncts:
        if operand not in static:
            before.append(operand)
        elif before:
            found = site.judge(operand) & Hazards(impure=acts(site, operand))
            if found.raises is not None:
                found = found._replace(impure=found.impure or f"{found.raises}, and eager mode may skip it")
            hazards = hazards & found
            for tensor in before:
                # A false static conjunct now keeps the tensor's test from running at all.
                hazards = hazards & Hazards(impure=site.judge(_asked(site, tensor)).impure)
    return hazards


class Skipped(NamedTuple):
    """What running an operand means that Python may skip: the rest of its hazards, and why it may raise.

    `facts` are trace-time conditions under which it does not: a floating dtype, and that there is an element.
    """

    hazards: Hazards
    raises: str | None
    facts: tuple[str, ...]


def where_skipped(site: Site, operand: ast.expr, env: Env) -> Skipped:
    """An operand that Python's `and` or `or` may skip, and compiled code computes."""
    operand = _asked(site, operand)
    if isinstance(operand, ast.BoolOp):
        return _all_of(site, operand, env)
    env = _with_shapes_of_attributes(site, operand, env)
    hazards = speculation.judge(site.evaluator, operand, env)
    named = [each for each in sorted(hazards.needs_floating) if each.isidentifier() or each in env]
    facts = [f"{each}.is_floating_point()" for each in named]
    raises = hazards.raises
    for need in shape_needs.in_order(hazards.needs_shapes):
        asked = shape_needs.asked(need, env, attributes=True)
        raises = raises or ("it may raise for some shapes" if asked is None else None)
        facts += [] if asked is None else [asked]
    unclear = next((text for text in sorted(hazards.needs_floating) if text not in named), None)
    if raises is None and unclear is not None:
        raises = f"cannot infer the dtype of `{unclear}`, and `{speculation.short(operand)}` raises for some"
    why = f"{raises}, and eager mode may skip it; assign it to a variable before the test" if raises else None
    return Skipped(hazards._replace(raises=None, needs_shapes=frozenset()), why, tuple(facts))


def _with_shapes_of_attributes(site: Site, operand: ast.expr, env: Env) -> Env:
    """What names hold, where each tensor of the own instance has a shape of its own: nothing writes in a test."""
    found = dict(env)
    for part in ast.walk(operand):
        if is_attribute(part, site.evaluator.scope.self_name):
            value, text = site.evaluator.value(part, env), ast.unparse(part)
            if value.is_tensor and value.shape != SCALAR and text not in env:
                found[text] = value._replace(shape=text)
    return found


def _all_of(site: Site, node: ast.BoolOp, env: Env) -> Skipped:
    """The operands of an operand; what is asked of the first ones is known to the others."""
    hazards, raises, facts, env = FREE, None, list[str](), dict(env)
    for each in node.values:
        found = where_skipped(site, each, env)
        hazards, raises = hazards & found.hazards, raises or found.raises
        facts += found.facts
        narrow(site.evaluator, each, isinstance(node.op, ast.And), env)
    return Skipped(hazards, raises, tuple(facts))


def of_some_element(node: ast.expr) -> list[str]:
    """Names of which an expression asks the largest or smallest element, so that they must have one."""
    return list(dict.fromkeys(ast.unparse(called.value) for called in _extremes(node)))


def _extremes(node: ast.expr) -> Iterator[ast.Attribute]:
    for call in ast.walk(node):
        called = call.func if isinstance(call, ast.Call) and not call.args and not call.keywords else None
        if isinstance(called, ast.Attribute) and called.attr in _OF_SOME_ELEMENT and isinstance(called.value, ast.Name):
            yield called
