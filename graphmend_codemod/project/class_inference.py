"""Which classes of the project a spelled expression may be an instance of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.records import FunctionSummary, Value
from graphmend_codemod.project.summary.results import MAKES

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_MOST_STEPS = 8


def instances_returned(index: ProjectIndex, module: Module, function: FunctionSummary) -> Iterator[str]:
    """The classes, no modules, of which a function returns instances."""
    for each in (name.removeprefix(MAKES) for name in function.returned if name.startswith(MAKES)):
        made = index.scoped(module, function, each)
        if made is not None and index.class_summary(made) and not index.is_module(made):
            yield made


class Receivers:
    """Instances by spelling, remembered. A place is a function together with the class whose `self` it sees."""

    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._known: dict[tuple[str, str, str | None, str], tuple[str, ...]] = {}

    def of(self, module: Module, function: FunctionSummary, own: str | None, spelled: str) -> tuple[str, ...]:
        """Classes that the value spelled so may have, in order and without repetition; unknown ones are left out."""
        key = (module.summary.path, function.qualname, own, spelled)
        known = self._known.get(key)
        if known is None:
            self._known[key] = ()  # a value defined by itself has no class yet
            known = tuple(dict.fromkeys(self._of(module, function, own, spelled)))
            self._known[key] = known
        return known

    def _of(self, module: Module, function: FunctionSummary, own: str | None, spelled: str) -> list[str]:
        if spelled.startswith(":"):
            return self.annotated(module, function, spelled[1:])
        if spelled.endswith("()"):
            return self._result(module, function, own, spelled[:-2])
        root, _, rest = spelled.partition(".")
        parts = rest.split(".") if rest else []
        if root in ("self", "super()") and own is not None:
            found = [own]
        else:
            found = [
                item
                for name, source in function.types
                if name == root
                for item in self.of(module, function, own, source)
            ]
            if not found:
                return self._global(module, function, spelled)
        for part in parts[:_MOST_STEPS]:
            found = [item for owner in found for item in self.attribute(owner, part)]
        return found

    def _global(self, module: Module, function: FunctionSummary, spelled: str) -> list[str]:
        found = self._index.scoped(module, function, spelled)
        if found is None:
            return []
        home, _, name = found.rpartition(".")
        fact = self._index.global_fact(home, name)
        if fact is not None and fact.kind is AttributeKind.CALL and fact.callee:
            return self.returned(fact.callee)
        return []

    def _result(self, module: Module, function: FunctionSummary, own: str | None, callee: str) -> list[str]:
        head, _, method = callee.rpartition(".")
        if head:
            owners = self.of(module, function, own, head)
            if owners:
                return [item for owner in owners for item in self._of_method(owner, method)]
        found = self._index.scoped(module, function, callee)
        return self.returned(found) if found is not None else []

    def returned(self, callee: str) -> list[str]:
        """Classes of what a resolved callee gives: itself for a class, the annotation for a function."""
        if self._index.class_summary(callee) is not None:
            return [callee]
        found = self._index.function_summary(callee)
        if found is None:
            head = callee.rpartition(".")[0]
            return [head] if head and self._index.class_summary(head) is not None else []
        module, function = found
        classes = self.annotated(module, function, function.returns)
        if not classes and function.owner and "classmethod" in function.decorators:
            return [callee.rpartition(".")[0]]
        return classes

    def _of_method(self, owner: str, method: str) -> list[str]:
        found = self._index.find_method(owner, method)
        if found is None:
            return [item for item in self.attribute(owner, method) if self._index.is_module(item)]
        return self.returned(f"{found[0].summary.name}.{found[1].qualname}")

    def attribute(self, owner: str, name: str) -> list[str]:
        """Classes of `instance.name` for an instance of `owner`."""
        if self._index.entity(owner) is None:
            return []
        method = self._index.find_method(owner, name)
        if method is not None:
            return self.returned(f"{method[0].summary.name}.{method[1].qualname}") if method[1].is_property else []
        found: list[str] = []
        for ancestor in self._index.linear(owner):
            known = self._index.class_summary(ancestor)
            if known is None:
                continue
            module, item = known
            for attribute in item.attributes:
                if attribute.name == name:
                    found += self._assigned(module, module.functions.get(f"{item.qualname}.__init__"), attribute.value)
        return found

    def _assigned(self, module: Module, scope: FunctionSummary | None, value: Value) -> list[str]:
        if value.kind == "call":
            callee = self._index.scoped(module, scope, value.spelled)
            return self.returned(callee) if callee is not None else []
        if value.kind == "argument" and value.spelled:
            return self.annotated(module, scope, value.spelled)
        made = (each[:-2] for each in value.holds if each.endswith("()"))
        callees = (self._index.scoped(module, scope, each) for each in made)
        return [found for callee in callees if callee is not None for found in self.returned(callee)]

    def annotated(self, module: Module, function: FunctionSummary | None, text: str) -> list[str]:
        """Classes of the project that an annotation names."""
        names = dict.fromkeys(name.rstrip(".") for name in _NAME.findall(text))
        resolved = [self._index.scoped(module, function, name) for name in names]
        return [name for name in resolved if name is not None and self._index.class_summary(name) is not None]
