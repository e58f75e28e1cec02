"""Calls in a module that can only run one known function.

A decorator may change a function, a subclass may replace a method, and an attribute may hold layers of several classes:
where that is so, nobody knows what a call does with its arguments.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.patterns import (
    asks_for_compiler,
    is_attribute,
    is_name,
    is_within,
    last_name,
    names_called,
    without_numbers,
)
from graphmend_codemod.analysis.scope import (
    SCOPES,
    FunctionNode,
    dotted,
    parameter_names,
    walk,
    walk_in_layers,
    walk_scope,
)
from graphmend_codemod.analysis.value_flow import put_into, stores_of
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import Link, local_names

_PLAIN: tuple[list[str | None], ...] = ([], ["staticmethod"])
"""Decorators that leave a function what it is."""


@dataclass(frozen=True)
class SureCalls:
    """Follows a call to the one function of the module that it runs, where that can be no other.

    `replaced` are names that do not mean the function or method that `def` gives them. `links` are the calls that were
    followed: other files may replace what they run.
    """

    calls: ModuleCalls
    replaced: frozenset[str]
    links: list[Link] = field(default_factory=list)

    def reached(
        self, caller: Definition, call: ast.Call, node: ast.expr, *, scripted: bool = False
    ) -> tuple[Definition, str] | None:
        """The one function that a call runs, and its parameter for `node`; None if it might be another one.

        `scripted` takes a function under `torch.jit.script` that is made of functions of torch alone: Dynamo traces the
        Python text of it.
        """
        callee = self.certain(caller, call)
        if callee is None or not self.runs_as_written(callee, scripted=scripted):
            return None
        parameter = callee.arguments(call).parameter_of(node)
        if parameter is None:
            return None
        self.links.append(Link(caller, call, callee))
        return callee, parameter

    def certain(self, caller: Definition, call: ast.Call) -> Definition | None:
        """The one function that a call can run, whatever its decorators do; None if it might be another one."""
        callee = self.calls.callee(caller, call)
        return callee if callee is not None and self._is_sure(caller, call.func, callee) else None

    def runs_as_written(self, callee: Definition, *, scripted: bool = False) -> bool:
        """True for a function without decorators, or with one that `reached` takes."""
        plain = [dotted(each) for each in callee.node.decorator_list] in _PLAIN
        return plain or (scripted and self._is_script(callee))

    def _is_script(self, callee: Definition) -> bool:
        node = callee.node
        plain = all(isinstance(each, (ast.Assign, ast.Return, ast.Expr)) for each in node.body)
        qualified = self.calls.top.qualified
        called = [qualified(part.func) for part in walk(node) if isinstance(part, ast.Call)]
        known = all((name or "").startswith("torch.") for name in called)
        return plain and known and [qualified(each) for each in node.decorator_list] == ["torch.jit.script"]

    def _is_sure(self, caller: Definition, function: ast.expr, callee: Definition) -> bool:
        path = (dotted(function) or "").split(".")
        if not {path[-1], callee.qualname.rpartition(".")[2]}.isdisjoint(self.replaced):
            return False
        if path[0] == "self" and len(path) == 2:
            return self._is_own(caller.owner, path[1], callee)
        if len(path) != 1:
            return False
        return self._is_element(caller, path[0], callee) if path[0] in local_names(caller.node) else not callee.owner

    def _is_element(self, caller: Definition, name: str, callee: Definition) -> bool:
        """`for layer in self.layers: layer(...)`."""
        named = [part for part in walk(caller.node) if is_name(part, name)]
        bound = [part for part in named if not isinstance(part.ctx, ast.Load)]
        loops = [node for node in walk_scope(caller.node) if isinstance(node, ast.For)]
        over = [node for node in loops if bound and is_within(bound[0], node.target)]
        if len(bound) != 1 or len(over) != 1 or name in parameter_names(caller.node):
            return False
        target, iterated = without_numbers(over[0])
        if not is_name(target, name):
            return False
        while isinstance(iterated, ast.Subscript):
            iterated = iterated.value
        path = (dotted(iterated) or "").split(".")
        return len(path) == 2 and path[0] == "self" and self._is_own(caller.owner, path[1], callee)

    def _is_own(self, owner: str, attribute: str, callee: Definition) -> bool:
        """True when `self.attribute` means the same in the class and in all subclasses in the module."""
        classes = {each.owner for each in self.calls.definitions.values() if each.owner}
        heirs = {each for each in classes if self.calls.is_heir(each, owner)}
        stores = stores_of(self.calls, owner, attribute)
        if self.calls.method(owner, attribute) is not None:
            return not stores and not self.calls.is_replaced(owner, attribute)
        if any(each.inside in heirs for each in stores):
            return False
        made = [each.value for each in stores if isinstance(each.value, ast.Call)]
        makers = [[part for part in walk_in_layers(value) if isinstance(part, ast.Call)] for value in made]
        named = {dotted(part.func) for parts in makers for part in parts} & classes
        kept = len(made) == len(stores)
        lists = {"ModuleList", "range", "len", "Sequential", *classes}
        known = all((dotted(part.func) or "").rpartition(".")[2] in lists for parts in makers for part in parts)
        return kept and known and len(named) == 1 and self.calls.method(str(*named), "__call__") is None


def sure_calls(site: Site) -> SureCalls:
    """The calls of a site's file, of which none is followed yet."""
    text = site.source.text
    return SureCalls(calls_in(text), assigned_outside(tree_of(text)))


