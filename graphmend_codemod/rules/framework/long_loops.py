"""Loops that are too long to be unrolled: Dynamo traces each round anew, once nothing in it breaks the graph.

Farthest point sampling (`for i in range(512)`) with seven breaks fewer took 80 s to compile in place of 21, and
118 s to run in place of 48 (torch 2.13, CPU, backend eager): before, the graph broke in the first round and Python ran
the loop.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis.patterns import names_bound, root_of
from graphmend_codemod.analysis.values import ValueKind

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site

MOST_ROUNDS = 64
"""More than any model has layers; fewer than sequences have steps and clouds have points."""


def few_rounds(site: Site) -> list[str]:
    """Conditions under which the `range` loops around a site are short enough to be unrolled."""
    stops = [stop for loop in _loops(site) if (stop := _stop(site, loop)) is not None]
    return [f"{site.text(stop)} <= {MOST_ROUNDS}" for stop in stops if not isinstance(stop, ast.Constant)]


def long_loop(site: Site) -> str | None:
    """The `range(512)` around a site whose number of rounds is written down and too large."""
    for loop in _loops(site):
        stop = _stop(site, loop)
        if isinstance(stop, ast.Constant) and isinstance(stop.value, int) and stop.value > MOST_ROUNDS:
            return ast.unparse(loop.iter)
    return None


def _loops(site: Site) -> list[ast.For]:
    return [each for each in site.place.parents if isinstance(each, ast.For)] if site.place.in_loop else []


def _stop(site: Site, loop: ast.For) -> ast.expr | None:
    """The `n` of `range(n)` and `range(k, n)`: a constant, a name, an attribute, or a size that may be asked again."""
    call = loop.iter
    if not isinstance(call, ast.Call) or site.resolve(call.func) != "builtins.range" or call.keywords:
        return None
    if len(call.args) not in (1, 2) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    stop = call.args[-1]
    if isinstance(stop, ast.Constant):
        return stop
    held = stop
    if isinstance(held, ast.Subscript) and isinstance(held.slice, ast.Constant):
        held = held.value
        if not isinstance(held, ast.Attribute) or held.attr != "shape":
            return None
    root = root_of(held)
    plain = isinstance(held, (ast.Name, ast.Attribute)) and root is not None and not _may_act(site, held)
    # What the loop binds anew, or a tensor, says nothing of its rounds.
    rebound = root in names_bound(loop)
    return stop if plain and not rebound and site.value(stop).kind is not ValueKind.TENSOR else None


def _may_act(site: Site, node: ast.expr) -> bool:
    """True for a property of the class, which may do more than read."""
    facts = site.evaluator.scope.class_facts
    return isinstance(node, ast.Attribute) and facts is not None and node.attr in facts.properties
