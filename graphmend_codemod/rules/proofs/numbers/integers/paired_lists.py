"""Lists that a function has together with the tensor that was built from them: it built that itself, or is given both.

Where every call of a module gives both, and nothing changes either, the list says what the tensor holds. Where another
file uses the class that is given both, it may give two that differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.callgraph import Definition, calls_in, tree_of
from graphmend_codemod.analysis.list_provenance import Origins
from graphmend_codemod.analysis.patterns import is_name, names_called, stores_name
from graphmend_codemod.analysis.scope import children, dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import attribute_stores, closure
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.integers.held import Held
from graphmend_codemod.rules.proofs.numbers.integers.list_changes import ListChanges


def paired_list(site: Site, own: Definition, tensor: str, at: ast.stmt, depth: int) -> Held | None:
    """The list of sizes from which a tensor was built, here or by every caller; NotProven where that is not certain."""
    origins, value = site.flow.origins, site.place.env.get(tensor)
    if origins is None or value is None or value.built_from is None:
        return None
    source = value.built_from
    known = {**site.flow.lists, **origins.builders.get(own.key, {})}
    if known.get(tensor) != source:
        raise NotProven(f"`{source}` may have changed since `{tensor}` was built from it")
    calls = calls_in(site.source.text)
    for key, pairs in origins.builders.items():
        for given in pairs.values():
            if _is_parameter(calls.definitions[key], given):
                raise NotProven(f"only an annotation says that `{given}` contains integers")
    _Callers(site, origins).demand_known(own)
    changes = ListChanges(calls, lambda name: site.evaluator.scope.index.resolve(site.summary.name, name))
    changed = changes.before(own, tensor, source, at.lineno - 1)
    if changed is not None:
        raise NotProven(f"`{' '.join(changed.split())}` may change `{source}` or `{tensor}`")
    return Held(source, depth, sure=depth == 2)  # its elements may be rows


class _Callers:
    """The calls of one module that pass a tensor together with the list it was built from."""

    def __init__(self, site: Site, origins: Origins) -> None:
        self._site, self._calls, self._builders = site, calls_in(site.source.text), origins.builders

    def demand_known(self, function: Definition) -> None:
        """NotProven where a function may be called with another tensor or list than in the calls that are known."""

        def callers(each: Definition) -> Iterator[Definition]:
            return (caller for caller, _ in self._calls.callers(each) if each.key not in self._builders)

        for each in closure([function], callers):
            if each.key not in self._builders:
                self._demand_no_other(each)

    def _demand_no_other(self, function: Definition) -> None:
        name, known = function.owner or function.qualname, {id(call.func) for _, call in self._calls.callers(function)}
        users = self._site.evaluator.scope.index.users(f"{self._site.summary.name}.{name}")
        if users:
            raise NotProven(f"`{name}` is used in {users[0]} as well, which may pass another list with the tensor")
        for parent in walk(tree_of(self._site.source.text)):
            for part in children(parent):
                if id(part) not in known and self._leads_to(function, part, parent):
                    raise NotProven(f"`{short(parent)}` may pass `{function.qualname}` another list with the tensor")

    def _leads_to(self, function: Definition, part: ast.AST, parent: ast.AST) -> bool:
        """True where a node may stand for the function, or for an instance that is called."""
        if not function.owner:
            return is_name(part, function.qualname)
        if not isinstance(part, ast.Attribute) or not isinstance(part.ctx, ast.Load):
            return False
        if function.node.name != "forward":
            return part.attr == function.node.name
        if part.attr in {"forward", "__call__"}:
            held = part.value.attr if isinstance(part.value, ast.Attribute) else ""
            return held in self._holders(function.owner) or isinstance(part.value, ast.Call)
        # An instance goes elsewhere: into a name, a call, a container.
        inside = isinstance(parent, (ast.Attribute, ast.For, ast.comprehension, ast.Subscript, ast.Compare, ast.Return))
        counted = isinstance(parent, ast.Call) and dotted(parent.func) in {"enumerate", "len"}
        return part.attr in self._holders(function.owner) and not inside and not counted

    def _holders(self, owner: str) -> set[str]:
        """The attributes that the module gives instances of a class, or of a subclass, alone or in a list."""
        return self._calls.remembered("holders", owner, lambda: set(self._find_holders(owner)))

    def _find_holders(self, owner: str) -> Iterator[str]:
        for name, stores in attribute_stores(self._calls).items():
            made = {each for store in stores if store.value is not None for each in names_called(walk(store.value))}
            if any(each == owner or self._calls.is_heir(each, owner) for each in made):
                yield name


def _is_parameter(function: Definition, name: str) -> bool:
    """True for a list that a function is given: only an annotation says what it holds."""
    bound = any(stores_name(part, name) for part in walk_scope(function.node))
    return not bound and name in parameter_names(function.node)
