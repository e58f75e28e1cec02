"""The calls of a function or method in all files of the project, where it is known who holds it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_attribute, is_name, last_name
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.project.index.facts import Home, IndexView
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.memory.other_callers import OtherFile, calls_of

_FORWARD = ("forward", "__call__")
_HOOKS = frozenset({"register_forward_hook", "register_module_forward_hook"})
_ASKS = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "len", "type", "super", "id"})
_READS = (ast.Attribute, ast.Compare, ast.If, ast.BoolOp, ast.UnaryOp)
_GIVES_IN_TURN = frozenset({"enumerate", "reversed", "list", "tuple", "zip"})
_ELEMENTS = frozenset({"items", "values"})
_PARTS = frozenset({"children", "modules", "named_children", "named_modules"})
Found = tuple[OtherFile, ModuleCalls, Definition, ast.Call]


def calls_of_function(index: IndexView, own: Home, function: Definition) -> Iterator[Found]:
    """The calls, in whatever file; NotProven where one may hide, as of a function that is given to `map`.

    NeedsProject where not all files were read.
    """
    name = f"{own.module}.{function.owner or function.qualname}"
    known = (name, *index.heirs(name)) if function.owner else (name,)
    files = {own.module: own}
    files |= {home.module: home for each in known if index.users(each) for home in index.naming(each)}
    held = _Held(function, frozenset(known))
    views = [view for each in sorted(files) if (view := _view(index, files[each])) is not None]
    for view in views:
        held.look(view)
    heirs = {each for holder in sorted(held.holders) for each in index.heirs(holder)}
    homes = {found[0].module: found[0] for each in sorted(heirs) if (found := index.home(each)) is not None}
    views += [view for each in sorted(homes.keys() - files) if (view := _view(index, homes[each])) is not None]
    for view in views:
        yield from ((view.file, view.calls, caller, call) for caller, call in held.calls(view))


@dataclass(frozen=True)
class _View:
    """A file with what stands around each node, and the functions that nodes stand in."""

    file: OtherFile
    calls: ModuleCalls
    around: dict[ast.AST, ast.AST]
    inside: dict[ast.AST, Definition]


@lru_cache(maxsize=8)
def _parsed(text: str) -> tuple[ModuleCalls, dict[ast.AST, ast.AST], dict[ast.AST, Definition]] | None:
    calls = calls_of(text)
    if calls is None:
        return None
    around = {inner: node for node in walk(calls.tree) for inner in ast.iter_child_nodes(node)}
    return calls, around, {part: each for each in calls.definitions.values() for part in walk(each.node)}


def _view(index: IndexView, home: Home) -> _View | None:
    parsed = _parsed(home.text)
    return _View(OtherFile(home, index), *parsed) if parsed is not None else None


@dataclass(frozen=True)
class _Held:
    """Where a function, or layers of its class, are held: in `attributes` of the classes `holders`."""

    function: Definition
    known: Collection[str]
    attributes: set[str] = field(default_factory=set)
    holders: set[str] = field(default_factory=set)

    @property
    def _is_layer(self) -> bool:
        return bool(self.function.owner) and self.function.node.name in _FORWARD

    def look(self, view: _View) -> None:
        """Note the attributes of a file that hold a layer; NotProven where one goes anywhere else."""
        for node in view.around:
            if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                continue
            if self._is_layer and isinstance(node, ast.Attribute) and node.attr in _HOOKS:
                raise NotProven("a hook may write into what the layer returns")
            if view.file.resolve_global(node) in self.known:
                self._look_at(view, node)

    def _look_at(self, view: _View, node: ast.AST) -> None:
        parent = view.around[node]
        called = isinstance(parent, ast.Call) and parent.func is node
        if not self.function.owner and called:
            return
        if isinstance(parent, (ast.Attribute, ast.ClassDef)) or _asks(parent, node) or _in_annotation(view, node):
            return
        if called and self.function.owner:
            holder = self._holder(view, parent)
            if holder is not None or not self._is_layer:
                self.attributes.update({holder} if holder is not None else ())
                if (inside := view.inside.get(node)) is not None:
                    self.holders.add(f"{view.file.evaluator.scope.module}.{inside.owner}")
                return
        raise NotProven(f"who gets `{short(node)}` may write into what it returns")

    def _holder(self, view: _View, made: ast.AST) -> str | None:
        """`part` where a new layer becomes `self.part`, or a part of what does."""
        node = made
        while node in view.around and not isinstance(node, ast.stmt):
            node = view.around[node]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                if node.func.attr in {"append", "extend", "insert"} and is_attribute(node.func.value, "self"):
                    return str(last_name(node.func.value))
                if node.func.attr in {"add_module", "register_module"} and isinstance(name, str):
                    return name
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        return next((each.attr for each in targets if is_attribute(each, "self")), None)

    def calls(self, view: _View) -> Iterator[tuple[Definition, ast.Call]]:
        """The calls in a file; NotProven where what may be called goes anywhere else."""
        names = {*_FORWARD} if self._is_layer else {self.function.node.name}
        for node in view.around:
            if not self.function.owner:
                if isinstance(node, ast.Call) and view.file.resolve_global(node.func) in self.known:
                    yield from self._call(view, node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if node.attr in names and not (self._is_layer and not self._may_hold(view, node.value)):
                    yield from self._reached(view, node)
                elif self._is_layer and node.attr in self.attributes:
                    yield from self._of_attribute(view, node)
                elif self._is_layer and node.attr in _PARTS:
                    yield from self._of_parts(view, node)

    def _may_hold(self, view: _View, node: ast.expr) -> bool:
        """False for `self.other.forward`, where another layer is."""
        name = dotted(node)
        if isinstance(node, ast.Call):
            return is_name(node.func, "super") or view.file.resolve_global(node.func) in self.known
        if name is None or "." not in name or view.file.resolve_global(node) in self.known:
            return True
        return name.rpartition(".")[2] in self.attributes

    def _of_attribute(self, view: _View, node: ast.expr) -> Iterator[tuple[Definition, ast.Call]]:
        """What is done with `self.part`: it is called, or each of its elements is."""
        parent = view.around[node]
        while isinstance(parent, ast.Subscript) and parent.value is node:
            node, parent = parent, view.around[parent]
        if isinstance(parent, ast.Attribute) and parent.attr in _ELEMENTS and isinstance(view.around[parent], ast.Call):
            node = cast("ast.expr", view.around[parent])  # of an `nn.ModuleDict`
            parent = view.around[node]
        if isinstance(parent, ast.Call) and last_name(parent.func) in _GIVES_IN_TURN and parent.func is not node:
            node, parent = parent, view.around[parent]
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)) and parent.iter is node:
            for part in _read_in_rounds(view, parent):
                yield from self._reached(view, part)
        else:
            yield from self._reached(view, node)

    def _of_parts(self, view: _View, node: ast.expr) -> Iterator[tuple[Definition, ast.Call]]:
        """The calls of `part` in `for part in self.children():`, whatever else is done with it."""
        call = view.around[node]
        loop = view.around[call]
        while isinstance(loop, ast.Call) and last_name(loop.func) in _GIVES_IN_TURN:
            call, loop = loop, view.around[loop]
        if isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)) and loop.iter is call:
            for part in _read_in_rounds(view, loop):
                called = view.around[part]
                if isinstance(called, ast.Call) and called.func is part:
                    yield from self._call(view, called)

    def _reached(self, view: _View, node: ast.expr) -> Iterator[tuple[Definition, ast.Call]]:
        """The call of what a node spells."""
        parent = view.around[node]
        if isinstance(parent, ast.Call) and parent.func is node:
            yield from self._call(view, parent)
        elif not (isinstance(parent, _READS) or _asks(parent, node)):
            raise NotProven(f"who gets `{short(node)}` may write into what it returns")

    def _call(self, view: _View, call: ast.Call) -> Iterator[tuple[Definition, ast.Call]]:
        caller = view.inside.get(call)
        if caller is not None:
            yield caller, call


def _read_in_rounds(view: _View, loop: ast.For | ast.AsyncFor | ast.comprehension) -> Iterator[ast.Name]:
    """Where the variables of a loop are read in the function around it."""
    names = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    caller = view.inside.get(loop.iter)
    for part in walk(caller.node) if caller is not None else ():
        if isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load):
            yield part


def _asks(parent: ast.AST, node: ast.AST) -> bool:
    """True for `isinstance(layer, Part)` and `type(layer) is Part`."""
    given = isinstance(parent, ast.Call) and parent.func is not node and last_name(parent.func) in _ASKS
    return given or isinstance(parent, ast.Compare)


def _in_annotation(view: _View, node: ast.AST) -> bool:
    """True for a class that an annotation names."""
    while node in view.around and not isinstance(node, ast.stmt):
        parent = view.around[node]
        if isinstance(parent, ast.arg) or getattr(parent, "annotation", None) is node:
            return True
        if getattr(parent, "returns", None) is node:
            return True
        node = parent
    return False
