"""What TorchScript compiles: functions and modules that any file of the project gives to `torch.jit.script`."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator

from graphmend_codemod.project.class_inference import Receivers
from graphmend_codemod.project.entrances import Step
from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.reach import Search
from graphmend_codemod.project.summary.records import FunctionSummary, ModuleSummary, Value

SCRIPTERS = frozenset({"torch.jit.script", "torch.jit.script_if_tracing", "torch.jit._script.script"})
_MARKS = SCRIPTERS | {
    "torch.jit.export",
    "torch.jit.script_method",
    "torch.jit._script.script_method",
    "e3nn.util.jit.compile_mode",
    "e3nn.util.jit.script",
}
"""Decorators that give a function or class to TorchScript, or say that a library does so (`e3nn.util.jit.compile`)."""
_BASES = frozenset({"torch.jit.ScriptModule", "torch.jit._script.ScriptModule"})
_ASKS = "torch.jit.is_scripting"
"""What a function asks that TorchScript compiles: who gives it to TorchScript may be another project."""
_WORDS = frozenset(name.rpartition(".")[2] for name in _MARKS | _BASES | {_ASKS})

_CLASSES = re.compile(r"\b(?:\w+\.)*[A-Z]\w*(?=\()")
"""Calls of classes in the text of an assignment."""
_CONTAINERS = frozenset({"ModuleList", "ModuleDict", "Sequential"})
_BUILTINS = frozenset(dir(builtins))

Scripted = frozenset[tuple[str, str, int]]
"""Functions as (path, qualname, line)."""


def mentions_scripts(summary: ModuleSummary) -> bool:
    """True for a module that may give something to TorchScript."""
    return any(
        any(callee.rpartition(".")[2] in _WORDS for callee, _ in each.compiles)
        or any(name.partition("(")[0].rpartition(".")[2] in _WORDS for name in each.decorators)
        for each in summary.functions
    ) or any(
        any(name.partition("(")[0].rpartition(".")[2] in _WORDS for name in (*each.bases, *each.decorators))
        for each in summary.classes
    )


def scripted_functions(index: ProjectIndex, modules: Iterable[Module]) -> Scripted:
    """The functions that TorchScript compiles, as far as these modules say so, and all that they lead to."""
    search = _Scripts(index, (module for module in modules if mentions_scripts(module.summary)))
    search.run()
    return frozenset((path, each.qualname, each.line) for path, found in search.result().items() for each in found)


def held_modules(index: ProjectIndex, module: Module, scope: FunctionSummary | None, value: Value) -> Iterator[str]:
    """Classes of modules that an attribute may hold, in a container as well: of a long assignment all that it names, or
    all that the file defines or imports where what it names may make them."""
    names = {value.spelled, *(each.removesuffix("()") for each in value.holds), *_CLASSES.findall(value.text)}
    long = not value.text and (value.kind == "other" or value.spelled.rpartition(".")[2] in _CONTAINERS)
    if long and value.reads is not None and all(_is_followed(index, module, scope, each) for each in value.reads):
        names |= set(value.reads)
    elif long:
        names |= {item.qualname for item in module.summary.classes}
        names |= {each.name for each in module.summary.bindings if each.kind == "import" and each.name[:1].isupper()}
    for name in sorted(names - {""}):
        made = index.scoped(module, scope, name)
        if made is not None and index.class_summary(made) is not None and index.is_module(made):
            yield made


def _is_followed(index: ProjectIndex, module: Module, scope: FunctionSummary | None, name: str) -> bool:
    """True for a class, a builtin and a name of a library: for no value or function of the project."""
    found = index.scoped(module, scope, name)
    if found is None:
        return name in _BUILTINS
    parts = found.split(".")
    own = any(index.module(".".join(parts[:count])) is not None for count in range(1, len(parts)))
    return not own or index.class_summary(found) is not None


class _Scripts(Search):
    """A search that begins where TorchScript does. What it is given and nobody can follow may be any module that the
    file imports."""

    def __init__(self, index: ProjectIndex, modules: Iterable[Module]) -> None:
        self._classes_of = Receivers(index)
        self._instances: set[str] = set()
        super().__init__(index, modules)

    def _offered(self) -> Iterable[Step]:
        return ()  # that a package exports a function says nothing of who compiles it as a script

    def _roots(self, module: Module) -> None:
        name = module.summary.name
        for item in module.summary.classes:
            owner = f"{name}.{item.qualname}"
            marked = any(self._index.resolve(name, each.partition("(")[0]) in _MARKS for each in item.decorators)
            if marked or not _BASES.isdisjoint(self._index.linear(owner)):
                self._instance(owner)
                for method in module.methods.get(item.qualname, {}).values():
                    self._reach(module, method, owner)
        for function in module.summary.functions:
            own = self._closure_class(module, function)
            asks = any(self._index.scoped(module, function, callee) == _ASKS for callee, _ in function.compiles)
            if asks or (function.decorators and not _MARKS.isdisjoint(self._index.decorators(module, function))):
                self._reach(module, function, own)
            if asks and own is not None:
                self._with_parts(own)
            for callee, argument in function.compiles:
                if self._index.scoped(module, function, callee) in SCRIPTERS:
                    self._given(module, function, own, argument)

    def _is_stopped(self, place: tuple[str, str, int], module: Module, function: FunctionSummary) -> bool:
        return False

    def _reach(self, module: Module, function: FunctionSummary, own: str | None) -> None:
        self._add(module, function, own, "torch.jit.script")

    def _given(self, module: Module, function: FunctionSummary, own: str | None, argument: str) -> None:
        step = Step(module, function, own, "torch.jit.script")
        before = len(self._found)
        owners = self._classes_of.of(module, function, own, argument) if argument else ()
        for owner in owners:
            self._instance(owner)
        if not owners and argument:
            self._follow(step, argument if argument.endswith("()") else f"{argument}()")
        if len(self._found) == before and not owners:
            self._any_import(module, function)

    def _instance(self, owner: str) -> None:
        """Reach what TorchScript compiles of a module: `forward`, exported methods, and the modules that it holds."""
        if owner in self._instances:
            return
        self._instances.add(owner)
        self._call_instance(owner, "torch.jit.script")
        for module, item in filter(None, map(self._index.class_summary, self._index.linear(owner))):
            methods = module.methods.get(item.qualname, {})
            for method in methods.values():
                if not _MARKS.isdisjoint(self._index.decorators(module, method)):
                    self._reach(module, method, owner)
            for attribute in item.attributes:
                for made in held_modules(self._index, module, methods.get("__init__"), attribute.value):
                    self._instance(made)

    def _with_parts(self, owner: str) -> None:
        """Reach a class and its heirs, with the modules that their constructors make and may hand to each other."""
        for heir in (owner, *self._index.heirs(owner)):
            self._instance(heir)
            known = self._index.class_summary(heir)
            if known is None or (made := known[0].methods.get(known[1].qualname, {}).get("__init__")) is None:
                continue
            for ref in made.refs:
                if ref.endswith("()") and (target := self._index.scoped(known[0], made, ref[:-2])) is not None:
                    self._if_module(target)

    def _any_import(self, module: Module, function: FunctionSummary) -> None:
        targets = [each.target for each in module.summary.bindings if each.kind == "import"]
        targets += [target for _, target in function.imports]
        for target in targets:
            found = self._index.imported(module, target)
            home = self._index.module(found) if found is not None else None
            if home is not None:
                for item in home.summary.classes:
                    self._if_module(f"{home.summary.name}.{item.qualname}")
            elif found is not None and (known := self._index.function_summary(found)) is not None:
                for ref in known[1].refs:
                    made = self._index.scoped(*known, ref.removesuffix("()"))
                    if made is not None:
                        self._if_module(made)
            elif found is not None:
                self._if_module(found)

    def _if_module(self, owner: str) -> None:
        if self._index.class_summary(owner) is not None and self._index.is_module(owner):
            self._instance(owner)
