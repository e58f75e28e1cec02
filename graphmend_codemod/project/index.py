"""The project index: facts for the analysis about classes, functions and globals of a project."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmend_codemod.project import families
from graphmend_codemod.project.candidates import COUNT
from graphmend_codemod.project.computing import COMPUTES
from graphmend_codemod.project.definitions import Definitions, Load, Module
from graphmend_codemod.project.facts import AttributeFact, AttributeKind, ClassFacts, FunctionFacts
from graphmend_codemod.project.modules import Layout
from graphmend_codemod.project.summary import ClassSummary, FunctionSummary, Value

_NAME = re.compile(r"[A-Za-z_][\w.]*")


class ProjectIndex(Definitions):
    """Answers for analysis and reach; see `IndexView`."""

    def __init__(self, layout: Layout, load: Load, module_bases: Iterable[str] = ()) -> None:
        super().__init__(layout, load, module_bases)
        self._facts: dict[str, ClassFacts | None] = {}
        self._own: dict[str, ClassFacts] = {}
        self._functions: dict[str, FunctionFacts | None] = {}

    def class_facts(self, qualified: str) -> ClassFacts | None:
        """See `IndexView.class_facts`."""
        if qualified not in self._facts:
            self._facts[qualified] = None
            self._facts[qualified] = self._class_facts(qualified)
        return self._facts[qualified]

    def _class_facts(self, qualified: str) -> ClassFacts | None:
        if self.class_summary(qualified) is None:
            return None
        methods: dict[str, str] = {}
        properties: set[str] = set()
        attributes: dict[str, AttributeFact] = {}
        for ancestor in reversed(self.linear(qualified)):
            own = self._own_facts(ancestor)
            methods |= own.methods
            properties = properties.difference(own.methods) | own.properties
        for ancestor in self.linear(qualified):
            for name, fact in self._own_facts(ancestor).attributes.items():
                attributes[name] = merge(attributes[name], fact) if name in attributes else fact
        return ClassFacts(
            qualified, self.is_module(qualified), self.bases(qualified), attributes, methods, frozenset(properties)
        )

    def _own_facts(self, qualified: str) -> ClassFacts:
        """What a class says itself; nothing for one outside the project."""
        known = self._own.get(qualified)
        if known is None:
            found = self.class_summary(qualified)
            known = ClassFacts(qualified, False) if found is None else self._facts_of(qualified, *found)
            self._own[qualified] = known
        return known

    def _facts_of(self, qualified: str, module: Module, item: ClassSummary) -> ClassFacts:
        methods = module.methods.get(item.qualname, {})
        scope = methods.get("__init__")
        attributes: dict[str, AttributeFact] = {}
        for attribute in item.attributes:
            fact = self._fact(module, attribute.value, scope)
            name = attribute.name
            attributes[name] = merge(attributes[name], fact) if name in attributes else fact
        return ClassFacts(
            qualified,
            False,
            attributes=attributes,
            methods={name: f"{module.summary.name}.{method.qualname}" for name, method in methods.items()},
            properties=frozenset(name for name, method in methods.items() if is_property(method)),
        )

    def _fact(self, module: Module, value: Value, function: FunctionSummary | None) -> AttributeFact:
        kind = AttributeKind(value.kind)
        if kind is AttributeKind.CALL:
            callee = self.scoped(module, function, value.spelled)
            if callee in families.PARAMETERS:
                return AttributeFact(AttributeKind.PARAMETER, text=value.text)
            if callee in families.BUFFERS:
                return AttributeFact(AttributeKind.BUFFER, text=value.text)
            return (
                AttributeFact(kind, callee, value.text)
                if callee
                else AttributeFact(AttributeKind.OTHER, text=value.text)
            )
        if kind is AttributeKind.ARGUMENT:
            return AttributeFact(kind, self._annotation(module, function, value.spelled) or None, value.text)
        return AttributeFact(kind, text=value.text)

    def function(self, qualified: str) -> FunctionFacts | None:
        """See `IndexView.function`."""
        if qualified not in self._functions:
            self._functions[qualified] = None
            self._functions[qualified] = self._function(qualified)
        return self._functions[qualified]

    def _function(self, qualified: str) -> FunctionFacts | None:
        found = self.function_summary(qualified)
        if found is None:
            return None
        module, function = found
        outer = module.functions.get(function.outer) if function.outer else None
        return FunctionFacts(
            qualified,
            function.parameters,
            {name: self._annotation(module, outer, text) for name, text in function.annotations},
            self._annotation(module, outer, function.returns) or None,
            tuple(self.decorators(module, function)),
            self._says_compiling(module, function),
            COUNT in function.returned,
            COMPUTES in function.returned and self._is_plain(module, function),
        )

    def _is_plain(self, module: Module, function: FunctionSummary) -> bool:
        """True for the only thing of its name in a module where `torch` means torch."""
        alone = len(module.bindings.get(function.qualname, ())) == 1
        return alone and self.resolve(module.summary.name, "torch") in (None, "torch")

    def _says_compiling(self, module: Module, function: FunctionSummary) -> bool:
        answers = [name for name in function.returned if name.endswith("()")]
        if not answers or any(name not in ("True", "False") and name not in answers for name in function.returned):
            return False
        if "True" in function.returned or function.owner:
            return False
        for answer in answers:
            callee = self.scoped(module, function, answer[:-2])
            if callee is None:
                return False
            if callee not in families.IS_COMPILING:
                facts = self.function(callee)
                if facts is None or not facts.compiling_predicate:
                    return False
        return True

    def _annotation(self, module: Module, function: FunctionSummary | None, text: str) -> str:
        if not text:
            return ""

        def resolved(match: re.Match[str]) -> str:
            name = match.group()
            found = self.scoped(module, function, name.rstrip("."))
            return found.removeprefix("builtins.") if found else name

        return _NAME.sub(resolved, text)

    def global_fact(self, module: str, name: str) -> AttributeFact | None:
        """See `IndexView.global_fact`."""
        found = self.resolve(module, name)
        if found is None:
            return None
        home, _, last = found.rpartition(".")
        known = self.module(home)
        if known is None:
            return None
        facts = [
            self._fact(known, binding.value, None)
            for binding in known.bindings.get(last, ())
            if binding.value is not None
        ]
        if not facts:
            return None
        fact = facts[0]
        for other in facts[1:]:
            fact = merge(fact, other)
        return fact


def merge(first: AttributeFact, second: AttributeFact) -> AttributeFact:
    """What is known when both were assigned."""
    if first.kind is not second.kind or first.callee != second.callee:
        return AttributeFact(AttributeKind.CHANGED)
    return first if first.text == second.text else AttributeFact(first.kind, first.callee)


def is_property(function: FunctionSummary) -> bool:
    """True for properties, cached ones too."""
    return any(
        name.rpartition(".")[2].removesuffix("()") in ("property", "cached_property") for name in function.decorators
    )
