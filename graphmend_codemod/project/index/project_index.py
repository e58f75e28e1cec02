"""The project index: facts for the analysis about classes, functions and globals of a project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from graphmend_codemod.project.index import families
from graphmend_codemod.project.index.definitions import Definitions, Load, Module
from graphmend_codemod.project.index.facts import (
    AUGMENTED,
    AttributeFact,
    AttributeKind,
    ClassFacts,
    FunctionFacts,
    Home,
    NeedsProject,
    merge,
)
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.index.type_aliases import type_alias
from graphmend_codemod.project.index.whole_project import Others, ProjectView, WholeProject, homes
from graphmend_codemod.project.summary.candidates import COUNT
from graphmend_codemod.project.summary.check_functions import CHECKS
from graphmend_codemod.project.summary.computing import COMPUTES
from graphmend_codemod.project.summary.quiet import LOUD, MAKES_LOGGER
from graphmend_codemod.project.summary.records import ClassSummary, FunctionSummary, Value, Write
from graphmend_codemod.project.summary.results import GIVES, MAKES
from graphmend_codemod.project.swallowing import function_swallows

_LOOKED_UP = re.compile(r"\btorch\.(?:compiler|_dynamo)\b.*\bis_(?:dynamo_)?compiling\b")
_NAME = re.compile(r"[A-Za-z_][\w.]*")


class ProjectIndex(Definitions):
    """Answers for analysis and reach; see `IndexView`."""

    def __init__(self, layout: PackageLayout, load: Load, module_bases: Iterable[str] = ()) -> None:
        super().__init__(layout, load, module_bases)
        self._facts: dict[str, ClassFacts | None] = {}
        self._own: dict[str, ClassFacts] = {}
        self._functions: dict[str, FunctionFacts | None] = {}
        self._text: Callable[[str], str] = lambda _: ""
        self._whole: WholeProject | None = None
        self._view: ProjectView | None = None
        self._scripted: frozenset[tuple[str, str, int]] | None = None
        self._mentioning: Callable[[], Iterable[str]] | None = None

    # -- the whole project ---------------------------------------------------------------------------------------

    def has_every_file(
        self, paths: Iterable[str], others: Others = tuple, text: Callable[[str], str] = lambda _: ""
    ) -> WholeProject:
        """Say that the modules at these paths are all that matter in the project.

        `others` tells of all other files, and `text` what is in a file: nothing if it cannot be read.
        """
        self._whole = self._view = WholeProject(self, paths, others)
        self._text = text
        return self._whole

    def is_answered_by(self, view: ProjectView, text: Callable[[str], str]) -> None:
        """Say who knows about the project what takes a look at every file, without this index having read them."""
        self._view = view
        self._text = text

    def others(self) -> Iterable[tuple[str, bytes]]:
        """Path and content of each file of the project that does not matter by itself, read anew at every call."""
        return self._whole.others() if self._whole is not None else ()

    @property
    def every(self) -> tuple[str, ...] | None:
        """The paths of all modules that matter in the project, in order; None where they are not known."""
        return self._whole.every if self._whole is not None else None

    def _project(self) -> ProjectView:
        if self._view is None:
            raise NeedsProject
        return self._view

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.heirs`."""
        return self._project().heirs(qualified)

    def users(self, qualified: str) -> tuple[str, ...]:
        """See `IndexView.users`."""
        return self._project().users(qualified)

    def home(self, qualified: str) -> tuple[Home, str] | None:
        """See `IndexView.home`."""
        found = self.entity(qualified) if self._view is not None else None
        if found is None:
            return None
        text = self._text(found[0].summary.path)
        return (Home(found[0].summary.name, text), found[1]) if text else None

    def naming(self, qualified: str) -> tuple[Home, ...]:
        """See `IndexView.naming`."""
        return homes(self, self.users(qualified)) if self._view is not None else ()

    def writing_callers(self, qualified: str) -> tuple[Home, ...]:
        """See `IndexView.writing_callers`."""
        return homes(self, self._project().writing_callers(qualified))

    def text_of(self, module: Module) -> str:
        """The text of a file of the project; empty where the index was made of summaries alone."""
        return self._text(module.summary.path)

    def spells(self, path: str, name: str) -> bool:
        """See `IndexView.spells`."""
        return re.search(rf"\b{name}\b", self._text(path)) is not None

    def look_for_scripts(self, paths: Callable[[], Iterable[str]]) -> None:
        """Say how to find, among files that were not read, those that may give something to TorchScript."""
        self._mentioning = paths

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """See `IndexView.is_scripted`."""
        if self._view is not None or self._mentioning is None:
            return self._project().is_scripted(path, qualname, line)
        if self._scripted is None:
            from graphmend_codemod.project.scripted import scripted_functions

            modules = [module for each in self._mentioning() if (module := self.module_at(each)) is not None]
            self._scripted = scripted_functions(self, modules)
        return (path, qualname, line) in self._scripted

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """See `IndexView.caught`."""
        return self._project().caught(path, qualname, line)

    def is_loud(self, name: str) -> bool:
        """See `IndexView.is_loud`."""
        return self._project().is_loud(name)

    def readers(self, attribute: str) -> tuple[str, ...]:
        """See `IndexView.readers`."""
        return self._project().readers(attribute)

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """See `IndexView.writers`."""
        return self._project().writers(attribute)

    # -- one class, function or name -----------------------------------------------------------------------------

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
            properties=frozenset(name for name, method in methods.items() if method.is_property),
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
        return AUGMENTED if kind is AttributeKind.CHANGED else AttributeFact(kind, text=value.text)

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
            LOUD in function.returned,
            self._check(module, function),
            function_swallows(self, module, function),
            MAKES_LOGGER in function.returned,
            self._given(module, function),
        )

    def _check(self, module: Module, function: FunctionSummary) -> str:
        note = next((each for each in function.returned if each.startswith(CHECKS)), "")
        return note if note and self._is_plain(module, function) else ""

    def _given(self, module: Module, function: FunctionSummary) -> str:
        note = next((each for each in function.returned if each.startswith(GIVES)), "")
        return note.removeprefix(GIVES) if note and self._is_plain(module, function) else ""

    def _is_plain(self, module: Module, function: FunctionSummary) -> bool:
        """True for the only thing of its name in a module where `torch` means torch."""
        alone = len(module.bindings.get(function.qualname, ())) == 1
        return alone and self.resolve(module.summary.name, "torch") in (None, "torch")

    def _says_compiling(self, module: Module, function: FunctionSummary) -> bool:
        answers = [name for name in function.returned if name.endswith("()")]
        others = {name for name in function.returned if not name.startswith(MAKES)} - {"True", "False", *answers}
        if not answers or others:
            return False
        if "True" in function.returned or function.owner:
            return False
        for answer in answers:
            callee = self.scoped(module, function, answer[:-2])
            if callee is None:
                return False
            if callee not in families.IS_COMPILING:
                facts = self.function(callee)
                if not (self._is_predicate(callee) if facts is None else facts.compiling_predicate):
                    return False
        return True

    def _is_predicate(self, name: str) -> bool:
        """True for a name of the project that is looked up in torch: `f = getattr(torch.compiler, "is_compiling")`."""
        home, _, last = name.rpartition(".")
        fact = self.global_fact(home, last)
        return fact is not None and _LOOKED_UP.search(fact.text) is not None

    def _annotation(self, module: Module, function: FunctionSummary | None, text: str) -> str:
        if not text:
            return ""

        def resolved(match: re.Match[str]) -> str:
            name = match.group()
            found = self.scoped(module, function, name.rstrip("."))
            return type_alias(self, found) or found.removeprefix("builtins.") if found else name

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
