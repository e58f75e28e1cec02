"""Reachability: all functions that `forward` of a module or a function under `torch.compile` may call.

The answer errs on the side of reaching too much: a function that is only passed on by name counts as called, and a call
on `self` may land in any subclass of the project.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Set

from graphmend_codemod.project.assigned_functions import AssignedFunctions, HandedFunctions
from graphmend_codemod.project.class_inference import Receivers, instances_returned
from graphmend_codemod.project.entrances import CALLS, Step, called_by_library, entrances, offered, takes_self
from graphmend_codemod.project.index import families
from graphmend_codemod.project.index.definitions import CONSTRUCTORS, Module
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.subclasses import Subclasses
from graphmend_codemod.project.summary.candidates import TENSORS
from graphmend_codemod.project.summary.quiet import AWAITED
from graphmend_codemod.project.summary.records import FunctionSummary, Value
from graphmend_codemod.project.wrappers import wrappers

_CONSTRUCTION = ("__init__", "__post_init__", "__new__", "__enter__", "__exit__")
_OF_PYTHON = frozenset(name for kind in (str, bytes, list, dict, set, tuple, object) for name in dir(kind))


def reached_functions(index: ProjectIndex, modules: Iterable[Module]) -> dict[str, tuple[ReachedFunction, ...]]:
    """Reached functions by path, in order of line, starting from the forwards and compiled functions of `modules`."""
    search = Search(index, modules)
    search.run()
    return search.result()


class Search:
    """A search from the forwards and compiled functions of `modules`. Before it runs, its result is where it begins.
    It begins at `traced` as well: path and qualified name of functions that Dynamo traced in a recorded run.
    """

    def __init__(
        self, index: ProjectIndex, modules: Iterable[Module], traced: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self._index = index
        self._modules = sorted(modules, key=lambda module: module.summary.path)
        self._receivers = Receivers(index)
        self._todo: deque[Step] = deque()
        self._later: deque[Step] = deque()
        self._offering = False
        self._only_offered: set[tuple[str, str, int]] = set()
        self._seen: set[tuple[str, str, int, str | None]] = set()
        self._found: dict[tuple[str, str, int], tuple[Step, set[str | None]]] = {}
        self._subclasses = Subclasses(index, self._modules)
        self._assigned = AssignedFunctions(index, self._modules, layers=self._follows_layers())
        self._handed = HandedFunctions(index, self._modules, self._subclasses)
        self._stops: dict[tuple[str, str, int], bool] = {}
        self._called: set[tuple[str, str]] = set()
        self._looked_up: set[tuple[str, str, bool]] = set()
        self._traced = traced
        self._begin()

    def _begin(self) -> None:
        for module in self._modules:
            self._roots(module)
        self._offering = True
        for step in self._offered():
            self._add(*step)
        self._offering = False

    def _follows_layers(self) -> bool:
        """True where a layer in an attribute counts: here its `forward` is reached whoever calls it."""
        return False

    def _offered(self) -> Iterable[Step]:
        return offered(self._index, self._modules)

    def run(self) -> None:
        """Follow everything to its end."""
        while self._todo:
            self._expand(self._todo.popleft())
        self._offering = True
        while self._later:
            self._expand(self._later.popleft())
        self._offering = False

    def result(self) -> dict[str, tuple[ReachedFunction, ...]]:
        """What is reached so far, by path and in order of line."""
        paths: dict[str, list[ReachedFunction]] = {}
        for place, (step, owners) in self._found.items():
            path, qualname, line = place
            owner = next(iter(owners)) if len(owners) == 1 and takes_self(step.function) else None
            aside = place in self._only_offered and TENSORS not in step.function.returned
            reached = ReachedFunction(qualname, line, owner, step.via, aside)
            paths.setdefault(path, []).append(reached)
        return {
            path: tuple(sorted(found, key=lambda each: (each.line, each.qualname))) for path, found in paths.items()
        }

    # -- where it begins -----------------------------------------------------------------------------------------

    def _roots(self, module: Module) -> None:
        for step in entrances(self._index, module, self._traced):
            self._add(*step)
        for function in module.summary.functions:
            for callee, argument in function.compiles:
                if argument and self._index.scoped(module, function, callee) in families.COMPILERS:
                    own = self._closure_class(module, function)
                    self._follow(Step(module, function, own, f"torch.compile of {argument}"), f"{argument}()")

    def _closure_class(self, module: Module, function: FunctionSummary | None) -> str | None:
        while function is not None and not function.owner:
            function = module.functions.get(function.outer) if function.outer else None
        return f"{module.summary.name}.{function.owner}" if function is not None else None

    # -- one step ------------------------------------------------------------------------------------------------

    def _add(self, module: Module, function: FunctionSummary, own: str | None, via: str) -> None:
        place = (module.summary.path, function.qualname, function.line)
        first = place not in self._found
        again = (*place, own) in self._seen and (self._offering or place not in self._only_offered)
        if again or self._is_stopped(place, module, function):
            return
        self._seen.add((*place, own))
        step = Step(module, function, own, via)
        if self._offering and first:
            self._only_offered.add(place)
        elif not self._offering and place in self._only_offered:
            self._only_offered.remove(place)
            self._found[place] = (step, self._found[place][1])
        self._found.setdefault(place, (step, set()))[1].add(own)
        (self._later if self._offering else self._todo).append(step)

    def _is_stopped(self, place: tuple[str, str, int], module: Module, function: FunctionSummary) -> bool:
        if place not in self._stops:
            self._stops[place] = AWAITED in function.returned or self._index.is_disabled(module, function)
        return self._stops[place]

    def _expand(self, step: Step) -> None:
        local = {name for name, _ in step.function.types}
        for ref in step.function.refs:
            self._follow(step, ref, local)
        outer = step.module.functions.get(step.function.outer) if step.function.outer else None
        for spelled in step.function.decorators:
            name = spelled.partition("(")[0]
            found = self._index.scoped(step.module, outer, name)
            if found is not None:
                self._decorated(found, step)

    def _decorated(self, decorator: str, step: Step) -> None:
        """The functions that a decorator of the project puts around the one in `step`."""
        known = self._index.function_summary(decorator)
        if known is not None:
            for inner in wrappers(*known):
                self._add(known[0], inner, step.own, step.via)
        elif self._index.class_summary(decorator) is not None:
            self._method(decorator, "__call__", step.via)

    def _follow(self, step: Step, ref: str, local: Set[str] | None = None) -> None:
        """Reach what a reference leads to. `local` are the names in the function of which the class may be known."""
        if local is None:
            local = {name for name, _ in step.function.types}
        spelled = ref.removesuffix("()")
        root, _, rest = spelled.partition(".")
        if root == "self":
            self._on_self(step, rest, ref)
        elif root == "super()":
            self._on_super(step, rest.partition(".")[0])
        elif root == "?":
            self._by_name(step, rest)
        elif root in local:
            self._on_local(step, root, rest, ref)
        else:
            self._named(step, spelled, ref)

    def _on_self(self, step: Step, rest: str, ref: str) -> None:
        if step.own is None:
            return
        if not rest:
            if ref.endswith("()"):
                makes_one = "classmethod" in step.function.decorators
                (self._construct if makes_one else self._call_instance)(step.own, step.via)
            return
        head, _, method = rest.rpartition(".")
        if head:
            owners = self._receivers.of(step.module, step.function, step.own, f"self.{head}")
            for owner in owners:
                self._method(owner, method, step.via)
            if not owners:
                self._in_one_family(step, method, ref)
            if not owners or self._index.find_method(step.own, head.partition(".")[0]) is not None:
                self._on_self(step, head, head)
        elif not self._method(step.own, rest, step.via):
            self._attribute(step, rest, ref.endswith("()"))

    def _on_super(self, step: Step, method: str) -> None:
        owner = f"{step.module.summary.name}.{step.function.owner}" if step.function.owner else step.own
        if owner is None or not method:
            return
        if not self._first(self._index.linear(owner)[1:], method, step.via):
            for heir in self._subclasses.of(owner):
                line = self._index.linear(heir)
                self._first(line[line.index(owner) + 1 :], method, step.via)

    def _by_name(self, step: Step, ref: str) -> None:
        name = ref.removesuffix("()")
        for item in step.module.summary.classes:
            qualified = f"{step.module.summary.name}.{item.qualname}"
            method = step.module.functions.get(f"{item.qualname}.{name}")
            if method is not None and self._index.is_module(qualified):
                self._add(step.module, method, qualified, step.via)

    def _on_local(self, step: Step, root: str, rest: str, ref: str) -> None:
        head, _, method = rest.rpartition(".")
        owners = self._receivers.of(step.module, step.function, step.own, f"{root}.{head}" if head else root)
        for owner in owners:
            if method:
                self._method(owner, method, step.via)
            elif ref.endswith("()"):
                self._call_instance(owner, step.via)
        if not owners:
            self._in_one_family(step, f"{root}.{rest}", ref)
        if not rest:
            for name, source in step.function.types:
                alias = name == root and source != root and source[:1] != ":" and not source.endswith("()")
                if alias and all(other != source.partition(".")[0] for other, _ in step.function.types):
                    self._follow(step, f"{source}()")
        elif not owners:
            self._named(step, f"{root}.{rest}", ref)

    def _in_one_family(self, step: Step, spelled: str, ref: str) -> None:
        """Reach a method by its name alone where one class of the project and its subclasses are all that have it."""
        _, _, method = spelled.rpartition(".")
        if method not in _OF_PYTHON and method not in families.OF_MODULES:
            package = step.module.summary.name.partition(".")[0]
            for owner in self._subclasses.one_family(method, package, called=ref.endswith("()")):
                self._method(owner, method, step.via)

    def _named(self, step: Step, spelled: str, ref: str) -> None:
        found = self._index.scoped(step.module, step.function, spelled)
        if found is None:
            self._in_one_family(step, spelled, ref)
            return
        if self._target(found, ref.endswith("()"), step):
            return
        head, _, last = found.rpartition(".")
        if self._index.class_summary(head) is not None and last == "apply":
            self._custom_function(head, step.via)
            return
        module = self._index.module(head)
        if module is not None:
            for binding in module.bindings.get(last, ()):
                if binding.value is not None:
                    self._value(module, binding.value, None, step, ref.endswith("()"))
        elif "." in spelled:
            outer, _, method = spelled.rpartition(".")
            for owner in self._receivers.of(step.module, step.function, step.own, outer):
                self._method(owner, method, step.via)
            if outer and not self._index.entity(found):
                self._named(step, outer, outer)

    def _target(self, found: str, called: bool, step: Step) -> bool:
        """Reach a resolved function, or construct a class; False when it is neither."""
        known = self._index.function_summary(found)
        if known is not None:
            module, function = known
            if function.owner:
                # Named by its class, a method is the one of that class, whatever subclasses have.
                self._first(self._index.linear(f"{module.summary.name}.{function.owner}"), function.name, step.via)
            else:
                takes_self = function.parameters[:1] == ("self",) or (function.outer and module is step.module)
                self._add(module, function, step.own if takes_self else None, step.via)
            return True
        if self._index.class_summary(found) is None:
            return False
        if called:
            self._construct(found, step.via)
        return True

    def _construct(self, owner: str, via: str) -> None:
        if not self._index.is_module(owner) and self._is_first(owner, "?constructed"):
            for name in (*_CONSTRUCTION, *called_by_library(self._index, owner)):
                self._first(self._index.linear(owner), name, via)

    def _is_first(self, name: str, what: str) -> bool:
        """True when it is asked for the first time."""
        known = len(self._called)
        self._called.add((name, what))
        return len(self._called) > known

    # -- instances -----------------------------------------------------------------------------------------------

    def _method(self, owner: str, name: str, via: str) -> bool:
        """Reach a method where the class finds it and wherever subclasses replace it."""
        if (owner, name) in self._called:
            return True
        found = self._first(self._index.linear(owner), name, via)
        for heir in self._subclasses.with_method(owner, name):
            method = self._index.own_method(heir, name)
            if method is not None:
                found = True
                self._reach_method(*method, heir, via)
        if found:
            self._called.add((owner, name))
        return found

    def _first(self, line: Iterable[str], name: str, via: str) -> bool:
        found = self._index.first_method(line, name)
        if found is None:
            return False
        owner, module, method = found
        self._reach_method(module, method, owner, via)
        return True

    def _reach_method(self, module: Module, method: FunctionSummary, owner: str, via: str) -> None:
        if method.name in CONSTRUCTORS and self._index.is_module(owner):
            return
        self._add(module, method, owner, via)

    def _call_instance(self, owner: str, via: str) -> None:
        for name in CALLS if self._index.is_module(owner) else CALLS[1:]:
            self._method(owner, name, via)

    def _custom_function(self, owner: str, via: str) -> None:
        if not families.CUSTOM_FUNCTIONS.isdisjoint(self._index.linear(owner)):
            for name in ("forward", "setup_context", "backward"):
                self._first(self._index.linear(owner), name, via)

    def _attribute(self, step: Step, name: str, called: bool) -> None:
        """Reach what the attribute of an instance may hold, in the class, its ancestors and its subclasses."""
        own = step.own
        if own is None or (own, name, called) in self._looked_up:
            return
        self._looked_up.add((own, name, called))
        rows, keepers = self._assigned.to(name), self._assigned.keepers(name) if called else ()
        if not rows and not keepers:
            return
        family = self._subclasses.family(own)
        for handing, given in self._handed.to([each for each in keepers if each in family]):
            self._passed(Step(handing.module, handing.function, handing.owner, step.via), given)
        for owner, module, item, value in rows:
            if owner in family:
                scope = module.functions.get(f"{item.qualname}.__init__")
                self._value(module, value, scope, Step(module, scope or step.function, owner, step.via), called)

    def _value(self, module: Module, value: Value, scope: FunctionSummary | None, step: Step, called: bool) -> None:
        """Reach what an assigned value is or holds: a function, also a wrapped one, a table's members, an instance."""
        names = [*value.holds]
        if value.kind == "other" and value.spelled:
            names.append(value.spelled)
        elif value.kind == "call":
            callee = self._index.scoped(module, scope, value.spelled)
            for made in self._makes(step.own, value.spelled, callee) if called else ():
                self._call_instance(made, step.via)
            if callee is not None and callee not in families.STOPS:
                if value.wraps:
                    names.append(value.wraps)
                if called and self._index.class_summary(callee) is not None:
                    self._call_instance(callee, step.via)
                elif self._index.class_summary(callee) is not None:
                    self._tables(callee, step.via)
        for name in names:
            self._passed(Step(module, scope or _NOWHERE, step.own, step.via), name)

    def _makes(self, owner: str | None, spelled: str, callee: str | None) -> Iterator[str]:
        """The classes, no modules, of which a function or a method of the class or a subclass returns instances."""
        root, _, name = spelled.partition(".")
        known = [self._index.function_summary(callee)] if callee is not None else []
        if root == "self" and owner is not None:
            known = [self._index.own_method(each, name) for each in sorted(self._subclasses.family(owner))]
        for module, function in filter(None, known):
            yield from instances_returned(self._index, module, function)

    def _passed(self, step: Step, name: str) -> None:
        root, _, rest = name.partition(".")
        if root == "self":
            if step.own is not None and rest and "." not in rest:
                self._method(step.own, rest, step.via)
            return
        found = self._index.scoped(step.module, step.function, name.removesuffix("()"))
        if found is not None and name.endswith("()"):
            self._call_instance(found, step.via)
            return
        if found is None or self._target(found, False, step):
            return
        home, _, last = found.rpartition(".")
        module = self._index.module(home)
        for binding in module.bindings.get(last, ()) if module is not None else ():
            if module and binding.value is not None and binding.value.holds and self._is_first(found, "?holds"):
                self._value(module, binding.value, None, step, False)

    def _tables(self, owner: str, via: str) -> None:
        """Functions in the tables of a class whose instance is looked things up in."""
        if not self._is_first(owner, "?tables"):
            return
        for module, item in filter(None, map(self._index.class_summary, self._index.linear(owner))):
            for attribute in item.attributes:
                if attribute.value.holds:
                    self._value(module, attribute.value, None, Step(module, _NOWHERE, None, via), False)


_NOWHERE = FunctionSummary("", 0, 0)
