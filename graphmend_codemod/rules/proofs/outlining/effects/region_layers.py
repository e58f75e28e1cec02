"""Whether a layer that an operator runs does nothing else than compute, as far as its classes in the file tell.

An operator's layers run when the compiled graph does, and again for a second gradient. What they leave in attributes
is read by the code around while it is traced, so it would be another value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import aliasing, speculation
from graphmend_codemod.analysis.callgraph import ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import last_name, listed
from graphmend_codemod.analysis.scope import defaults_of, of_kind, walk
from graphmend_codemod.analysis.value_flow import put_into
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.effects import layer_effects

_PUTS = frozenset({"append", "extend", "insert", "add_module", "register_module", "update"})
WHOLE = ""
"""Stands for the instance itself among the attributes that an operator gets: a container that is looked up in."""
_CONTAINERS = frozenset({"torch.nn.ModuleDict", "torch.nn.ModuleList", "torch.nn.Sequential"})


def is_container(site: Site) -> bool:
    """True where `self[i]` looks up a layer: a container of torch, for which no class of the file has other lookups."""
    facts = site.evaluator.scope.class_facts
    if facts is None or _CONTAINERS.isdisjoint(facts.bases):
        return False
    owner, calls = facts.qualified.rpartition(".")[2], calls_in(site.source.text)
    looks_up = {"__getitem__", "__getattr__", "__getattribute__"}
    return not any(each.node.name in looks_up for each in calls.family(owner))


def check_children(site: Site) -> None:
    """NotProven where a layer that the instance, a container, holds is of a class that is not known to only compute."""
    owner = site.class_name
    calls = calls_in(site.source.text)
    made = list(_put_in(calls, owner, ""))
    if not made:
        raise NotProven("cannot infer which layers `self` contains; put them into it in `__init__`")
    made += [each for each in calls.assigned(owner) if isinstance(each, ast.Call)]
    _Layers(site, calls).check("self", made)


def flags_of_layers(site: Site, attribute: str) -> list[str]:
    """What has to be False on the layers of `self.attribute`, which the operator runs one by one.

    NotProven where such a layer is of a class that is not known to only compute. Their classes may extend those of
    other files.
    """
    calls, flags = calls_in(site.source.text), set[str]()
    made = [*calls.assigned(site.class_name, attribute), *_put_in(calls, site.class_name, attribute)]
    if not made:
        raise NotProven(f"cannot infer which layers `self.{attribute}` contains; make them in `__init__`")
    _Layers(site, calls, flags).check(f"self.{attribute}", made)
    for each in made:
        _demand_no_write(site, each)
    return sorted(flags)


def check_layers(site: Site, attribute: str) -> str | None:
    """NotProven where a layer of `self.attribute` is of a class that is not known to only compute.

    Where the constructor gets the class of all layers as an argument, the default: the operator has to ask for it.
    """
    owner = site.class_name
    calls = calls_in(site.source.text)
    made = [*calls.assigned(owner, attribute), *_put_in(calls, owner, attribute)]
    if not made:
        raise NotProven(f"cannot infer which layers `self.{attribute}` contains; make them in `__init__`")
    given = _given_class(site, calls, owner, made)
    if given is not None:
        made = [ast.Call(ast.Name(given, ast.Load()), [], [])]
    _Layers(site, calls).check(f"self.{attribute}", made)
    for each in made:
        _demand_no_write(site, each)
    return given


def _demand_no_write(site: Site, made: ast.expr) -> None:
    """NotProven for `nn.ReLU(inplace=True)` that may get what the loop is given; behind another layer it does not."""
    if not isinstance(made, ast.Call):
        return
    layer = (site.resolve_global(made.func) or "").removeprefix("torch.nn.")
    position = aliasing.IN_PLACE_LAYER_ARGUMENT.get(layer)
    if position is not None and aliasing.may_be_in_place(made, position):
        raise NotProven(f"`{speculation.short(made)}` writes into what it is given")
    if layer == "Sequential" and made.args:
        _demand_no_write(site, made.args[0])


def _given_class(site: Site, calls: ModuleCalls, owner: str, made: list[ast.expr]) -> str | None:
    """The class in this file that is the default of the argument `kind` where all layers are `kind(...)`."""
    key = calls.method(owner, "__init__")
    defaults = {each.arg: given for each, given in (defaults_of(calls.definitions[key].node) if key else ())}
    empty = {"torch.nn.ModuleDict", "torch.nn.ModuleList"}
    layers = [each for each in made if not (isinstance(each, ast.Call) and site.resolve_global(each.func) in empty)]
    bare = all(not each.args and not each.keywords for each in of_kind(made, ast.Call) if each not in layers)
    names = {getattr(each.func, "id", "") if isinstance(each, ast.Call) else "" for each in layers}
    default = defaults.get(names.pop()) if len(names) == 1 else None
    if not bare or not isinstance(default, ast.Name) or not calls.class_named(default.id):
        return None
    return default.id if site.resolve_global(default) == f"{site.summary.name}.{default.id}" else None


def _put_in(calls: ModuleCalls, owner: str, attribute: str) -> Iterator[ast.expr]:
    """What a class puts into a container of layers after making it: `self.experts.append(Expert())`.

    Without `attribute` the instance is the container: `self.append(Expert())`, and what its base's `__init__` is given.
    """
    family = calls.family(owner, heirs=False)
    for node in put_into(calls, {each.owner for each in family}, attribute):
        if isinstance(node, ast.Assign):
            yield node.value
        elif last_name(node.func) in _PUTS:
            yield from (each for value in node.args[-1:] for each in listed(value))
    for part in (part for each in family for part in walk(each.node) if not attribute):
        if isinstance(part, ast.Call) and last_name(part.func) == "__init__":
            yield from (each for value in part.args[-1:] for each in listed(value))


class _Layers:
    """Looks through the classes of layers. `flags` collects what has to be False on the layers themselves; with it,
    their classes may extend those of other files, and may hand themselves on only to what is known."""

    def __init__(self, site: Site, calls: ModuleCalls, flags: set[str] | None = None) -> None:
        self._site = site
        self._calls = calls
        self._flags = flags
        self._seen: set[str] = set()
        self._followed: set[int] = set()
        self._depth = 0

    def check(self, held: str, made: list[ast.expr]) -> None:
        for value in made:
            if isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)):
                raise NotProven(f"parameters in `{held}` are not registered with the module; use `nn.ModuleList`")
            if isinstance(value, ast.Name):
                raise NotProven(f"cannot infer which layers `{held}` contains: `{value.id}` is an argument")
            for call in (part for part in walk(value) if isinstance(part, ast.Call)):
                self._check_call(call)

    def _check_call(self, call: ast.Call) -> None:
        if self._flags is not None:
            _demand_no_write(self._site, call)
        qualified = self._site.resolve_global(call.func)
        if qualified is None and isinstance(call.func, ast.Name):
            raise NotProven(f"cannot infer what `{speculation.short(call)}` returns")
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            self._check_chosen(call)
        if qualified is None or qualified.startswith(("torch.", "builtins.")):
            return
        module, _, name = qualified.rpartition(".")
        scope = self._site.evaluator.scope
        if module != self._site.summary.name:
            if scope.index.class_facts(qualified) is not None or scope.index.function(qualified) is not None:
                raise NotProven(f"`{speculation.short(call.func)}` is in another file, and may have side effects")
            return
        facts = scope.index.class_facts(qualified)
        if facts is None:
            raise NotProven(f"cannot infer what `{speculation.short(call)}` returns")
        for base_class in facts.bases:
            if not base_class.startswith(("torch.", "builtins.")) and base_class.rpartition(".")[0] != module:
                if self._flags is None or self._depth:
                    raise NotProven(f"`{name}` has a base class in another file, which may have side effects")
                self._flags |= layer_effects.flags_off(self._site, name, base_class)
        self._check_class(name)

    def _check_chosen(self, call: ast.Call) -> None:
        """The classes of this file in `(A if deep else B)()` and `{"a": A, "b": B}[kind]()`."""
        for name in (part.id for part in walk(call.func) if isinstance(part, ast.Name)):
            if self._calls.class_named(name):
                self._check_class(name)
            elif isinstance(call.func, ast.IfExp) and self._site.resolve_global(ast.Name(name, ast.Load())) is None:
                raise NotProven(f"cannot infer what `{speculation.short(call)}` returns")

    def _check_class(self, name: str) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        for definition in self._calls.family(name, heirs=False):
            if definition.node.name != "__init__":
                for text in layer_effects.effects_in(self._site, definition.node):
                    raise NotProven(f"`{text}` in `{definition.qualname}` is not supported inside a custom operator")
                if self._flags is not None:
                    layer_effects.demand_handed(self._site, definition.node)
                    layer_effects.demand_no_writes(definition.node)
                    layer_effects.demand_called(self._site, definition.node, self._followed)
                self._depth += 1
                for attribute in layer_effects.run_by(definition.node):
                    if self._calls.method(name, attribute) is None:
                        made = self._calls.assigned(name, attribute)
                        self.check(f"self.{attribute}", [*made, *_put_in(self._calls, name, attribute)])
                self._depth -= 1
