"""What may be or hold functions among the values that classes assign to their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.subclasses import Subclasses
from graphmend_codemod.project.summary.records import ClassSummary, FunctionSummary, Value

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
        self._keepers: dict[str, list[str]] = {}

    def to(self, name: str) -> list[Assigned]:
        """Assignments to an attribute of this name, in any class, of what may be or hold functions."""
        self._look()
        if name not in self._leading:
            self._leading[name] = [row for row in self._every.get(name, ()) if self._leads(*row)]
        return self._leading[name]

    def keepers(self, name: str) -> Sequence[str]:
        """The classes that keep an argument of their constructor under this name."""
        self._look()
        return self._keepers.get(name, ())

    def _look(self) -> None:
        if not self._every:
            for module in self._modules:
                for item in module.summary.classes:
                    qualified = f"{module.summary.name}.{item.qualname}"
                    for attribute in item.attributes:
                        value = attribute.value
                        if value.kind == "argument" and qualified not in self._keepers.get(attribute.name, ()):
                            self._keepers.setdefault(attribute.name, []).append(qualified)
                        if value.spelled or value.holds:
                            self._every.setdefault(attribute.name, []).append((qualified, module, item, value))

    def _leads(self, owner: str, module: Module, item: ClassSummary, value: Value) -> bool:
        if self._layers or value.kind != "call" or value.wraps or value.holds:
            return value.kind in ("call", "other") or (value.kind == "argument" and bool(value.holds))
        callee = self._index.scoped(module, module.functions.get(f"{item.qualname}.__init__"), value.spelled)
        if callee is None or self._index.class_summary(callee) is None:
            own = value.spelled.startswith("self.") and value.spelled.count(".") == 1
            return own or (callee is not None and self._index.function_summary(callee) is not None)
        return not self._index.is_module(callee)


class HandedFunctions:
    """Functions that constructors name without calling them, where they construct something: it may keep and call them.

    `super().__init__(fallback=self.initial)` and `Block(activation=squash)`.
    """

    def __init__(self, index: ProjectIndex, modules: Sequence[Module], subclasses: Subclasses) -> None:
        self._index = index
        self._modules = modules
        self._subclasses = subclasses
        self._heirs: dict[str, Handing] = {}
        self._makers: dict[str, list[tuple[str, Handing]]] | None = None

    def to(self, keepers: Iterable[str]) -> Iterator[tuple[Handing, str]]:
        """The constructors that hand functions to one of these classes or a subclass, with each name that they use."""
        for owner in keepers:
            for handing in self._of(owner):
                yield from ((handing, name) for name in handing.named)

    def _of(self, owner: str) -> Iterator[Handing]:
        makers = self._makers if self._makers is not None else self._look()
        for each in (owner, *self._subclasses.of(owner)):
            if each != owner and each in self._heirs:
                yield self._heirs[each]
            for spelled, handing in makers.get(each.rpartition(".")[2], ()):
                if self._index.scoped(handing.module, handing.function, spelled) == each:
                    yield handing

    def _look(self) -> dict[str, list[tuple[str, Handing]]]:
        makers = self._makers = {}
        for module in self._modules:
            for item in module.summary.classes:
                function = module.methods.get(item.qualname, {}).get("__init__")
                if function is None:
                    continue
                qualified = f"{module.summary.name}.{item.qualname}"
                handing = Handing(qualified, module, function, tuple(ref for ref in function.refs if ref[-1:] != ")"))
                for ref in function.refs if handing.named else ():
                    head, _, last = ref.removesuffix("()").rpartition(".")
                    if last == "__init__" and ref != "self.__init__()":
                        self._heirs[qualified] = handing
                    elif ref[-1:] == ")" and head != "self":
                        makers.setdefault(last, []).append((ref[:-2], handing))
                for value in (each.value for each in item.attributes):
                    if value.kind == "call" and "(" in value.text and not value.text.endswith("()"):
                        given = handing._replace(named=tuple(_NAMES.findall(value.text.partition("(")[2])))
                        makers.setdefault(value.spelled.rpartition(".")[2], []).append((value.spelled, given))
        return makers


_NAMES = re.compile(r"[A-Za-z_][\w.]*(?=\s*[,)])")
"""Names among the arguments of a call that are given as they are: a function, in `Block(size, act=squash)`."""


class Handing(NamedTuple):
    """A constructor and the names that it uses without calling them."""

    owner: str
    module: Module
    function: FunctionSummary
    named: tuple[str, ...]
