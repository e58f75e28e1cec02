"""What a call of `self.layers[i]` may run, where a class of the module alone fills `self.layers`."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_attribute, is_name, last_name
from graphmend_codemod.analysis.scope import parameter_names, walk_scope


def layers_called(calls: ModuleCalls, function: Definition, call: ast.Call) -> list[Definition]:
    """The `forward` of each layer that `self.layers[i](x)` may call; empty if some of it is defined in another file."""
    called = call.func
    if not isinstance(called, ast.Subscript) or isinstance(called.slice, ast.Slice):
        return []
    holder = called.value
    if not isinstance(holder, ast.Attribute) or not is_name(holder.value, "self"):
        return []
    key = (function.owner, holder.attr)
    classes = calls.remembered("layers", key, lambda: _classes_in(calls, function.owner, holder.attr))
    keys = [calls.method(name, "forward") for name in classes]
    found = [calls.definitions[each] for each in keys if each is not None]
    return [each for each in found if _takes(each, call)] if len(found) == len(classes) else []


def _classes_in(calls: ModuleCalls, owner: str, attribute: str) -> list[str]:
    """Names of the classes whose instances a class, its bases and subclasses put there; empty if unclear."""
    put: list[ast.expr] = []
    family = {each.owner for each in calls.definitions.values() if each.owner and calls.related(each.owner, owner)}
    for made in [value for name in sorted(family) for value in calls.assigned(name, attribute)]:
        listed = made.args[0] if isinstance(made, ast.Call) and made.args else made
        plain = isinstance(made, ast.Call) and not made.args
        put += [] if plain else listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else [listed]
    for each in calls.definitions.values():
        for part in walk_scope(each.node) if each.owner in family else ():
            call = part if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else None
            if call is not None and is_attribute(call.func.value, "self", attribute):  # type: ignore[attr-defined]
                put += call.args if last_name(call.func) == "append" else [call]
    names = [each.func.id for each in put if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
    return sorted(set(names)) if len(names) == len(put) else []


def _takes(function: Definition, call: ast.Call) -> bool:
    """False where a call names an argument that a function does not have: another one must be called there."""
    names = parameter_names(function.node)
    return function.node.args.kwarg is not None or all(word.arg is None or word.arg in names for word in call.keywords)
