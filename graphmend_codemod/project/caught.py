"""Functions whose exceptions somebody may catch, in any file of the project."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from graphmend_codemod.project.catching import catching_modules
from graphmend_codemod.project.entrances import Step, called_by_library
from graphmend_codemod.project.exchanged_exceptions import is_made_of_others
from graphmend_codemod.project.handed import handed, is_handed
from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.index.facts import OTHERS_ALONE, ReachedFunction
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.reach import Search
from graphmend_codemod.project.scripted import held_modules
from graphmend_codemod.project.summary.records import Attribute, FunctionSummary, Value
from graphmend_codemod.project.summary.references import CALLED, CALLS
from graphmend_codemod.project.swallowing import function_swallows, manager_swallows
from graphmend_codemod.project.wrappers import wrappers

_ANYTHING = frozenset({"finally", "except", "except Exception", "except BaseException"})
_NO_MODULES = frozenset({"str", "int", "float", "bool", "torch.device", "torch.dtype"})
"""Annotations of arguments that hold nothing to call."""
_NAMES = re.compile(r"[A-Za-z_][\w.]*")
_OF_STREAMS = frozenset("close fileno flush isatty read readline readlines seek tell truncate write writelines".split())
"""Methods that an attribute has for reading and writing, and that run no module: `self.file.write(text)`."""
_PARTS = "?parts"
"""Stands for the modules that an instance makes, among the methods of its class that have been called."""

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
        self._callers: dict[str, str] = {}
        self._keep_given: dict[str, str] = {}
        self._constructed: frozenset[str] | None = None
        self._catching: list[Module] = []
        self._others_alone = False
        self._made_of_others: dict[str, bool] = {}
        modules = list(modules)
        self._packages = frozenset(each.summary.name.partition(".")[0] for each in modules)
        super().__init__(index, modules)
        self._follow_given()
        self._follow_givers()

    def run(self) -> None:
        """Follow all that torch may raise to its end, then the exceptions that only others raise."""
        super().run()
        self._callers, self._keep_given = {}, {}
        self._others_alone = True
        for module in (*self._modules, *self._catching):
            self._roots(module)
        self._follow_callers()
        self._follow_givers()
        super().run()

    def reasons(self) -> Caught:
        """What catches the exceptions of the functions found."""
        return {place: step.via for place, (step, _) in self._found.items()}

    def _offered(self) -> Iterable[Step]:
        return ()  # that a package exports a function says nothing of who catches its exceptions

    def _roots(self, module: Module) -> None:
        for item in module.summary.classes if not self._others_alone else ():
            qualified = f"{module.summary.name}.{item.qualname}"
            marked = list(called_by_library(self._index, qualified))
            for name in marked if marked and self._is_constructed(qualified) else ():
                method = module.methods.get(item.qualname, {}).get(name)
                if method is not None:
                    self._add(module, method, qualified, f"the library that calls {item.qualname}.{name}")
        for function in module.summary.functions:
            caught = [each for each in function.caught if self._counts_now(module, function, each[1])]
            if not caught:
                continue
            known = self._reached.get((module.summary.path, function.qualname, function.line))
            own = known.class_qualified if known is not None else None
            own = own or self._closure_class(module, function)
            calling = {by for used, by in caught if used == CALLS}
            for used, by in (each for each in caught if each[0] != CALLS):
                if self._catches(module, function, own, by, traced=known is not None):
                    via = f"`{by}` in {function.qualname} ({module.summary.path})"
                    via = f"{OTHERS_ALONE}{via}" if self._others_alone else via
                    self._follow(Step(module, function, own, via), used)
                    may = own is not None and known is not None and by in calling  # what is only read runs no module
                    if may and own is not None and self._may_call_parts(module, function, own, used, by):
                        self._parts(own, via)
                    for name in (function.qualname, function.outer) if used == CALLED else ():
                        self._callers[f"{module.summary.name}.{name}"] = via

    def _counts_now(self, module: Module, function: FunctionSummary, by: str) -> bool:
        """True for what is followed at present: handlers for what torch raises first, then those for nothing of it."""
        word, _, names = by.partition(" ")
        others = word == "except" and bool(names)
        others = others and all(self._is_of_others(module, function, each) for each in names.split(", "))
        return others == self._others_alone

    def _is_of_others(self, module: Module, function: FunctionSummary, spelled: str) -> bool:
        """True for an exception class of the project or of another library, which nothing of torch inherits from.

        `NotImplementedError` is one for the functions that Dynamo does not trace: an operator raises it as eager does.
        """
        found = self._index.scoped(module, function, spelled) if spelled else None
        root, _, last = (found or "").rpartition(".")
        if found == "builtins.NotImplementedError":
            traced = (module.summary.path, function.qualname, function.line) in self._reached
            return not traced and not self._is_made_of_others(last)
        if found is None or root.partition(".")[0] in ("builtins", "torch", ""):
            return False
        known = self._index.class_summary(found) is not None or not (
            self._index.module(root) is not None or root.partition(".")[0] in self._packages or hasattr(builtins, last)
        )
        return known and not self._is_made_of_others(last)

    def _is_made_of_others(self, name: str) -> bool:
        """True where somebody raises an exception of this name in the place of another: `raise TooShort from error`."""
        if name not in self._made_of_others:
            self._made_of_others[name] = is_made_of_others(name, self._texts)
        return self._made_of_others[name]

    def _texts(self, words: Collection[str]) -> Iterator[str]:
        """Of all files with one of these words, and of those that cannot be read."""
        for module in self._modules:
            text = self._index.text_of(module) if module.summary.functions else "-"
            if not text or any(word in text for word in words):
                yield text
        raw_words = [word.encode() for word in words]
        for _, raw in self._index.others():
            if any(word in raw for word in raw_words):
                yield raw.decode(errors="replace")

    def _is_constructed(self, qualified: str) -> bool:
        """True for a class of which code that Dynamo traces may make instances, or of an heir."""
        if self._constructed is None:
            made = {name for module in self._modules for name in self._constructed_in(module)}
            self._constructed = frozenset(each for name in made for each in self._index.linear(name))
        return qualified in self._constructed

    def _constructed_in(self, module: Module) -> Iterator[str]:
        """What traced functions call, and what is no call: a class that is handed on may be called anywhere."""
        values = [each.value for item in module.summary.classes for each in item.attributes]
        values += [each.value for each in module.summary.bindings if each.value is not None]
        for name in {name for value in values for name in (value.spelled, *value.holds) if value.kind != "call"}:
            yield self._index.scoped(module, None, name) or ""
        for function in module.summary.functions:
            known = self._reached.get((module.summary.path, function.qualname, function.line))
            for ref in function.refs:
                if ref == "cls()" and known is not None:
                    yield known.class_qualified or ""
                elif known is not None or not ref.endswith("()"):
                    yield self._index.scoped(module, function, ref.removesuffix("()")) or ""

    def _may_call_parts(self, module: Module, function: FunctionSummary, owner: str, used: str, by: str) -> bool:
        """True for what may call any module that an instance holds; its own methods are followed by themselves.

        A method that is not implemented says so itself, whatever its parts do.
        """
        root, _, name = used.removesuffix("()").partition(".")
        if root not in (CALLED, "self") or ("." in name and name.rpartition(".")[2] in _OF_STREAMS):
            return False
        handled = by.removeprefix("except ").split(", ")
        if all(self._index.scoped(module, function, each) == "builtins.NotImplementedError" for each in handled):
            return False
        found = self._index.find_method(owner, name) if name else None
        return root == CALLED or found is None or found[1].is_property

    def _follow_given(self) -> None:
        """Follow what is given to functions that call it where an exception may be caught, and what they decorate."""
        for other in catching_modules(self._index, self._modules, (path for path, _, _ in self._reached)):
            self._catching.append(other)
            self._roots(other)
        self._follow_callers()

    def _follow_callers(self) -> None:
        """Follow what is given to functions that have been found to call it so, and what they decorate."""
        last = {name.rpartition(".")[2] for name in self._callers}
        for module in self._modules:
            for function in module.summary.functions:
                own = self._closure_class(module, function)
                decorators = function.decorators if self._callers or not self._others_alone else ()
                decorated = next(filter(None, (self._around(module, each) for each in decorators)), None)
                if decorated is not None:
                    self._add(module, function, own, decorated)
                called = [ref[:-2] for ref in function.refs if ref.endswith("()")] if self._callers else []
                for spelled in (each for each in called if each.rpartition(".")[2] in last):
                    via = self._callers.get(self._index.scoped(module, function, spelled) or "")
                    if via is not None:
                        self._follow_handed(Step(module, function, own, via), spelled)

    def _follow_handed(self, step: Step, catcher: str) -> None:
        """Follow what a function may hand to `catcher`, which calls it where an exception may be caught."""
        function = step.function
        given = self._names_handed(step.module, function, {catcher}, kept=False)
        of_self = {name.split(".")[1] for name in given or () if name.startswith("self.")}
        if step.own is not None:
            renamed = bool(function.owner) and function.parameters[:1] != ("self",)
            whole = given is None or "self" in given or renamed
            self._parts(step.own, step.via, only=None if whole else of_self)
        for ref in function.refs:
            spelled = ref.removesuffix("()")
            if given is None or is_handed(spelled, given):
                self._follow(step, f"{spelled}()")

    def _around(self, module: Module, spelled: str) -> str | None:
        """What a decorator catches with, in words; None if nothing."""
        found = self._index.scoped(module, None, spelled.partition("(")[0])
        known = self._index.function_summary(found) if found is not None else None
        if known is None:
            return None
        if function_swallows(self._index, *known):
            return f"`@{spelled}` ({module.summary.path})"
        for inner in wrappers(*known):
            via = self._callers.get(f"{known[0].summary.name}.{inner.qualname}")
            if via is not None:
                return via
        return None

    def _parts(self, owner: str, via: str, only: Collection[str] | None = None) -> None:
        """Reach the modules that a class makes for itself: methods call them by more ways than can be followed.

        Of those, where `only` is known, the ones in attributes of these names, if calls and arguments alone make them.
        """
        known = [each for each in map(self._index.class_summary, self._index.linear(owner)) if each is not None]
        held = [
            (*each, attribute) for each in known for attribute in each[1].attributes if attribute.name in (only or ())
        ]
        if (
            only is not None
            and {each.name for *_, each in held} == set(only)
            and all(_is_apart(each) for *_, each in held)
        ):
            for module, item, attribute in held:
                self._held(owner, module, item.qualname, [attribute], via)
            return
        if (owner, _PARTS) in self._called:
            return
        self._called.add((owner, _PARTS))
        for module, item in known:
            methods = module.methods.get(item.qualname, {})
            self._held(owner, module, item.qualname, item.attributes, via)
            for method in methods.values():
                for ref in method.refs:
                    self._made_by(module, method, ref[:-2] if ref.endswith("()") else "", via)
            self._named_in(module, methods.get("__init__"), via, apart={item.qualname})  # which messages name

    def _held(self, owner: str, module: Module, name: str, attributes: Iterable[Attribute], via: str) -> None:
        """Reach the modules in attributes of an instance, of a class with this name in its module."""
        construction = module.methods.get(name, {}).get("__init__")
        for attribute in attributes:
            for made in held_modules(self._index, module, construction, attribute.value):
                self._part(made, via)
            if attribute.value.kind == "call":
                self._made_by(module, construction, attribute.value.spelled, via)
            elif attribute.value.kind == "argument" and attribute.value.spelled not in _NO_MODULES:
                self._keep_given[owner] = via

    def _named_in(
        self,
        module: Module,
        construction: FunctionSummary | None,
        via: str,
        *,
        apart: Collection[str] = (),
        given: Collection[str] | None = None,
    ) -> None:
        """Reach the modules that a constructor names, wherever it puts them: its summary has only what it assigns.

        Of those, where `given` is known, only the ones in it.
        """
        if construction is None:
            return
        lines = self._index.text_of(module).split("\n")[construction.line - 1 : construction.end_line]
        names = sorted(set(_NAMES.findall("\n".join(lines))))
        for name in (
            each for each in names if each.rpartition(".")[2] not in apart and (given is None or each in given)
        ):
            self._made_by(module, construction, name, via)

    def _follow_givers(self) -> None:
        """Reach the modules that are given, where they are made, to something that keeps them and calls them."""
        last = {name.rpartition(".")[2] for name in self._keep_given}
        for module in self._modules if last else ():
            for function in module.summary.functions:
                made = [ref[:-2] for ref in function.refs if ref.endswith("()")]
                keepers = {name for name in made if name.rpartition(".")[2] in last}
                via = self._given_to(module, function, keepers)
                given = self._names_handed(module, function, keepers) if via is not None else None
                for name in made if via is not None else ():
                    if name not in keepers and (given is None or name in given):
                        self._made_by(module, function, name, via or "")
            for item in module.summary.classes:
                construction = module.methods.get(item.qualname, {}).get("__init__")
                held = {each.value.spelled for each in item.attributes if each.value.kind == "call"}
                keepers = {name for name in held if name.rpartition(".")[2] in last}
                via = self._given_to(module, construction, keepers)
                if via is not None and construction is not None:
                    given = self._names_handed(module, construction, keepers)
                    self._named_in(module, construction, via, apart=last, given=given)

    def _names_handed(
        self, module: Module, function: FunctionSummary, makers: Collection[str], *, kept: bool = True
    ) -> Collection[str] | None:
        text = self._index.text_of(module)
        return handed(text, function.line, makers, kept=kept) if text else None

    def _given_to(self, module: Module, function: FunctionSummary | None, made: Iterable[str]) -> str | None:
        """What catches in one of the classes that a function makes and that keep what they are given."""
        found = (self._keep_given.get(self._index.scoped(module, function, name) or "") for name in made)
        return next(filter(None, found), None)

    def _made_by(self, module: Module, function: FunctionSummary | None, called: str, via: str) -> None:
        """Reach the module that a call in a method makes, itself or as what a function returns."""
        found = self._index.scoped(module, function, called) if called else None
        if found is None:
            return
        made = self._index.function_summary(found)
        targets = [found, *self._tabled(found)]
        if made is not None and not made[1].owner:
            targets = [self._index.scoped(*made, inner[:-2]) or "" for inner in made[1].refs if inner.endswith("()")]
        for target in targets:
            if self._index.class_summary(target) is not None and self._index.is_module(target):
                self._part(target, via)

    def _tabled(self, name: str) -> Iterator[str]:
        """The classes that a table of a module holds: `KINDS = {"plain": Part}`."""
        home, _, last = name.rpartition(".")
        module = self._index.module(home)
        for binding in module.bindings.get(last, ()) if module is not None else ():
            for held in binding.value.holds if binding.value is not None else ():
                yield self._index.resolve(home, held.removesuffix("()")) or ""

    def _part(self, made: str, via: str) -> None:
        """Reach what a module runs that is called, and its own parts."""
        self._call_instance(made, via)
        self._parts(made, via)

    def _follows_layers(self) -> bool:
        return True  # those who call `forward` matter here

    def _value(self, module: Module, value: Value, scope: FunctionSummary | None, step: Step, called: bool) -> None:
        super()._value(module, value, scope, step, called)
        for made in held_modules(self._index, module, scope, value) if called else ():
            self._call_instance(made, step.via)

    def _catches(self, module: Module, function: FunctionSummary, own: str | None, by: str, *, traced: bool) -> bool:
        word, _, spelled = by.partition(" ")
        if word != "with":
            return traced or by not in _ANYTHING
        found = self._manager(module, function, own, spelled)
        return found is not None and manager_swallows(self._index, self._made(found)) is True

    def _made(self, found: str) -> str:
        """What made a name of a module that holds a context manager, else the name."""
        home, _, name = found.rpartition(".")
        module = self._index.module(home)
        for binding in module.bindings.get(name, ()) if module is not None else ():
            if binding.value is not None and binding.value.kind == "call" and module is not None:
                return self._index.scoped(module, None, binding.value.spelled) or found
        return found

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


def _is_apart(attribute: Attribute) -> bool:
    """True for an argument, and for what a call makes without another attribute of the instance."""
    value = attribute.value
    names = _NAMES.findall(value.text) if value.text else value.reads
    alone = names is not None and all(each.partition(".")[0] != "self" for each in names)
    return value.kind == "argument" or (value.kind == "call" and alone)
