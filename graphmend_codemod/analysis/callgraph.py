"""Call graph of one module from its source: `f()`, `self.method()`, `self.layer()`.

A module attribute is known by the class that the constructor gives it, in a `ModuleList` or alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, TypeVar, cast

from graphmend_codemod.analysis.arguments import Arguments, bound
from graphmend_codemod.analysis.patterns import (
    is_attribute,
    is_name,
    positional_names,
    without_numbers,
)
from graphmend_codemod.analysis.scope import (
    SCOPES,
    FunctionNode,
    walk,
    walk_in_layers,
    walk_scope,
    with_plain_assignments,
)
from graphmend_codemod.analysis.top_level import TopLevel
from graphmend_codemod.core.source import parse_text

Key = tuple[str, int]
T = TypeVar("T")
_ROUNDS = 10
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


class Definition(NamedTuple):
    """A function of the module. `owner` is its class, empty for a function outside of classes."""

    qualname: str
    node: FunctionNode
    owner: str = ""

    @property
    def key(self) -> Key:
        """Its qualname and line, which stand for it."""
        return self.qualname, self.node.lineno

    @property
    def parameters(self) -> list[str]:
        """Names of parameters that take an argument of a call, without `self`."""
        return positional_names(self.node)[self._bound_first() :]

    def _bound_first(self) -> bool:
        """True where Python itself gives the first parameter, to a method of an instance or a class."""
        return bool(self.owner) and not any(is_name(each, "staticmethod") for each in self.node.decorator_list)

    def arguments(self, call: ast.Call) -> Arguments:
        """What a call gives for each parameter; `Owner.method(self, x)` gives the instance, too."""
        of_class = is_attribute(call.func, self.owner, self.node.name)
        given = of_class and not any(is_name(each, "classmethod") for each in self.node.decorator_list)
        return bound(self.node, call, self._bound_first() and not given)


class ModuleCalls:
    """The functions of a module and the calls between them. Assignments in its functions become plain ones."""

    def __init__(self, tree: ast.Module) -> None:
        with_plain_assignments(tree, inside=False)
        self.tree = tree
        self._methods: dict[str, dict[str, Key]] = {}
        self._bases: dict[str, list[str]] = {}
        self._functions: dict[str, Key] = {}
        self._answers: dict[Hashable, Any] = {}
        self._asked: dict[Hashable, bool] = {}  # what is being worked out, and whether it was asked again
        self.definitions: dict[Key, Definition] = {}
        self.top = TopLevel(tree)
        self._classes = self.top.classes
        for node in tree.body:
            self._add(node)

    def _add(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._functions[node.name] = (node.name, node.lineno)
            self.definitions[node.name, node.lineno] = Definition(node.name, node)
        elif isinstance(node, ast.ClassDef):
            self._bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    key = (f"{node.name}.{inner.name}", inner.lineno)
                    self.definitions[key] = Definition(key[0], inner, node.name)
                    self._methods.setdefault(node.name, {})[inner.name] = key

    def remembered(self, question: str, about: Hashable, answer: Callable[[], T], meanwhile: T | None = None) -> T:
        """`answer()`, worked out once. It has to follow from the module's text and from what the question is about.

        Where calls go round in a circle, the same is asked again before there is an answer: then it is `meanwhile`, and
        what follows from that is worked out anew until it is the same.
        """
        key = (question, about)
        if key in self._asked:
            self._asked[key] = True
        if key not in self._answers:
            self._answers[key] = answer() if meanwhile is None else self._in_circle(key, answer, meanwhile)
        return cast("T", self._answers[key])

    def _in_circle(self, key: Hashable, answer: Callable[[], T], meanwhile: T) -> T:
        self._answers[key], self._asked[key] = meanwhile, False
        known = len(self._answers)
        try:
            for _ in range(_ROUNDS):
                found = answer()
                if found == self._answers[key] or not self._asked[key]:
                    return found
                self._forget(known)
                self._answers[key] = found
        except BaseException:
            self._forget(known)
            raise
        finally:
            del self._asked[key], self._answers[key]
        return meanwhile

    def _forget(self, known: int) -> None:
        """Leave out what was answered later than this many questions: it may follow from an answer that was not one."""
        for later in list(self._answers)[known:]:
            del self._answers[later]

    @cached_property
    def _attributes(self) -> dict[str, dict[str, str]]:
        """The class of each attribute, by the class that holds it."""
        found: dict[str, dict[str, str]] = {name: {} for name in self._classes}
        for name in self._classes:
            for targets, value in self._own_assignments(name):
                first = targets[0]
                made = next(self._made(value), None) if first is not None else None
                if first is not None and made is not None:
                    found[name].setdefault(first, made)
        return found

    def at(self, line: int) -> Definition | None:
        """The function or method that begins at a line; None where there is none."""
        return next((each for each in self.definitions.values() if each.node.lineno == line), None)

    def named(self, qualname: str) -> list[Definition]:
        """The functions to which a `def` gives this name, `Owner.method` for a method."""
        return [each for each in self.definitions.values() if each.qualname == qualname]

    def around(self, line: int) -> Definition | None:
        """The function or method in which a line stands, below its head; None where there is none."""
        found = (each for each in self.definitions.values() if each.node.lineno < line <= (each.node.end_lineno or 0))
        return next(found, None)

    def constructions(self, owner: str, attribute: str) -> list[ast.Call]:
        """The calls whose results a class and its bases in this module assign to an attribute; empty if unclear."""
        found = self.assigned(owner, attribute)
        made = [each for each in found if isinstance(each, ast.Call)]
        return made if len(made) == len(found) else []

    def assigned(self, owner: str, attribute: str | None = None) -> list[ast.expr]:
        """What a class and its bases in this module assign to an attribute, or to any."""
        return [value for targets, value in self.assignments(owner) if attribute is None or attribute in targets]

    def assignments(self, owner: str) -> Iterator[tuple[list[str | None], ast.expr]]:
        """The same, with the attributes; None stands for a target that is none of the instance."""
        for name in self._family(owner):
            yield from self._own_assignments(name)

    def _own_assignments(self, name: str) -> list[tuple[list[str | None], ast.expr]]:
        """What a class of the module assigns to attributes of `self`; None stands for a target that is no such one."""
        return self.remembered("assignments", name, lambda: list(_assignments(self._classes[name])))

    def _made(self, node: ast.expr) -> Iterator[str]:
        for part in walk_in_layers(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in self._classes:
                yield part.func.id

    def _family(self, name: str) -> Iterator[str]:
        todo, seen = [name], set()
        while todo:
            each = todo.pop(0)
            if each in seen or each not in self._classes:
                continue
            seen.add(each)
            yield each
            todo += self._bases[each]

    def is_heir(self, name: str, ancestor: str) -> bool:
        """True when a class of the module is a subclass of another one."""
        return name != ancestor and ancestor in self._family(name)

    def related(self, name: str, other: str) -> bool:
        """True for one class, and for a class of the module and a subclass of it."""
        return name == other or self.is_heir(name, other) or self.is_heir(other, name)

    def family(self, owner: str, *, heirs: bool = True) -> list[Definition]:
        """The methods of a class, of its bases, and of its `heirs`, as far as they are in this module."""
        related = self.related if heirs else lambda name, _: name == owner or self.is_heir(owner, name)
        return [each for each in self.definitions.values() if each.owner and related(each.owner, owner)]

    def method(self, owner: str, name: str) -> Key | None:
        """A method of a class or of its bases in this module; None where there is none."""
        found = (self._methods[each][name] for each in self._family(owner) if name in self._methods.get(each, {}))
        return next(found, None)

    def is_replaced(self, owner: str, name: str) -> bool:
        """True where a subclass of a class, in the module, has another method of this name."""
        key = self.method(owner, name)
        return any(self.is_heir(each, owner) and self.method(each, name) != key for each in self._classes)

    def inherited(self, owner: str, name: str) -> Key | None:
        """What `super().name` is in a class that has one base, a class of this module; None where there is none."""
        bases = self._classes[owner].bases if owner in self._classes else []
        base = bases[0].id if len(bases) == 1 and isinstance(bases[0], ast.Name) else ""
        return self.method(base, name) if base in self._classes else None

    def _attribute(self, owner: str, name: str) -> str | None:
        """The class of an attribute of a class, its bases in this module included."""
        found = (self._attributes[each][name] for each in self._family(owner) if name in self._attributes[each])
        return next(found, None)

    def _class_of(self, node: ast.expr, owner: str, loops: Mapping[str, ast.expr]) -> str | None:
        """The class of the module whose instance `node` is, also of the elements of a list of them."""
        if isinstance(node, ast.Subscript):
            return self._class_of(node.value, owner, loops)
        if isinstance(node, ast.Name):
            if node.id == "self":
                return owner or None
            return self._class_of(loops[node.id], owner, {}) if node.id in loops else None
        if isinstance(node, ast.Attribute):
            base = self._class_of(node.value, owner, loops)
            return self._attribute(base, node.attr) if base is not None else None
        return None

    def class_named(self, name: str) -> ast.ClassDef | None:
        """The class that the top level of the module gives the name."""
        return self._classes.get(name)

    def class_of(self, caller: Definition, node: ast.expr) -> str | None:
        """The class of the module whose instance an expression of a function spells; None where there is none."""
        return self._class_of(node, caller.owner, self._loops(caller))

    def callee(self, caller: Definition, call: ast.Call) -> Definition | None:
        """The function of the module that a call runs; None where there is none."""
        function, key = call.func, None
        if isinstance(function, ast.Name) and function.id in self._functions:
            key = self._functions[function.id]
        else:
            loops = self._loops(caller)
            made = self._class_of(function, caller.owner, loops)
            if made is not None and made != caller.owner:
                key = self.method(made, "forward")
            elif isinstance(function, ast.Attribute):
                owner = self._class_of(function.value, caller.owner, loops)
                key = self.method(owner, function.attr) if owner else None
        return self.definitions.get(key) if key is not None else None

    def _loops(self, caller: Definition) -> dict[str, ast.expr]:
        """What the variables of loops over modules come from."""
        return self.remembered("loops", caller.key, lambda: _loops_in(caller.node))

    def _find_callers(self, function: Key) -> Iterator[tuple[Definition, ast.Call]]:
        owner = self.definitions[function].owner if function in self.definitions else ""
        for caller in self.definitions.values():
            # Most functions have no way to it: then nobody needs to know what they call.
            if not owner or owner in self._within_reach.get(caller.owner, ()):
                for call, callee in self.callees(caller):
                    if callee.key == function:
                        yield caller, call

    @cached_property
    def _within_reach(self) -> dict[str, set[str]]:
        """For each class of the module those whose methods its functions may get to by way of `self`."""
        return {name: self._reach(name) for name in self._classes}

    def _reach(self, start: str) -> set[str]:
        todo, found = [start], set()
        while todo:
            each = todo.pop()
            if each in self._classes and each not in found:
                found.add(each)
                todo += [*self._bases[each], *self._attributes[each].values()]
        return found

    def callees(self, caller: Definition, *, nested: bool = False) -> list[tuple[ast.Call, Definition]]:
        """The calls of a function, or also of those `nested` in it, that run one of the module, with that."""
        return self.remembered(f"callees {nested}", caller.key, partial(self._find_callees, caller, nested))

    def _find_callees(self, caller: Definition, nested: bool) -> list[tuple[ast.Call, Definition]]:
        nodes = walk(caller.node) if nested else walk_scope(caller.node)
        calls = [each for each in nodes if isinstance(each, ast.Call)]
        names = self._callable_attributes | {""}  # others lead nowhere in this module
        here = (each for each in calls if getattr(each.func, "attr", "") in names)
        return [(each, callee) for each in here if (callee := self.callee(caller, each)) is not None]

    @cached_property
    def _callable_attributes(self) -> frozenset[str]:
        """Names behind a dot that may be called: methods, and attributes that hold a module."""
        return frozenset(set().union(*self._methods.values(), *self._attributes.values()))

    @property
    def function_names(self) -> tuple[Collection[str], Collection[str]]:
        """The names of functions, and those behind a dot of methods and of attributes that hold layers."""
        return self._functions, self._callable_attributes

    def callers(self, function: Definition) -> list[tuple[Definition, ast.Call]]:
        """The calls of a function: by whom, and the call itself."""
        return self.remembered("callers", function.key, lambda: list(self._find_callers(function.key)))

    @cached_property
    def all_calls(self) -> list[tuple[Definition, ast.Call]]:
        """The calls in the functions and methods of the module, whatever they run."""
        every = ((caller, part) for caller in self.definitions.values() for part in walk_scope(caller.node))
        return [(caller, part) for caller, part in every if isinstance(part, ast.Call)]

    def held(self, caller: Definition, call: ast.Call) -> str | None:
        """The attribute of its instance that a function calls, or an element of which; None if it calls none."""
        held = call.func
        if isinstance(held, ast.Name):
            held = self._loops(caller).get(held.id, held)
        while isinstance(held, ast.Subscript):
            held = held.value
        return _own_name(held)


def _statements(root: ast.stmt, *, nested: bool = True) -> Iterator[ast.AST]:
    """The statements and handlers inside of one, outer ones first, also of `nested` functions and classes.

    A look at expressions would take ten times as long.
    """
    todo: list[ast.AST] = [root]
    for node in todo:
        yield node
        if not nested and node is not root and isinstance(node, SCOPES):
            continue
        for block in _BLOCKS:
            todo += getattr(node, block, ())


@lru_cache(maxsize=2)
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a whole file, which nobody changes; SourceError if Python cannot parse it.

    Assignments in its functions are plain (`with_plain_assignments`).
    """
    tree = parse_text(text)
    with_plain_assignments(tree, inside=False)
    return tree


@lru_cache(maxsize=2)
def calls_in(text: str) -> ModuleCalls:
    """The calls in a file between its functions; SourceError if Python cannot parse it."""
    return ModuleCalls(tree_of(text))


def _loops_in(function: FunctionNode) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    loops = (node for node in _statements(function, nested=False) if isinstance(node, ast.For))
    for target, iterated in map(without_numbers, loops):
        if isinstance(target, ast.Name):
            found.setdefault(target.id, iterated)
    return found


def _assignments(node: ast.ClassDef) -> Iterator[tuple[list[str | None], ast.expr]]:
    for part in _statements(node):
        if isinstance(part, ast.Assign):
            targets = [_own_name(target) for target in part.targets]
            if any(targets):
                yield targets, part.value


def _own_name(target: ast.expr) -> str | None:
    """`attribute` for `self.attribute`."""
    return target.attr if is_attribute(target, "self") else None
