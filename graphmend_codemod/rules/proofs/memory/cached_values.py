"""Values that a branch keeps for later calls (`if not hasattr(self, "a"): self.a = ...`), for GM105.

The compile path computes such a value anew in each call, so it must be one that every call would compute: of constants,
of what the module holds, and of devices.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.aliasing import RANDOM
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_literal, is_name, is_not, last_name
from graphmend_codemod.analysis.scope import parameter_names, parameters, walk
from graphmend_codemod.rules.framework.site import Site


def cached_value(site: Site, statement: ast.stmt, own: str | None) -> ast.Assign | None:
    """The assignment in `if not hasattr(self, "a"): self.a = ...`, where `own` is how the function calls `self`."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return None
    test, inner = statement.test, statement.body[0]
    if not (is_not(test) and isinstance(test.operand, ast.Call)):
        return None
    call = test.operand
    if site.resolve(call.func) != "builtins.hasattr" or len(call.args) != 2 or not isinstance(inner, ast.Assign):
        return None
    wanted = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    target = inner.targets[0]
    targets = elements_of(target)
    written = [element.attr for element in targets if is_attribute(element, own)]
    return inner if written == [wanted] else None


def why_it_is_needed(site: Site, attribute: str, node: ast.Assign) -> str | None:
    """Why anything outside of the branch may need the attribute, which the compile path does not create."""
    branch = site.place.parents[-1] if site.place.parents else node
    inside = range(branch.lineno, (branch.end_lineno or branch.lineno) + 1)  # type: ignore[attr-defined]
    for part in walk(tree_of(site.source.text)):
        named = is_literal(part, attribute)
        read = isinstance(part, ast.Attribute) and part.attr == attribute
        if (named or read) and part.lineno not in inside:  # type: ignore[attr-defined]
            return f"`{attribute}` is used outside the branch, which does not store it when compiled"
    readers = [path for path in site.evaluator.scope.index.readers(attribute) if path != site.summary.path]
    return f"`{attribute}` is used in {readers[0]}, and the branch does not store it when compiled" if readers else None


def why_it_may_change(site: Site, node: ast.expr, own: str | None) -> str | None:
    """Why a later call may compute another value for `node` than the first one, None if it does not."""
    return _Calls(site, own).why_not_same(node, frozenset())


class _Calls:
    """What the calls of one function have in common."""

    def __init__(self, site: Site, own: str | None) -> None:
        self._site = site
        self._function = site.evaluator.scope.node
        self._same = {own} | {argument.arg for argument in parameters(self._function) if _is_device(argument)}
        self._given = parameter_names(self._function)

    def why_not_same(self, node: ast.expr, seen: frozenset[str]) -> str | None:
        devices = {id(part.value) for part in walk(node) if isinstance(part, ast.Attribute) and part.attr == "device"}
        for part in walk(node):
            if isinstance(part, ast.Call) and last_name(part.func) in RANDOM:
                return f"`{speculation.short(part)}` draws random numbers, which the branch would keep"
            if isinstance(part, ast.Name) and id(part) not in devices and not self._is_same(part.id, seen):
                text = speculation.short(node)
                return f"`{text}` depends on `{part.id}`, and the branch would keep the value of the first call"
        return None

    def _is_same(self, name: str, seen: frozenset[str]) -> bool:
        if name in self._same or not self._site.evaluator.scope.is_local(name):
            return True
        if name in self._given or name in seen:
            return False
        bound = [part for part in walk(self._function) if is_name(part, name)]
        stores = [part for part in bound if not isinstance(part.ctx, ast.Load)]
        assigned = [
            part for part in walk(self._function) if isinstance(part, ast.Assign) and is_name(part.targets[0], name)
        ]
        if len(stores) != len(assigned):
            return False
        return all(self.why_not_same(part.value, seen | {name}) is None for part in assigned)


def _is_device(argument: ast.arg) -> bool:
    annotated = walk(argument.annotation) if argument.annotation is not None else ()
    return argument.arg == "device" or any(last_name(part) == "device" for part in annotated)
