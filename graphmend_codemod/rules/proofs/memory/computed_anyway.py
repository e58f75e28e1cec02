"""Methods that a branch calls for what it writes, called in compiled code whether the branch is taken or not (GM105).

A method of the file is read: it must not raise, draw random numbers, read a tensor back, or change anything. What is no
method, but an attribute that holds a function (`self.rope_init_fn`), is taken for a function that only computes.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.aliasing import READS_ELEMENTS
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import is_attribute, last_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import attribute_stores
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects

_BREAKS = READS_ELEMENTS | {"numpy", "nonzero", "print", "warn", "warn_once"}


def demand_no_effects(site: Site, node: ast.expr, own: str | None) -> set[str]:
    """The attributes that own methods in an expression read; NotProven where one may do more than compute."""
    read: set[str] = set()
    for call in (part for part in walk(node) if isinstance(part, ast.Call) and is_attribute(part.func, own)):
        read |= _of_method(site, call, own or "")
    return read


def _of_method(site: Site, call: ast.Call, own: str) -> set[str]:
    name = last_name(call.func) or ""
    facts = site.evaluator.scope.class_facts
    if facts is None or name not in facts.methods or name == "register_buffer":
        return set()
    index = site.evaluator.scope.index
    for heir in index.heirs(facts.qualified):
        inherited = index.class_facts(heir)
        if inherited is None or inherited.methods.get(name) != facts.methods[name]:
            raise NotProven(f"`{heir}` replaces `{name}`, which compiled code would always call")
    effects = FunctionEffects(site)
    function = effects.method(call, own)
    if function is None:
        raise NotProven(f"compiled code would always call `{short(call.func)}`, whose code is not in this file")
    for part in walk(function):
        raises = isinstance(part, (ast.Raise, ast.Assert))
        if raises or (isinstance(part, ast.Call) and last_name(part.func) in _BREAKS):
            raise NotProven(f"compiled code would always call `{name}`, and with it `{short(part)}`")
    try:
        changed = effects.changed(function, 0, function.args.args[0].arg if function.args.args else "")
    except NotProven as reason:
        raise NotProven(f"compiled code would always call `{name}`: {reason}") from None
    if changed or effects.random:
        what = "draws random numbers" if effects.random else "writes in place"
        raise NotProven(f"compiled code would always call `{name}`, which {what}")
    return effects.read


def written_later(site: Site, name: str) -> str | None:
    """Why the attribute `name` of an instance may not be what its constructor made it; None if nothing says so."""
    calls = calls_in(site.source.text)
    for function in (calls.around(each.target.lineno) for each in attribute_stores(calls).get(name, ())):
        if function is not None and function.node.name != "__init__":
            return f"`{function.qualname}` writes `{name}`"
    scope, index = site.evaluator.scope, site.evaluator.scope.index
    facts = scope.class_facts
    family = (
        [facts.qualified, *index.heirs(facts.qualified)] if facts is not None else [site.function.partition(".")[0]]
    )
    names = {each.rpartition(".")[2] for each in family}
    for path, write in index.writers(name):
        # Whoever has an instance of the class most likely names it.
        if path == site.summary.path or any(index.spells(path, each) for each in names):
            return f"`{name}` is {write.how} in {path}"
    return None