def assigned_outside(tree: ast.Module) -> frozenset[str]:
    """The names that a module or its classes assign outside of functions."""
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    plain = [node for block in blocks for node in block if not isinstance(node, SCOPES)]
    parts = [part for node in plain for part in walk_in_layers(node)]
    return frozenset(part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load))


def beside_compile_paths(function: FunctionNode) -> set[int]:
    """The nodes that run in eager mode alone, since a compile path stands in front of them."""
    return {
        id(part)
        for node in walk_scope(function)
        if isinstance(node, ast.If) and asks_for_compiler(node.test)
        for each in node.orelse
        for part in walk_in_layers(each)
    }


# What a call of `self.layers[i]` may run, where a class of the module alone fills `self.layers`


def layers_called(calls: ModuleCalls, function: Definition, call: ast.Call) -> list[Definition]:
    """The `forward` of each layer that `self.layers[i](x)` may call; empty if some of it is defined in another file."""
    called = call.func
    if not isinstance(called, ast.Subscript) or isinstance(called.slice, ast.Slice):
        return []
    holder = called.value
    if not is_attribute(holder, "self"):
        return []
    key = (function.owner, holder.attr)
    classes = calls.remembered("layers", key, lambda: _classes_in(calls, function.owner, holder.attr))
    keys = [calls.method(name, "forward") for name in classes]
    found = [calls.definitions[each] for each in keys if each is not None]
    return [each for each in found if _takes(each, call)] if len(found) == len(classes) else []


def _classes_in(calls: ModuleCalls, owner: str, attribute: str) -> list[str]:
    """Names of the classes whose instances a class, its bases and subclasses put there; empty if unclear."""
    put: list[ast.AST] = []
    family = {each.owner for each in calls.family(owner)}
    for made in [value for name in sorted(family) for value in calls.assigned(name, attribute)]:
        listed = made.args[0] if isinstance(made, ast.Call) and made.args else made
        plain = isinstance(made, ast.Call) and not made.args
        put += [] if plain else listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else [listed]
    for each in put_into(calls, family, attribute):
        put += each.args if isinstance(each, ast.Call) and last_name(each.func) == "append" else [each]
    names = names_called(put)
    return sorted(set(names)) if len(names) == len(put) else []


def _takes(function: Definition, call: ast.Call) -> bool:
    """False where a call names an argument that a function does not have: another one must be called there."""
    names = parameter_names(function.node)
    return function.node.args.kwarg is not None or all(word.arg is None or word.arg in names for word in call.keywords)
