"""Arrays of NumPy that are made of Python integers and read for nothing but bounds."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses

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


def uses_of_array(site: Site, name: str) -> NumberUses | None:
    """The uses of an array where one element of it is a size; None where none is, and in a nested function."""
    sure = sure_calls(site)
    function = sure.calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return None
    uses = NumberUses(sure, site.resolve_global, swapped=True).several(function, name)
    return uses if uses.slices else None


def whole_numbers(site: Site, given: ast.expr) -> list[str]:
    """Conditions under which an expression is a tuple or list of Python integers; NotProven where a name is taken."""
    if (taken := next((each for each in _BUILTINS if site.evaluator.scope.is_local(each)), None)) is not None:
        raise NotProven(name_taken(taken))
    for part in ast.walk(given):
        if isinstance(part, ast.Attribute) and is_loud_property(site.evaluator, part.attr):
            raise NotProven(f"`{short(part)}` is a property that may do more than read; assign it to a variable first")
    text, each = site.text(given), site.free_name("n", "number", "bound")
    return [f"isinstance({text}, (tuple, list))", f"all(type({each}) is int for {each} in {text})"]


def tuple_in_front(site: Site, node: ast.Assign, name: str, given: ast.expr, uses: NumberUses, comment: str) -> Edit:
    """The statement with a tuple in place of the array under `torch.compile`; NotProven if anything can tell."""
    conditions = [site.compiling, *whole_numbers(site, given)]
    if uses.reason is not None:
        raise NotProven(f"`{name}` may be used as an array; index the Python list of its numbers for the bounds")
    if not _is_looked_up(given):
        raise NotProven(f"`{short(given)}` would be computed twice; assign it to a variable first")
    conditions += uses.conditions(site)
    lines = [comment, f"{name} = tuple({site.text(given)})"]
    return two_paths(site, node, conditions, lines)


def _is_looked_up(node: ast.expr) -> bool:
    """True for names, attributes, and what stands in them under keys of this kind."""
    if isinstance(node, ast.Subscript):
        return _is_looked_up(node.value) and (isinstance(node.slice, ast.Constant) or _is_looked_up(node.slice))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_looked_up(node.value))
