"""Random numbers from 0 to 1: calls that draw one, and names that hold nothing else."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import is_name, item_of, listed, values_assigned
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.rules.framework.site import Site

_DRAWS = frozenset({"torch.rand", "random.random"})
OF_NUMPY = frozenset({"numpy.random.random", "numpy.random.rand", "numpy.random.random_sample"})
"""Functions of NumPy that draw one number from 0 to 1 where they are given nothing."""
DRAWN_IN_GRAPH = "_uniform_in_graph"
"""The helper that draws with NumPy outside of the graph."""
_OF_TORCH = frozenset({"torch.rand", "torch.randn"})


def is_draw(site: Site, node: ast.expr) -> bool:
    """True for a draw from 0 to 1, and for a name that holds nothing else."""
    node = unwrapped(node)
    if not isinstance(node, ast.Name):
        return draw_of(site, node) is not None
    bound = [part for part in walk_scope(site.evaluator.scope.node) if is_name(part, node.id)]
    stored = [part for part in bound if not isinstance(part.ctx, ast.Load)]
    given = [
        each.value
        for each in walk_scope(site.evaluator.scope.node)
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and each.targets[0] in stored
    ]
    if not stored or len(given) != len(stored):
        return False
    if not all(draw_of(site, each) for each in given) and not _drawn_in_graph(site, given):
        return False
    return all(_is_read(site, part) for part in bound if part not in stored)


def is_drawn_in_graph(site: Site, node: ast.expr) -> bool:
    """True for a name that holds what an operator lets NumPy draw where compiled, as an array without dimensions."""
    return isinstance(node, ast.Name) and _drawn_in_graph(site, values_assigned(site.evaluator.scope.node, node.id))


def _drawn_in_graph(site: Site, values: Sequence[ast.expr]) -> bool:
    """True for `_uniform_in_graph(0.0, 1.0)` behind a test of the compiler, and `np.random.uniform(0, 1)` elsewhere."""
    own = f"{site.summary.name}.{DRAWN_IN_GRAPH}"
    calls = [each for each in values if isinstance(each, ast.Call) and not each.keywords]
    named = [site.resolve(each.func) for each in calls]
    ends = [[getattr(part, "value", None) for part in each.args] for each in calls]
    known = all(
        (name in OF_NUMPY and not given) or (name in (own, "numpy.random.uniform") and given in ([], [0, 1]))
        for name, given in zip(named, ends, strict=True)
    )
    return known and len(calls) == len(values) and own in named


def _is_read(site: Site, name: ast.Name) -> bool:
    """True where a draw is compared and nothing else: it is not written, kept or given away."""
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(side is name or (unwrapped(side) is name) for side in sides):
                return True
    return False


def unwrapped(node: ast.expr) -> ast.expr:
    """`t` for `t.item()`."""
    while (read := item_of(node)) is not None:
        node = read
    return node


def draw_of(site: Site, node: ast.expr) -> ast.expr | None:
    """The draw itself for `torch.rand(1)`, `torch.rand(()).item()`, `random.random()`; None where there is none."""
    node = unwrapped(node)
    if isinstance(node, ast.IfExp) and site.value(node.test).compiling:
        return node.body if draw_of(site, node.orelse) is not None else None
    if not isinstance(node, ast.Call):
        return None
    called = site.resolve(node.func)
    if called == "random.uniform":
        ends = [getattr(each, "value", None) for each in node.args]
        return node if ends == [0, 1] else None
    if called not in _DRAWS or any(word.arg not in ("device", "dtype", "generator") for word in node.keywords):
        return None
    return node


def draws_one(site: Site, node: ast.expr) -> bool:
    """True for `torch.rand(1)`, `torch.rand(())` and the like: what is drawn is one element."""
    if not isinstance(node, ast.Call) or site.resolve(node.func) not in _OF_TORCH or not node.args:
        return False
    sizes = [part for each in node.args for part in listed(each)]
    words = {word.arg for word in node.keywords}
    return all(isinstance(each, ast.Constant) and each.value == 1 for each in sizes) and words <= {"device", "dtype"}
