"""Ways to a tensor that no assignment shows: variables of comprehensions, what an exception carries, inner functions.

A method may be called by its name, an object may write as a `with` ends, and a function may write a global that the
one above it has set.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import comprehended, is_name, written_text
from graphmend_codemod.analysis.scope import parameter_names, walk, walk_in_layers, walk_scope
from graphmend_codemod.rules.proofs.untraced.other_files import defined

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_TRIES = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))


def comes_from(memory: ModuleMemory, function: Definition, node: ast.Name) -> Sequence[ast.expr] | None:
    """What a comprehension goes through, or `raise` was given, where a name reads a variable of these; else None."""

    def look() -> dict[int, list[ast.expr]]:
        pairs = (pair for part in walk_scope(function.node) for pair in comprehended(part))
        found = {id(name): [iterated] for name, iterated in pairs if isinstance(name.ctx, ast.Load)}
        for part in walk_scope(function.node):
            for handler in part.handlers if isinstance(part, _TRIES) else ():
                raised = [each.exc for each in walk(part) if isinstance(each, ast.Raise) and each.exc is not None]
                for each in walk_in_layers(handler) if handler.name and raised else ():
                    if is_name(each, handler.name):
                        found.setdefault(id(each), raised)
        return found

    return memory.remembered("comes from", function, look).get(id(node))


def read_by(function: Definition, called: ast.expr) -> list[ast.expr]:
    """The names around it that a function inside of the function reads: its result may be one of their tensors."""
    name = called.id if isinstance(called, ast.Name) else None
    inner = (
        part
        for part in walk_scope(function.node)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name == name
    )
    return [
        each
        for part in inner
        for each in walk(part)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in parameter_names(part)
    ]


def written_by_managers(memory: ModuleMemory, function: Definition, node: ast.With | ast.AsyncWith) -> set[str]:
    """What objects that a `with` makes may write as it begins and ends: what they were made with."""
    made = (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))
    index = memory.site.evaluator.scope.index
    kept = (
        each
        for call in made
        if (name := memory.site.resolve_global(call.func)) is not None and index.class_facts(name) is not None
        for each in memory.effect(function, call).keeps
    )
    return {name for each in kept for name in memory.sources(function, each)}


def written_globals(memory: ModuleMemory, function: Definition, call: ast.Call) -> set[str]:
    """The globals that a function sets, for a call that may write into them; none where only what is certain counts."""
    if not memory.unknown:
        return set()

    def look() -> frozenset[str]:
        parts = walk_scope(function.node)
        return frozenset(name for part in parts if isinstance(part, ast.Global) for name in part.names)

    names = memory.remembered("globals", function, look)
    if not names or (memory.calls.callee(function, call) is None and memory.effect(function, call).known):
        return set()
    return set(names)


def method_by_name(site: Site, call: ast.Call) -> ast.Call | None:
    """`x.add_(1)` for `getattr(x, "add_")(1)` and for `type(x).add_(x, 1)`; None for any other call."""
    called = call.func
    if isinstance(called, ast.Attribute) and is_method_in_place(called.attr):
        owner = called.value
        of_class = isinstance(owner, ast.Call) and site.resolve_global(owner.func) == "builtins.type"
        return _method(call, call.args[0], called.attr, call.args[1:]) if of_class and call.args else None
    if not isinstance(called, ast.Call) or not is_name(called.func, "getattr") or len(called.args) < 2:
        return None
    name = called.args[1]
    spelled = written_text(name) or ""
    return _method(call, called.args[0], spelled, call.args) if is_method_in_place(spelled) else None


def _method(call: ast.Call, owner: ast.expr, name: str, given: list[ast.expr]) -> ast.Call:
    called = ast.copy_location(ast.Attribute(owner, name, ast.Load()), call)
    return ast.copy_location(ast.Call(called, given, call.keywords), call)


def is_method_in_place(name: str) -> bool:
    """True for the name of a method that writes its tensor: `add_`, `__iadd__`."""
    return (name[-1:] == "_" and name[-2:] != "__") or name[2:-2] in aliasing.IN_PLACE_OPERATORS


def writing_decorator(site: Site, function: Definition) -> str | None:
    """The text of a decorator of the project around a function which writes something in place; None without one."""
    for each in function.node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        name = site.resolve_global(called)
        found = defined(site.evaluator.scope.index, name) if name is not None else None
        if found is not None and any(_writes_in_place(part) for part in walk(found[1].node)):
            return ast.unparse(called)
    return None


def _writes_in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.value, ast.Constant) or isinstance(node.target, ast.Subscript)
    named = node.func if isinstance(node, ast.Call) else None
    return isinstance(named, ast.Attribute) and is_method_in_place(named.attr)
