"""Arrays of NumPy that are made of Python integers."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site

ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_BUILTINS = ("all", "int", "isinstance", "list", "tuple", "type")


def array_made(site: Site, node: ast.Assign) -> tuple[str, ast.expr] | None:
    """`bounds` and `given` for `bounds = np.array(given)`; None for any other."""
    target, call = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return None
    if site.resolve(call.func) not in ARRAYS or len(call.args) != 1 or call.keywords:
        return None
    return target.id, call.args[0]


def whole_numbers(site: Site, given: ast.expr) -> list[str]:
    """Conditions under which an expression is a tuple or list of Python integers; NotProven where a name is taken."""
    if (taken := next((each for each in _BUILTINS if site.evaluator.scope.is_local(each)), None)) is not None:
        raise NotProven(name_taken(taken))
    for part in ast.walk(given):
        if isinstance(part, ast.Attribute) and is_loud_property(site.evaluator, part.attr):
            raise NotProven(f"`{short(part)}` is a property that may do more than read; assign it to a variable first")
    text, each = site.text(given), site.free_name("n", "number", "bound")
    return [f"isinstance({text}, (tuple, list))", f"all(type({each}) is int for {each} in {text})"]
