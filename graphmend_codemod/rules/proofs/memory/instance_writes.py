"""What a call does with the tensors of an instance that it gets: `bump(self)`, `partial(bump, self)()`.

The instance is known by `self` and by names that hold it, `me = self`; a list, an object that was made with it and an
attribute that holds one of these lead to it as well.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, is_name, last_name
from graphmend_codemod.analysis.scope import dotted, walk, walk_scope
from graphmend_codemod.rules.proofs.logging.own_methods import LOG_METHODS
from graphmend_codemod.rules.proofs.memory.other_callers import OtherFile
from graphmend_codemod.rules.proofs.memory.stores import bindings_in, objects_in
from graphmend_codemod.rules.proofs.untraced.other_files import calls_of, defined

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site
    from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_HANDED = re.compile(r"^(?!\s*(?:async\s+)?def\b).*(?<![\w.])self(?![\w.])", re.MULTILINE)
_RUN_WHAT_THEY_GET = frozenset({"builtins.filter", "builtins.map"})
_ONLY_READ = ("builtins.", "copy.", "functools.", "math.", "torch.", "weakref.")
_PARTIAL = frozenset({"partial", "partialmethod"})


class _Ways(NamedTuple):
    """The names of a function and the attributes of its class that lead to the instance."""

    names: frozenset[str]
    attributes: frozenset[str]

    def led(self, node: ast.expr) -> bool:
        """True for an expression that is the instance, or holds it."""
        return any(
            (isinstance(each, ast.Name) and each.id in self.names)
            or (is_attribute(each, "self") and each.attr in self.attributes)
            or self._made_with(each)
            for each in objects_in(node)
        )

    def _made_with(self, node: ast.expr) -> bool:
        """True for `Holder(self)` and `partial(bump, self)`."""
        if not isinstance(node, ast.Call):
            return False
        name = last_name(node.func)
        return (name[:1].isupper() or name in _PARTIAL) and any(map(self.led, aliasing.operands(node)))


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
    if not any(map(ways.led, aliasing.operands(call))) and not ways.led(_object_of(call.func)):
        return set()
    callee = memory.calls.callee(function, call) or _own_method(memory, function, call, ways)
    qualified = memory.site.resolve_global(call.func)
    if callee is None and not isinstance(memory.site, OtherFile):
        scope = memory.site.evaluator.scope
        found = defined(scope.index, qualified) if qualified is not None else None
        calls = calls_of(found[0].text) if found is not None else None
        if found is not None and calls is not None:
            memory, callee = type(memory)(cast("Site", OtherFile(found[0], scope.index)), calls), found[1]
    if callee is None:
        own = is_attribute(call.func, "self") and call.func.attr not in ways.attributes
        return set() if own or _only_reads(call, qualified) else set(memory.unknown)
    given = [name for name, each in callee.arguments(call).items() if ways.led(each)]
    if callee.owner and callee.owner == function.owner:  # `Model.bump(self)`, `me.bump()`
        given.append("self")
    return {f"self{each.removeprefix(root)}" for root in given for each in memory.written_of(callee, root)}


def _own_method(memory: ModuleMemory, function: Definition, call: ast.Call, ways: _Ways) -> Definition | None:
    """The method that `me.bump()`, `Model.bump(self)` and `type(self).bump(self)` run; None for anything else."""
    called, own = call.func, function.owner
    if not isinstance(called, ast.Attribute) or is_name(called.value, "self"):
        return None
    of_class = isinstance(called.value, ast.Call) or is_name(called.value, own)
    meant = isinstance(called.value, ast.Name) and ways.led(called.value)
    key = memory.calls.method(own, called.attr) if meant or (of_class and any(map(ways.led, call.args[:1]))) else None
    return memory.calls.definitions.get(key) if key is not None else None


def _only_reads(call: ast.Call, qualified: str | None) -> bool:
    """True for builtins, functions of torch and messages, which write into no attribute of what they get."""
    name = last_name(call.func)
    if qualified is None:
        return name in aliasing.CONTAINER_METHODS or name in LOG_METHODS
    return name[:1].isupper() or (qualified.startswith(_ONLY_READ) and qualified not in _RUN_WHAT_THEY_GET)


def spelled_out(call: ast.Call) -> ast.Call:
    """`self.bump(x)` for `getattr(self, "bump")(x)`; any other call unchanged."""
    if not isinstance(call.func, ast.Call) or not is_name(call.func.func, "getattr") or len(call.func.args) != 2:
        return call
    owner, name = call.func.args
    spelled = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
    return ast.copy_location(ast.Call(ast.Attribute(owner, spelled, ast.Load()), call.args, call.keywords), call)


def _object_of(called: ast.expr) -> ast.expr:
    """`self.holder` for `self.holder.run`, `f` for `f`; what is called on the instance itself is its own method."""
    found = called.value if isinstance(called, ast.Attribute) and not is_name(called.value, "self") else called
    return found if not isinstance(found, ast.Attribute) or is_attribute(found, "self") else _object_of(found)


def _ways(memory: ModuleMemory, function: Definition) -> _Ways:
    """How a function may come by its instance."""

    def look() -> _Ways:
        held = memory.calls.remembered("holding the instance", function.owner, lambda: _attributes(memory, function))
        ways = _Ways(frozenset({"self"}), held)
        bindings = [each for node in walk(function.node) for each in bindings_in(node)]
        while more := {name for name, value in bindings if name.isidentifier() and ways.led(value)} - ways.names:
            ways = ways._replace(names=ways.names | more)
        return ways

    return memory.calls.remembered("ways to the instance", function.key, look)


def _attributes(memory: ModuleMemory, function: Definition) -> frozenset[str]:
    """The attributes that a class of the module gives what leads to its instance: `self.holder = Holder(self)`."""
    own = [each for each in memory.calls.definitions.values() if each.owner and each.owner == function.owner]
    bindings = [each for one in own for node in walk_scope(one.node) for each in bindings_in(node)]
    ways, listed = (
        _Ways(frozenset({"self"}), frozenset()),
        _Ways(frozenset(), frozenset(each.node.name for each in own)),
    )
    return frozenset(
        name.removeprefix("self.")
        for name, value in bindings
        if name.startswith("self.") and (ways.led(value) or (dotted(value) is None and listed.led(value)))
    )
