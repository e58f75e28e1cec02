"""Tensors that a function makes in order to take gradients for them: `x = x.clone().requires_grad_()`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site


class Leaf(NamedTuple):
    """`x = value.requires_grad_()` in a block, or alone in the `with torch.enable_grad():` at `position` of a block."""

    body: Sequence[ast.stmt]
    place: int
    value: ast.expr
    around: ast.With | None


def new_leaf(site: Site, name: str) -> Leaf:
    """The nearest statement in front of the site that gives `name` a new tensor that requires gradients."""
    for body, position in reversed(site.place.blocks):
        for place in range(position - 1, -1, -1):
            statement = body[place]
            value = _made(statement, name)
            if value is not None:
                _check_mode(site)
                return Leaf(body, place, value, None)
            if isinstance(statement, ast.With) and _turns_on(site, statement):
                first = _made(statement.body[0], name)
                if first is not None:
                    return Leaf(statement.body, 0, first, statement)
            if name in stored(statement):
                break
    raise NotProven(f"`{name}` does not get a new tensor that requires gradients in front of it")


def _check_mode(site: Site) -> None:
    if site.no_grad or site.sets_gradient_mode:
        raise NotProven("gradients may be off where the result is made")


def _turns_on(site: Site, statement: ast.With) -> bool:
    item = statement.items[0]
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    alone = len(statement.items) == 1 and item.optional_vars is None
    return alone and called is not None and site.resolve_global(called) == "torch.enable_grad"


def _made(statement: ast.stmt, name: str) -> ast.expr | None:
    """The `x.clone()` of `x = x.clone().requires_grad_()`."""
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.value, ast.Call)
    ):
        return None
    target, call = statement.targets[0], statement.value
    flagged = isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_" and not call.keywords
    if not flagged or not is_name(target, name) or not all(is_constant(a, True) for a in call.args):
        return None
    made = call.func.value  # type: ignore[attr-defined]
    new = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in {"clone", "detach"}
    return made if new else None


def is_constant(node: ast.expr, value: object) -> bool:
    """True for this constant: True, False or None."""
    return isinstance(node, ast.Constant) and node.value is value


def stored(node: ast.AST) -> set[str]:
    """The names that a statement binds."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
