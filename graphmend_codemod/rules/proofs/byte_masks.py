"""Masks of type uint8, which eager mode takes for an index and for a condition, and torch.compile does not.

`mask.byte()` becomes `mask.byte().bool()` on the compile path, where nothing but a mask is made of it: as numbers the
two are not the same (`~1` is 254, and a sum may count more than ones).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis.patterns import elements_of, is_name, only_target
from graphmend_codemod.analysis.scope import dotted, parents_in, walk, walk_scope
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts
from graphmend_codemod.rules.proofs.twin import Twin

_SAME = frozenset({"detach", "contiguous", "clone"})
"""Methods that make a mask of a mask."""
_ASKED = frozenset({"shape", "device", "ndim", "dim", "size", "numel", "nelement"})
"""What a mask is asked, of either type."""


def is_mask_of_bytes(call: ast.Call) -> bool:
    """True for `x.byte()`, as far as its text says."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "byte" and not (call.args or call.keywords)


def bool_mask(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """`x.byte().bool()` for `x.byte()`; None where it may be used for anything but a mask."""
    if not isinstance(call.func, ast.Attribute) or site.resolve(call.func) is not None or site.torch is None:
        return None
    parents = parents_in(site.evaluator.scope.node)
    whole = _outermost(call, parents)
    target = only_target(statement)
    named = isinstance(statement, ast.Assign) and statement.value is whole and isinstance(target, ast.Name)
    if named and isinstance(target, ast.Name):
        used = _is_only_mask(site, statement, target.id, parents)
    else:
        used = _is_mask(site, whole, parents)
    owner = call.func.value
    if not used or (not site.value(owner).is_tensor and dotted(owner) is None):
        return None
    facts = tensor_facts(site, owner)
    if not site.value(owner).is_tensor:
        facts = [f"isinstance({site.text(owner)}, {site.torch}.Tensor)"]
    return Twin(call, call, f"{site.text(call)}.bool()", (site.compiling, *facts))


def _outermost(node: ast.expr, parents: Mapping[int, ast.AST]) -> ast.expr:
    """`x.byte().detach()` for `x.byte()` in it."""
    while True:
        method = parents.get(id(node))
        call = parents.get(id(method))
        if not isinstance(method, ast.Attribute) or method.attr not in _SAME or not isinstance(call, ast.Call):
            return node
        if call.func is not method or call.args or call.keywords:
            return node
        node = call


def _is_only_mask(site: Site, statement: ast.stmt, name: str, parents: Mapping[int, ast.AST]) -> bool:
    """True where an assignment is the last one to a name, and all that reads it afterwards takes it for a mask."""
    function = site.evaluator.scope.node
    outer = [each for each in site.place.parents if isinstance(each, (ast.For, ast.While, ast.Try))]
    local = site.evaluator.scope.is_local(name) and not site.place.in_loop
    here = {id(part) for part in walk_scope(function)}
    names = [part for part in walk(function) if is_name(part, name)]
    if outer or not local or any(id(part) not in here for part in names):
        return False
    own = {id(part) for part in walk(statement)}
    later = [part for part in names if id(part) not in own and part.lineno >= statement.lineno]
    return all(isinstance(part.ctx, ast.Load) and _is_mask(site, part, parents) for part in later)


def _is_mask(site: Site, node: ast.expr, parents: Mapping[int, ast.AST]) -> bool:
    """True for an index of a tensor, the condition of `torch.where`, and what is asked for its shape."""
    node = _outermost(node, parents)
    above = parents.get(id(node))
    if isinstance(above, ast.Attribute):
        return above.attr in _ASKED
    if isinstance(above, ast.Call):
        known = torch_function(site.resolve(above.func)) == "where"
        return known and len(above.args) == 3 and above.args[0] is node and not above.keywords
    whole = parents.get(id(above)) if isinstance(above, ast.Tuple) else above
    if not isinstance(whole, ast.Subscript) or site.value(whole.value).is_python:
        return False
    if not any(each is node for each in elements_of(whole.slice)):
        return False
    statement = parents.get(id(whole))
    return isinstance(whole.ctx, ast.Load) or (isinstance(statement, ast.Assign) and _is_rows(site, statement.value))


def _is_rows(site: Site, value: ast.expr) -> bool:
    """True for what is written by a mask of bytes: eager mode refuses a number."""
    return isinstance(value, ast.Subscript) or (site.value(value).is_tensor and not site.value(value).is_single)
