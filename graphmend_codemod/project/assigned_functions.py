"""What may be or hold functions among the values that classes assign to their attributes."""

from __future__ import annotations

from collections.abc import Sequence

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.records import ClassSummary, Value

Assigned = tuple[str, Module, ClassSummary, Value]
"""The qualified name of a class, its module and summary, and the value of an attribute."""


class AssignedFunctions:
    """The assignments of some modules, looked up by the name of the attribute; those of layers only with `layers`."""

    def __init__(self, index: ProjectIndex, modules: Sequence[Module], *, layers: bool) -> None:
        self._index = index
        self._modules = modules
        self._layers = layers
        self._every: dict[str, list[Assigned]] = {}
        self._leading: dict[str, list[Assigned]] = {}

    def to(self, name: str) -> list[Assigned]:
        """Assignments to an attribute of this name, in any class, of what may be or hold functions."""
        if not self._every:
            for module in self._modules:
                for item in module.summary.classes:
                    qualified = f"{module.summary.name}.{item.qualname}"
                    for attribute in item.attributes:
                        value = attribute.value
                        if value.spelled or value.holds:
                            self._every.setdefault(attribute.name, []).append((qualified, module, item, value))
        if name not in self._leading:
            self._leading[name] = [row for row in self._every.get(name, ()) if self._leads(*row)]
        return self._leading[name]

    def _leads(self, owner: str, module: Module, item: ClassSummary, value: Value) -> bool:
        if self._layers or value.kind != "call" or value.wraps or value.holds:
            return value.kind in ("call", "other") or (value.kind == "argument" and bool(value.holds))
        callee = self._index.scoped(module, module.functions.get(f"{item.qualname}.__init__"), value.spelled)
        if callee is None or self._index.class_summary(callee) is None:
            return False
        return not self._index.is_module(callee)
