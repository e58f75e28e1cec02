"""What a function does with a number that is a 0-dim integer tensor in eager mode: whether a Python integer serves it.

Integer arithmetic, comparisons, bounds of slices and sizes take both alike. A call of anything else, a result, an
attribute or a container may need a Tensor, and a quotient has another precision.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis.scope import FunctionNode, children, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site

_SIZED = frozenset(
    """torch.arange torch.empty torch.full torch.ones torch.zeros builtins.int builtins.len builtins.max builtins.min
    builtins.range builtins.print""".split()
)
_METHODS = frozenset(
    """expand narrow new_empty new_full new_ones new_zeros repeat reshape split unflatten view""".split()
)
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def why_not_a_number(site: Site, function: FunctionNode, name: str) -> str | None:
    """The first use of a name that needs a tensor, or may need one; None where a Python integer does as well."""
    parents = {id(child): parent for parent in walk(function) for child in children(parent)}
    own = {id(node) for node in walk_scope(function)}
    todo, seen = [name], set[str]()
    while todo:
        held = todo.pop()
        if held in seen:
            continue
        seen.add(held)
        for node in walk(function):
            if not isinstance(node, ast.Name) or node.id != held or not isinstance(node.ctx, ast.Load):
                continue
            if id(node) not in own:
                return f"`{held}` is used in a function nested in `{function.name}`"
            parent = parents[id(node)]
            if isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
                return f"`{short(parent)}` does not exist on a Python number"
            if not _serves(site, node, parents, todo):
                return f"`{short(parent)}` may need a Tensor"
    return None


def _serves(site: Site, node: ast.expr, parents: Mapping[int, ast.AST], names: list[str]) -> bool:
    parent = parents[id(node)]
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, _WHOLE) and _serves(site, parent, parents, names)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not) or _serves(site, parent, parents, names)
    if isinstance(parent, (ast.Compare, ast.Slice, ast.FormattedValue, ast.If, ast.While, ast.Assert, ast.BoolOp)):
        return True
    if isinstance(parent, ast.Subscript):
        return parent.slice is node
    if isinstance(parent, ast.IfExp):
        return parent.test is node or _serves(site, parent, parents, names)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, _WHOLE)
    if isinstance(parent, ast.Assign):
        plain = [target.id for target in parent.targets if isinstance(target, ast.Name)]
        names += plain
        return len(plain) == len(parent.targets)
    if isinstance(parent, (ast.Tuple, ast.List)):
        above = parents[id(parent)]
        return isinstance(above, (ast.Call, ast.keyword, ast.Subscript)) and _serves(site, parent, parents, names)
    call = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    named = site.resolve_global(call.func)
    return named in _SIZED if named is not None else method in _METHODS
