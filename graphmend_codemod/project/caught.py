"""Functions whose exceptions somebody may catch, in any file of the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphmend_codemod.project.entrances import Step
from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.facts import ReachedFunction
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.reach import Search
from graphmend_codemod.project.scripted import held_modules
from graphmend_codemod.project.summary.context_managers import LEAVES, SWALLOWS
from graphmend_codemod.project.summary.records import ClassSummary, FunctionSummary, Value

_ANYTHING = frozenset({"except", "except Exception", "except BaseException"})
_SUPPRESS = "contextlib.suppress"

Caught = Mapping[tuple[str, str, int], str]
"""What catches, in words, by (path, qualname, line) of a function."""


def caught_functions(
    index: ProjectIndex, modules: Iterable[Module], reached: Mapping[str, Sequence[ReachedFunction]]
) -> Caught:
    """The functions that are called, directly or by others, where their exceptions may be caught.

    Outside of what Dynamo reaches, a handler for any exception counts for nothing: it catches the one that compiled
    code raises as well.
    """
    search = _Caught(index, modules, reached)
    search.run()
    return search.reasons()


class _Caught(Search):
    """A search that begins where exceptions may be caught."""

    def __init__(
        self, index: ProjectIndex, modules: Iterable[Module], reached: Mapping[str, Sequence[ReachedFunction]]
    ) -> None:
        self._reached = {(path, each.qualname, each.line): each for path, found in reached.items() for each in found}
        super().__init__(index, modules)

    def reasons(self) -> Caught:
        """What catches the exceptions of the functions found."""
        return {place: step.via for place, (step, _) in self._found.items()}

    def _roots(self, module: Module) -> None:
        for function in module.summary.functions:
            if not function.caught:
                continue
            known = self._reached.get((module.summary.path, function.qualname, function.line))
            own = known.class_qualified if known is not None else None
            own = own or self._closure_class(module, function)
            for used, by in function.caught:
                if self._catches(module, function, own, by, traced=known is not None):
                    via = f"`{by}` in {function.qualname} ({module.summary.path})"
                    self._follow(Step(module, function, own, via), used)

    def _leads(self, owner: str, module: Module, item: ClassSummary, value: Value) -> bool:
        # Elsewhere `forward` is reached whoever calls it; here it is those who call it that matter.
        return value.kind in ("call", "other")

    def _value(self, module: Module, value: Value, scope: FunctionSummary | None, step: Step, called: bool) -> None:
        super()._value(module, value, scope, step, called)
        for made in held_modules(self._index, module, scope, value) if called else ():
            self._call_instance(made, step.via)

    def _catches(self, module: Module, function: FunctionSummary, own: str | None, by: str, *, traced: bool) -> bool:
        word, _, spelled = by.partition(" ")
        if word == "except":
            return traced or by not in _ANYTHING
        found = self._manager(module, function, own, spelled)
        if found is None or found == _SUPPRESS:
            return found is not None
        known = self._index.function_summary(found)
        if known is not None:
            return SWALLOWS in known[1].returned
        left = [self._index.find_method(found, name) for name in LEAVES]
        return any(each is not None and SWALLOWS in each[1].returned for each in left)

    def _manager(self, module: Module, function: FunctionSummary, own: str | None, spelled: str) -> str | None:
        """The function or class that makes a context manager; None where that is not known."""
        root, _, name = spelled.partition(".")
        if root != "self" or own is None:
            return self._index.scoped(module, function, spelled)
        facts = self._index.class_facts(own)
        if facts is None:
            return None
        attribute = facts.attributes.get(name)
        return facts.methods.get(name) if attribute is None else attribute.callee
