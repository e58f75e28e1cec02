"""What a call does with the tensors of an instance that it gets: `bump(self)`, `partial(bump, self)()`.

The instance is known by `self` and by names that hold it, `me = self`; a list, an object that was made with it and an
attribute that holds one of these lead to it as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, is_name, last_name, written_text
from graphmend_codemod.analysis.scope import dotted, walk, walk_scope
from graphmend_codemod.analysis.value_flow import bindings_in, names_holding, objects_in
from graphmend_codemod.rules.proofs.logging.own_methods import LOG_METHODS
from graphmend_codemod.rules.proofs.memory.other_callers import OtherFile
from graphmend_codemod.rules.proofs.untraced.other_files import calls_of, constructor, defined

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_HANDED = re.compile(r"^(?!\s*(?:async\s+)?def\b).*(?<![\w.])self(?![\w.])", re.MULTILINE)
_RUN_WHAT_THEY_GET = frozenset({"builtins.filter", "builtins.map"})
_ONLY_READ = ("builtins.", "copy.", "functools.", "math.", "torch.", "weakref.")
_KEEP_NOTHING = ("builtins.", "math.")


class _Ways(NamedTuple):
    """The names of a function and the attributes of its class that lead to the instance."""

    names: AbstractSet[str]
    attributes: frozenset[str]

    def led(self, site: Site, node: ast.expr) -> bool:
        """True for an expression that is the instance, or holds it."""
        return any(
            (isinstance(each, ast.Name) and each.id in self.names)
            or (is_attribute(each, "self") and each.attr in self.attributes)
            or (isinstance(each, ast.Call) and _keeps(site, each.func) and self.given(site, each))
            for each in objects_in(node)
        )

    def given(self, site: Site, call: ast.Call) -> bool:
        """True for a call that gets it: `Holder(self)`, `partial(bump, self)`."""
        return any(self.led(site, each) for each in aliasing.operands(call))


def _keeps(site: Site, called: ast.expr) -> bool:
    """True for classes, `partial` and what is not known; functions of the project and methods are followed."""
    qualified = site.resolve_global(called)
    if qualified is None:
        return isinstance(called, ast.Name)
    return site.evaluator.scope.index.function(qualified) is None and not qualified.startswith(_KEEP_NOTHING)


@lru_cache(maxsize=32)
def hands_instance(text: str) -> bool:
    """False for a file in which no call is given an instance."""
    return _HANDED.search(text) is not None


def own_name(memory: ModuleMemory, function: Definition, name: str) -> str:
    """`self` for a name that a function gives the instance, `me = self`; any other name unchanged."""
    if name == "self" or not hands_instance(memory.site.source.text):
        return name
    return "self" if name in _ways(memory, function).names else name


def written_of_instance(memory: ModuleMemory, function: Definition, call: ast.Call) -> set[str]:
    """The attributes of its instance into whose tensors a function may write that a call leads to the instance."""
    if not hands_instance(memory.site.source.text):
        return set()  # most files
    ways = _ways(memory, function)
    if not ways.given(memory.site, call) and not ways.led(memory.site, _object_of(call.func)):
        return set()
    callee = memory.calls.callee(function, call) or _own_method(memory, function, call, ways)
    qualified = memory.site.resolve_global(call.func)
    scope = memory.site.evaluator.scope
    made = scope.index.class_facts(qualified) if qualified is not None else None
    if made is not None and "__init__" not in made.methods:
        return set()  # it keeps what it gets
    if callee is None and qualified is not None and not isinstance(memory.site, OtherFile):
        found = (defined if made is None else constructor)(scope.index, qualified)
        calls = calls_of(found[0].text) if found is not None else None
        if found is not None and calls is not None:
            memory, callee = type(memory)(cast("Site", OtherFile(found[0], scope.index)), calls), found[1]
    if callee is None:
        own = is_attribute(call.func, "self") and call.func.attr not in ways.attributes
        return set() if own or _only_reads(call, qualified) else set(memory.unknown)
    given = callee.arguments(call).holding(lambda each: ways.led(memory.site, each))
    if callee.owner and callee.owner == function.owner:  # `Model.bump(self)`, `me.bump()`
        given |= {"self"}
    return {f"self{each.removeprefix(root)}" for root in given for each in memory.written_of(callee, root)}


def _own_method(memory: ModuleMemory, function: Definition, call: ast.Call, ways: _Ways) -> Definition | None:
    """The method that `me.bump()`, `Model.bump(self)`, `type(self).bump(self)` and `Holder(self)` run, or None."""
    called, own = call.func, function.owner
    if isinstance(called, ast.Name) and memory.calls.class_named(called.id):
        return memory.calls.definitions.get(memory.calls.method(called.id, "__init__") or ("", 0))
    if not isinstance(called, ast.Attribute) or is_name(called.value, "self"):
        return None
    of_class = isinstance(called.value, ast.Call) or is_name(called.value, own)
    meant = isinstance(called.value, ast.Name) and ways.led(memory.site, called.value)
    first = of_class and any(ways.led(memory.site, each) for each in call.args[:1])
    key = memory.calls.method(own, called.attr) if meant or first else None
    return memory.calls.definitions.get(key) if key is not None else None


def _only_reads(call: ast.Call, qualified: str | None) -> bool:
    """True for builtins, functions of torch and messages, which write into no attribute of what they get."""
    name = last_name(call.func)
    if qualified is None:
        return name in aliasing.CONTAINER_METHODS or name in LOG_METHODS
    return qualified.startswith(_ONLY_READ) and qualified not in _RUN_WHAT_THEY_GET


def spelled_out(call: ast.Call) -> ast.Call:
    """`self.bump(x)` for `getattr(self, "bump")(x)`; any other call unchanged."""
    if not isinstance(call.func, ast.Call) or not is_name(call.func.func, "getattr") or len(call.func.args) != 2:
        return call
    owner, name = call.func.args
    spelled = written_text(name) or ""
    return ast.copy_location(ast.Call(ast.Attribute(owner, spelled, ast.Load()), call.args, call.keywords), call)


def _object_of(called: ast.expr) -> ast.expr:
    """`self.holder` for `self.holder.run`, `f` for `f`; what is called on the instance itself is its own method."""
    found = called.value if isinstance(called, ast.Attribute) and not is_name(called.value, "self") else called
    return found if not isinstance(found, ast.Attribute) or is_attribute(found, "self") else _object_of(found)


def _ways(memory: ModuleMemory, function: Definition) -> _Ways:
    """How a function may come by its instance."""

    def look() -> _Ways:
        held = memory.remembered("holding the instance", function.owner, lambda: _attributes(memory, function))
        bindings = (each for node in walk(function.node) for each in bindings_in(node) if each[0].isidentifier())

        def holds(value: ast.expr, names: AbstractSet[str]) -> bool:
            return _Ways(names, held).led(memory.site, value)

        return _Ways(names_holding(bindings, holds, {"self"}), held)

    return memory.remembered("ways to the instance", function.key, look)


def _attributes(memory: ModuleMemory, function: Definition) -> frozenset[str]:
    """The attributes that a class of the module gives what leads to its instance: `self.holder = Holder(self)`."""
    own = [each for each in memory.calls.definitions.values() if each.owner and each.owner == function.owner]
    bindings = [each for one in own for node in walk_scope(one.node) for each in bindings_in(node)]
    ways = _Ways(frozenset({"self"}), frozenset())
    listed = _Ways(frozenset(), frozenset(each.node.name for each in own))
    return frozenset(
        name.removeprefix("self.")
        for name, value in bindings
        if name.startswith("self.")
        and (ways.led(memory.site, value) or (dotted(value) is None and listed.led(memory.site, value)))
    )
