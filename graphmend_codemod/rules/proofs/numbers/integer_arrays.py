"""Arrays of NumPy that are made of Python integers and read for nothing but bounds."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import children, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.unique_callee import is_whole

ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_BUILTINS = ("all", "int", "isinstance", "list", "tuple")


class NoIntegers(Exception):
    """Why an array stays; the text says what to do."""


def array_of(site: Site, node: ast.Assign) -> tuple[str, ast.expr] | None:
    """`bounds` and `given` for `bounds = np.array(given)`, where one element of it bounds a slice."""
    target, call = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return None
    if site.resolve(call.func) not in ARRAYS or len(call.args) != 1 or call.keywords:
        return None
    return (target.id, call.args[0]) if any(_bounds(site, target.id)) else None


def _bounds(site: Site, name: str) -> list[bool]:
    """For each time that the function reads a name, whether that is an element that bounds a slice."""
    function = site.evaluator.scope.node
    parents = {id(child): parent for parent in walk(function) for child in children(parent)}
    found = []
    for part in walk(function):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            element = parents[id(part)]
            whole = isinstance(element, ast.Subscript) and element.value is part and is_whole(element.slice)
            bounded = parents.get(id(element))
            found.append(whole and isinstance(bounded, ast.Slice) and element is not bounded.step)
    return found


def tuple_in_front(site: Site, node: ast.Assign, name: str, given: ast.expr, comment: str) -> Edit:
    """The statement with a tuple in place of the array under `torch.compile`; NoIntegers if anything can tell."""
    function = site.evaluator.scope.node
    if site.torch is None:
        raise NoIntegers(name_taken())
    if (taken := next((each for each in _BUILTINS if site.evaluator.scope.is_local(each)), None)) is not None:
        raise NoIntegers(name_taken(taken))
    stores = [part for part in walk_scope(function) if isinstance(part, ast.Name) and part.id == name]
    if sum(not isinstance(part.ctx, ast.Load) for part in stores) != 1 or not all(_bounds(site, name)):
        raise NoIntegers(f"`{name}` may be used as an array; index the Python list of its numbers for the bounds")
    if not _is_looked_up(given):
        raise NoIntegers(f"`{short(given)}` would be computed twice; assign it to a variable first")
    text, each = site.text(given), site.free_name("n", "number", "bound")
    conditions = [
        site.compiling,
        f"isinstance({text}, (tuple, list))",
        f"all(isinstance({each}, int) for {each} in {text})",
    ]
    path = f"{site.header('if', conditions)}\n    {comment}\n    {name} = tuple({text})\nelse:\n    "
    return Edit((Replacement(site.span(node), (path, site.original(node, 1))),), imports=site.imports)


def _is_looked_up(node: ast.expr) -> bool:
    """True for names, attributes, and what stands in them under keys of this kind."""
    if isinstance(node, ast.Subscript):
        return _is_looked_up(node.value) and (isinstance(node.slice, ast.Constant) or _is_looked_up(node.slice))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_looked_up(node.value))
