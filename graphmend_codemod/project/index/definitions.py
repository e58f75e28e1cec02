"""Names to definitions across the modules of a project, and its class families.

Modules are loaded when a question first touches them, so that a question costs what its answer needs.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping

from graphmend_codemod.project.index import families
from graphmend_codemod.project.index.modules import PackageLayout
from graphmend_codemod.project.summary.computing import MAKES_OPERATOR, MARKS_CONSTANT
from graphmend_codemod.project.summary.records import Binding, ClassSummary, FunctionSummary, ModuleSummary

Load = Callable[[str], "ModuleSummary | None"]
_BUILTINS = frozenset(dir(builtins)) - {"None", "True", "False", "Ellipsis", "NotImplemented"}
_NOTHING: Mapping[str, FunctionSummary] = {}
CONSTRUCTORS = ("__init__", "__new__")
"""Methods of modules that run before anything is compiled."""


_MOST_IMPORTED = 40
"""How many modules are looked at for an import of torch."""


class Module:
    """A loaded module with its definitions by name. `scopes` are functions in which names may mean something else."""

    __slots__ = ("bindings", "classes", "functions", "methods", "nested", "scopes", "summary")

    def __init__(self, summary: ModuleSummary) -> None:
        self.summary = summary
        self.bindings: dict[str, list[Binding]] = {}
        self.functions: dict[str, FunctionSummary] = {}
        self.classes: dict[str, ClassSummary] = {}
        self.nested: dict[str, list[FunctionSummary]] = {}
        self.methods: dict[str, dict[str, FunctionSummary]] = {}
        self.scopes: set[str] = set()

    @classmethod
    def of(cls, summary: ModuleSummary) -> Module:
        """The module of a summary."""
        module = cls(summary)
        for binding in summary.bindings:
            module.bindings.setdefault(binding.name, []).append(binding)
        for function in summary.functions:
            if function.decorators and _is_overload(function):
                continue
            module.functions.setdefault(function.qualname, function)
            if function.owner:
                module.methods.setdefault(function.owner, {}).setdefault(function.name, function)
            elif function.outer:
                module.nested.setdefault(function.outer, []).append(function)
            if function.imports:
                module.scopes.add(function.qualname)
            if function.outer:
                module.scopes |= {function.qualname, function.outer}
        for item in summary.classes:
            kept = module.classes.setdefault(item.qualname, item)
            if item.bases and not kept.bases:
                module.classes[item.qualname] = item  # the other was a stand-in for where a library is missing
            if item.outer:
                module.scopes.add(item.outer)
        return module


def _keeps_out(decorator: FunctionSummary, spelled: str) -> bool:
    """True for a decorator of the module that marks a constant, or makes an operator, with arguments or without."""
    marks = {MAKES_OPERATOR} if spelled.endswith("()") else {MAKES_OPERATOR, MARKS_CONSTANT}
    return not marks.isdisjoint(decorator.returned)


def _is_overload(function: FunctionSummary) -> bool:
    return any(name.rpartition(".")[2] == "overload" for name in function.decorators)


class Definitions:
    """What names lead to. `touched` collects the paths that answers depended on."""

    def __init__(self, layout: PackageLayout, load: Load, module_bases: Iterable[str] = ()) -> None:
        self.layout = layout
        self.touched: set[str] = set()
        self._load = load
        self._module_bases = frozenset(module_bases)
        self._modules: dict[str, Module | None] = {}
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._entities: dict[str, tuple[Module, str] | None] = {}
        self._classes: dict[str, tuple[Module, ClassSummary] | None] = {}
        self._linear: dict[str, tuple[str, ...]] = {}
        self._method_names: set[str] = set()

    def add(self, summary: ModuleSummary) -> Module:
        """Make a module known that was summarised already."""
        module = Module.of(summary)
        self._modules[summary.path] = module
        self._method_names.update(*module.methods.values())
        return module

    def module_at(self, path: str) -> Module | None:
        """The module in a file, loaded if need be; None when it cannot be summarised."""
        if path not in self._modules:
            summary = self._load(path)
            if summary is None:
                self._modules[path] = None
                return None
            self.add(summary)
        return self._modules[path]

    def module(self, name: str) -> Module | None:
        """The module with this name; None where there is none."""
        path = self.layout.path(name)
        return None if path is None else self.module_at(path)

    def imports_torch(self, name: str) -> bool:
        """See `IndexView.imports_torch`."""
        todo, seen = [name], set[str]()
        while todo and len(seen) < _MOST_IMPORTED:
            parts = todo.pop().split(".")
            for each in (".".join(parts[: count + 1]) for count in range(len(parts))):
                module = self.module(each) if each not in seen else None
                seen.add(each)
                imports = module.summary.bindings if module is not None else ()
                for binding in imports:
                    if binding.kind == "import" and not binding.conditional and not binding.for_types:
                        source = binding.target.partition(":")[0]
                        if source.partition(".")[0] == "torch":
                            return True
                        path = self._module_of(module, source) if module is not None else None
                        todo += [self.layout.name(path)] if path is not None else []
        return False

    # -- names ---------------------------------------------------------------------------------------------------

    def resolve(self, module: str, dotted: str) -> str | None:
        """See `IndexView.resolve`."""
        key = (module, dotted)
        if key not in self._resolved:
            self._resolved[key] = None  # a cycle of aliases binds nothing
            try:
                self._resolved[key] = self._resolve(module, dotted)
            except RecursionError:  # nor does a chain of thousands
                return None
        return self._resolved[key]

    def _resolve(self, module: str, dotted: str) -> str | None:
        first, _, rest = dotted.partition(".")
        if rest:
            found = self.resolve(module, first)
            for part in rest.split("."):
                found = found and self.member(found, part)
            return found
        known = self.module(module)
        found = self._bound(known, first) if known is not None else None
        if found is None and first in _BUILTINS:
            return f"builtins.{first}"
        return found

    def member(self, qualified: str, name: str) -> str:
        """The qualified name of `qualified.name`: a module's binding, a class's method, or the plain join."""
        module = self.module(qualified)
        if module is not None:
            return self.resolve_in(module, name) or f"{qualified}.{name}"
        found = self.find_method(qualified, name)
        return f"{qualified}.{name}" if found is None else f"{found[0].summary.name}.{found[1].qualname}"

    def find_method(self, qualified: str, name: str) -> tuple[Module, FunctionSummary] | None:
        """The method that instances of a class of the project have under this name; None where there is none."""
        if self.entity(qualified) is None:
            return None
        found = self.first_method(self.linear(qualified), name)
        return None if found is None else found[1:]

    def first_method(self, classes: Iterable[str], name: str) -> tuple[str, Module, FunctionSummary] | None:
        """The first of these classes that defines a method of this name, with its module and the method."""
        if name not in self._method_names:  # as most attributes are
            return None
        for qualified in classes:
            found = self.own_method(qualified, name)
            if found is not None:
                return qualified, *found
        return None

    def own_method(self, qualified: str, name: str) -> tuple[Module, FunctionSummary] | None:
        """The method that a class itself defines under this name; None where there is none."""
        known = self.class_summary(qualified)
        if known is None:
            return None
        method = known[0].methods.get(known[1].qualname, _NOTHING).get(name)
        return None if method is None else (known[0], method)

    def resolve_in(self, module: Module, name: str) -> str | None:
        """What `name` is in a module: its binding, else its submodule; never a builtin; None where there is none."""
        found = self.resolve(module.summary.name, name)
        return None if found is not None and found.startswith("builtins.") else found

    def _bound(self, module: Module, name: str) -> str | None:
        binding = self._chosen(module, name)
        if binding is None:
            return self._submodule(module, name) or self._starred(module, name)
        if binding.kind == "import":
            return self.imported(module, binding.target)
        if binding.kind == "value":
            value = binding.value
            if value is not None and value.kind == "other" and value.spelled and value.spelled != name:
                return self.resolve(module.summary.name, value.spelled) or f"{module.summary.name}.{name}"
            return f"{module.summary.name}.{name}"
        return f"{module.summary.name}.{binding.target}"

    def _chosen(self, module: Module, name: str) -> Binding | None:
        chosen: Binding | None = None
        for binding in module.bindings.get(name, ()):
            if binding.kind == "value" and binding.value is not None and binding.value.kind == "changed":
                return binding  # by a `global` of a function, which may run at any time
            if (
                chosen is None
                or (binding.kind == "value" and not chosen.conditional)
                or not binding.conditional
                or (binding.kind in ("function", "class") and chosen.conditional and self._leaves(module, chosen))
                or (chosen.kind == "value" and binding.kind != "value")
            ):
                chosen = binding
        return chosen

    def _leaves(self, module: Module, binding: Binding) -> bool:
        if binding.kind != "import" or binding.target.startswith("."):
            return False
        return self.layout.locate(binding.target.partition(":")[0], module.summary.path) is None

    def _submodule(self, module: Module, name: str) -> str | None:
        if not module.summary.package:
            return None
        path = self.layout.relative(1, [name], module.summary.path)
        return None if path is None else self.layout.name(path)

    def _starred(self, module: Module, name: str) -> str | None:
        outside = []
        for star in module.summary.stars:
            source = self._module_of(module, star)
            if source is None:
                outside.append(star)
            elif (known := self.module_at(source)) is not None:
                exports = known.summary.exports
                if name in exports if exports is not None else not name.startswith("_"):
                    found = self.resolve_in(known, name)
                    if found is not None:
                        return found
        if len(outside) == 1 and not outside[0].startswith(".") and name not in _BUILTINS:
            return f"{outside[0]}.{name}"
        return None

    def star_source(self, module: Module, star: str) -> Module | None:
        """The module of the project whose names `from M import *` in `module` takes; None where there is none."""
        path = self._module_of(module, star)
        return None if path is None else self.module_at(path)

    def _module_of(self, module: Module, target: str) -> str | None:
        name = target.lstrip(".")
        level = len(target) - len(name)
        if level:
            return self.layout.relative(level, name.split(".") if name else [], module.summary.path)
        return self.layout.locate(name, module.summary.path)

    def imported(self, module: Module, target: str) -> str | None:
        """The qualified name of an import target as a module spells it; None for a relative one that leads nowhere."""
        source, _, attribute = target.partition(":")
        path = self._module_of(module, source)
        if path is not None:
            name = self.layout.name(path)
            if not attribute:
                return name
            known = self.module_at(path)
            found = self._bound_elsewhere(known, attribute) if known is not None else None
            return found or f"{name}.{attribute}"
        if attribute:
            inner = self._module_of(module, f"{source}{'' if source.endswith('.') else '.'}{attribute}")
            if inner is not None:
                return self.layout.name(inner)
        if source.startswith("."):
            return None
        return f"{source}.{attribute}" if attribute else source

    def _bound_elsewhere(self, module: Module, name: str) -> str | None:
        key = (module.summary.name, name)
        if key in self._resolved and self._resolved[key] is None:
            return self._submodule(module, name)
        return self.resolve_in(module, name)

    def scoped(self, module: Module, function: FunctionSummary | None, dotted: str) -> str | None:
        """What a dotted name is inside a function: its own imports and those around it, nested definitions, globals."""
        if function is None or function.qualname not in module.scopes:
            return self.resolve(module.summary.name, dotted)
        first, _, rest = dotted.partition(".")
        found: str | None = None
        while function is not None and found is None:
            for name, target in function.imports:
                if name == first:
                    found = self.imported(module, target)
            inner = f"{function.qualname}.{first}"
            if found is None and (inner in module.functions or inner in module.classes):
                found = f"{module.summary.name}.{inner}"
            function = module.functions.get(function.outer) if function.outer else None
        if found is None:
            return self.resolve(module.summary.name, dotted)
        for part in rest.split(".") if rest else ():
            found = self.member(found, part)
        return found

    # -- definitions ---------------------------------------------------------------------------------------------

    def entity(self, qualified: str) -> tuple[Module, str] | None:
        """The module and the qualname inside it of a function or class of the project; None where there is none."""
        if qualified not in self._entities:
            self._entities[qualified] = self._entity(qualified)
        return self._entities[qualified]

    def _entity(self, qualified: str) -> tuple[Module, str] | None:
        name, _, rest = qualified.rpartition(".")
        while name:
            module = self.module(name)
            if module is not None:
                return (module, rest) if rest in module.functions or rest in module.classes else None
            name, _, last = name.rpartition(".")
            rest = f"{last}.{rest}"
        return None

    def function_summary(self, qualified: str) -> tuple[Module, FunctionSummary] | None:
        """The function or method of the project with this name; None where there is none."""
        found = self.entity(qualified)
        if found is None or found[1] not in found[0].functions:
            return None
        return found[0], found[0].functions[found[1]]

    def class_summary(self, qualified: str) -> tuple[Module, ClassSummary] | None:
        """The class of the project with this name; None where there is none."""
        if qualified not in self._classes:
            found = self.entity(qualified)
            known = found is not None and found[0].classes.get(found[1])
            self._classes[qualified] = (found[0], known) if found is not None and known else None
        return self._classes[qualified]

    def bases(self, qualified: str) -> tuple[str, ...]:
        """Resolved bases of a class of the project; those that resolve to nothing are left out."""
        found = self.class_summary(qualified)
        if found is None:
            return ()
        module, item = found
        outer = module.functions.get(item.outer) if item.outer else None
        resolved = [self.scoped(module, outer, base.removesuffix("()")) for base in item.bases]
        return tuple(base for base in resolved if base is not None and base != qualified)

    def linear(self, qualified: str) -> tuple[str, ...]:
        """The class and its ancestors, nearest first: depth first, left to right, an ancestor after its last heir."""
        known = self._linear.get(qualified)
        if known is None:
            self._linear[qualified] = (qualified,)  # a cycle of bases ends here
            order: list[str] = [qualified]
            for base in self.bases(qualified):
                order += self.linear(base)
            known = tuple(reversed(dict.fromkeys(reversed(order))))
            self._linear[qualified] = known
        return known

    def is_module(self, qualified: str) -> bool:
        """True for `torch.nn.Module` and every class known to inherit from it."""
        return any(
            base in self._module_bases
            or base.rpartition(".")[2] in self._module_bases
            or (self.class_summary(base) is None and families.is_module_class(base))
            for base in self.linear(qualified)
        )

    def is_kept_out(self, module: Module, function: FunctionSummary) -> bool:
        """True for a function that no graph can hold, whoever calls it."""
        constructs = function.owner and function.name in CONSTRUCTORS
        if constructs and self.is_module(f"{module.summary.name}.{function.owner}"):
            return True
        return bool(function.decorators) and self.is_disabled(module, function)

    def is_disabled(self, module: Module, function: FunctionSummary) -> bool:
        """True when a decorator keeps what is inside the function out of every graph, or compiles it by other means."""
        own = ((module.functions.get(name.removesuffix("()")), name) for name in function.decorators)
        return any(each is not None and _keeps_out(each, name) for each, name in own) or any(
            name in families.STOPS or name.startswith(families.OTHER_COMPILERS)
            for name in self.decorators(module, function)
        )

    def decorators(self, module: Module, function: FunctionSummary) -> Iterator[str]:
        """Resolved decorators; `@partial(f, ...)` counts as `@f`."""
        outer = module.functions.get(function.outer) if function.outer else None
        for spelled in function.decorators:
            callee, _, argument = spelled.partition("(")
            name = argument.removesuffix(")") or callee
            resolved = self.scoped(module, outer, name)
            yield resolved or name
