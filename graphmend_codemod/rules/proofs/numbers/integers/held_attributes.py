"""Integers that a constructor keeps in 0-dim tensors, with the Python number that each of them has.

The number is said in words that any method can say: attributes of the instance and sizes of its convolutions. Nothing
in the project may change either; what initialises weights may write the same number again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import (
    given_by_name,
    has_stars,
    is_attribute,
    is_literal,
    is_name,
    is_within,
    last_name,
    only_target,
    stores_name,
)
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.project.index.families import BUFFERS
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.kept_attributes import changes, foreign, strangers
from graphmend_codemod.rules.proofs.numbers.integers.held import Held
from graphmend_codemod.rules.proofs.numbers.integers.held_numbers import HeldNumbers

SUFFIX = "_as_int"
_OF_LAYERS = frozenset({"kernel_size", "stride", "dilation"})
_INTERCEPTS = ("__setattr__", "__getattribute__", "__getattr__", "register_buffer")
_SET_TO = frozenset({"constant_", "copy_", "fill_"})


class _Store(NamedTuple):
    """A statement of the constructor that sets an attribute; `loaded` where a state dict may set it again."""

    statement: ast.stmt
    value: ast.expr
    buffer: bool = False
    loaded: bool = False


class HeldAttributes:
    """The integer tensors that the class around a site keeps as attributes; `methods` are to be written, by name."""

    def __init__(self, site: Site) -> None:
        self.site = site.with_env({})
        self.tree = tree_of(site.source.text)
        name, _, _ = site.function.partition(".")
        classes = (each for each in self.tree.body if isinstance(each, ast.ClassDef) and each.name == name)
        self.owner = next(classes, None) if "." in site.function else None
        inside = self.owner.body if self.owner is not None else []
        made = [each for each in inside if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        self.constructor = made[0] if len(made) == 1 else None
        self.methods: dict[str, str] = {}

    def number(self, name: str) -> Held | None:
        """The number of a tensor; None where the constructor makes none, NotProven where it may not stay that."""
        held = self.made(name)
        if held is None or self.owner is None:
            return None
        if self.site.evaluator.scope.is_local(self.owner.name):
            raise NotProven(name_taken(self.owner.name))
        reason = next(self._why_not(name, held), None)
        if reason is not None:
            raise NotProven(reason)
        method = f"_{name}{SUFFIX}"
        self.methods[method] = held.text
        own = [each for each in _own_attributes(held.text) if f"self.{each}." not in held.text]
        asked = (f"type(self) is {self.owner.name}", *(f"type(self.{each}) is int" for each in own))
        return Held(f"self.{method}()", asked=asked)

    def is_buffer(self, name: str) -> bool:
        """True for a tensor that moves with the module from device to device."""
        return any(each.buffer for each in self.stores(name))

    def made(self, name: str) -> Held | None:
        """What the constructor makes an attribute of, in words of the instance."""
        stores = self.stores(name)
        if not stores or self.constructor is None:
            return None
        read = _Constructed(self, self.constructor)
        held = read.held(stores[0].value, stores[0].statement, 0)
        if held is None or not held.tensor:
            return None
        if read.reason is not None:
            raise NotProven(read.reason)
        return held

    def stores(self, name: str) -> list[_Store]:
        """The statements of the constructor that set an attribute, in any case."""
        body = self.constructor.body if self.constructor else ()
        return [found for each in body if (found := _stored(self.site, each, name))]

    def is_stored_once(self, name: str) -> bool:
        """True for an attribute that the constructor sets once, in any case."""
        parts = walk(self.constructor) if self.constructor is not None else ()
        return len(self.stores(name)) == sum(is_attribute(part, "self", name) and _is_set(part) for part in parts) == 1

    def is_convolution(self, name: str) -> bool:
        """True for an attribute that the constructor makes a convolution of torch."""
        made = [each.value for each in self.stores(name)]
        return bool(made) and all(
            isinstance(each, ast.Call) and (self.site.resolve_global(each.func) or "").startswith("torch.nn.Conv")
            for each in made
        )

    def _why_not(self, name: str, held: Held) -> Iterator[str]:
        assert self.owner is not None
        assert self.constructor is not None
        stores = self.stores(name)
        if len(stores) > 1:
            yield f"`{name}` is created twice"
        if stores[0].loaded:
            yield f"the buffer `{name}` may be loaded with another number"
        yield from changes(name, [stores[0].statement], self.owner, self.tree)
        for each in _own_attributes(held.text):
            yield from changes(each, [self.constructor], self.owner, self.tree)
        yield from self._other_sizes(held)
        yield from self._intercepted([name, *_own_attributes(held.text)])
        yield from self._given_again(name, held)
        yield from self._elsewhere([name, *_own_attributes(held.text)])
        yield from self._inherited([name, *_own_attributes(held.text)])

    def _other_sizes(self, held: Held) -> Iterator[str]:
        """Why a convolution may have another size by now than the one that the number was made of."""
        sizes = {part.attr for part in walk(ast.parse(held.text)) if isinstance(part, ast.Attribute)} & _OF_LAYERS
        for part in walk(self.tree) if sizes else ():
            stored = isinstance(part, ast.Attribute) and part.attr in sizes and _is_set(part)
            if stored and not is_name(part.value, "self"):  # type: ignore[attr-defined]
                yield f"`{short(part)}` is assigned again"
        for name in sorted(sizes):
            for path, write in self.site.evaluator.scope.index.writers(name):
                if path != self.site.summary.path and write.how == "assigned":
                    yield f"`{write.receiver}.{name}` is assigned in {path}"

    def _intercepted(self, names: list[str]) -> Iterator[str]:
        """Why the class may keep another value than the constructor assigns, or tell one."""
        assert self.owner is not None
        facts = self.site.evaluator.scope.index.class_facts(f"{self.site.summary.name}.{self.owner.name}")
        for each in (*names, *_INTERCEPTS) if facts is not None else ():
            if each in facts.methods:  # type: ignore[union-attr]
                what = "a method" if each in _INTERCEPTS else "a property"
                yield f"`{each}` is {what} of the class, which may tell another number"
        bodies = [each.body for each in walk(self.tree) if isinstance(each, ast.ClassDef)]
        for part in (part for body in bodies for part in body):
            target, value = only_target(part), getattr(part, "value", None)
            if isinstance(target, ast.Name) and target.id in names and not isinstance(value, ast.Constant):
                yield f"`{target.id} = ...` of a class may be a descriptor, which may tell another number"

    def _given_again(self, name: str, held: Held) -> Iterator[str]:
        """Why `init.constant_(module.stride, n)` of the module may write another number than the constructor did."""
        assert self.owner is not None
        for call, branch in initialised(self.tree).get(name, ()):
            receiver = call.args[0].value  # type: ignore[attr-defined]
            asked = branch.test.args[1] if branch is not None else None  # type: ignore[attr-defined]
            if is_name(receiver, "self") and id(call) in foreign(self.owner, self.tree):
                continue
            if isinstance(asked, ast.Name) and asked.id != self.owner.name and self._is_unrelated(asked.id):
                continue
            if branch is None or self._written(branch, call) != held.text:
                yield f"`{short(call)}` may write another number"

    def _is_unrelated(self, name: str) -> bool:
        """True for a class of the module that is neither the owner nor, as far as the module tells, a base of it."""
        found = next((each for each in self.tree.body if isinstance(each, ast.ClassDef) and each.name == name), None)
        return found is not None and self.owner in strangers(found, self.tree)

    def _written(self, branch: ast.If, call: ast.Call) -> str | None:
        """The number that a call of a branch writes, in words of the instance; None where it is not known."""
        receiver = branch.test.args[0].id  # type: ignore[attr-defined]
        direct = [each for each in branch.body if getattr(each, "value", None) is call]
        if not direct or last_name(call.func) not in _SET_TO or len(call.args) != 2 or call.keywords:
            return None
        above = [ast.unparse(each) for each in branch.body if each.lineno <= call.lineno]
        module = ast.parse("def _(self):\n" + "\n".join(f"    {line}" for each in above for line in each.split("\n")))
        function = module.body[0]
        assert isinstance(function, ast.FunctionDef)
        for part in walk(function):
            if is_name(part, receiver):
                part.id = "self"
        last = function.body[-1]
        plain = all(isinstance(each, (ast.Assign, ast.Expr)) for each in function.body)
        read = _Constructed(self, function)
        held = read.held(last.value.args[1], last, 0) if plain else None  # type: ignore[attr-defined]
        return held.text if held is not None and read.reason is None else None

    def _elsewhere(self, names: list[str]) -> Iterator[str]:
        """Why other files may give one of the attributes another value."""
        assert self.owner is not None
        index, own = self.site.evaluator.scope.index, f"{self.site.summary.name}.{self.owner.name}"
        data = [(path, each) for path, each in index.writers("data") if path != self.site.summary.path]
        for name in dict.fromkeys(names):
            for path, write in index.writers(name):
                if path != self.site.summary.path and not self._is_of_another(own, write.of):
                    yield f"`{'.'.join(filter(None, (write.receiver, name)))}` is {write.how} in {path}"
            for path, write in data:
                if write.receiver.rpartition(".")[2] == name:
                    yield f"`{write.receiver}.data` is {write.how} in {path}"

    def _inherited(self, names: list[str]) -> Iterator[str]:
        """Why classes of other files, from which the owner inherits, may give one of the attributes another value."""
        assert self.owner is not None
        index = self.site.evaluator.scope.index
        todo, seen = [f"{self.site.summary.name}.{self.owner.name}"], set[str]()
        while todo:
            facts = index.class_facts(qualified := todo.pop())
            if facts is None or qualified in seen:
                continue
            seen.add(qualified)
            todo += facts.bases
            found = index.home(qualified)
            if found is None or found[0].module == self.site.summary.name:
                continue
            bodies = (part for part in walk(tree_of(found[0].text)) if isinstance(part, ast.ClassDef))
            for base in (each for each in bodies if each.name == found[1].rpartition(".")[2]):
                for name in dict.fromkeys(names):
                    yield from changes(name, (), base, _alone(base))

    def _is_of_another(self, own: str, asked: str) -> bool:
        """True for a class of the project that is no base of the owner: the compile path asks for the owner itself, so
        what happens to its heirs is nothing to it."""
        index = self.site.evaluator.scope.index
        if not asked or index.class_facts(asked) is None:
            return False
        return own != asked and own not in index.heirs(asked)


class _Constructed(HeldNumbers):
    """What names of a constructor hold, without copies: in words of the instance."""

    def __init__(self, attributes: HeldAttributes, function: ast.FunctionDef) -> None:
        super().__init__(attributes.site, function)
        self._attributes = attributes
        self._inlined = True
        self.reason: str | None = None

    def _named(self, node: ast.Name, at: ast.stmt, depth: int) -> Held | None:
        bound = self.blocks.binding_before(at, node.id)
        if bound is not None and len(bound.targets) == 1:
            return self.held(bound.value, bound, depth)
        parameters = [*self.function.args.posonlyargs, *self.function.args.args, *self.function.args.kwonlyargs]
        whole = any(each.arg == node.id and is_name(each.annotation, "int") for each in parameters)
        again = any(stores_name(part, node.id) for part in walk(self.function))
        for part in self.function.body if whole and not again else ():
            target = only_target(part)
            kept = is_attribute(target, "self") and is_name(part.value, node.id)  # type: ignore[attr-defined]
            if kept and isinstance(target, ast.Attribute) and self._attributes.is_stored_once(target.attr):
                return Held(f"self.{target.attr}", tensor=False)
        known = f"`{node.id}` is known to be a Python integer only in the constructor"
        return self._unknown(node, known if whole else "")

    def _unknown(self, node: ast.expr, reason: str = "") -> Held:
        self.reason = self.reason or reason or f"cannot infer that `{short(node)}` is a Python integer"
        return Held(ast.unparse(node), tensor=False, sure=False)

    def _attribute(self, node: ast.Attribute) -> Held | None:
        return self._attributes.made(node.attr) if is_attribute(node, "self") else None

    def _leaf(self, node: ast.expr, at: ast.stmt) -> Held:
        size = node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
        of_layer = isinstance(size, ast.Attribute) and size.attr in _OF_LAYERS and is_attribute(size.value, "self")
        if of_layer and self._attributes.is_convolution(size.value.attr):  # type: ignore[union-attr]
            return Held(ast.unparse(node), tensor=False)
        return self._unknown(node)


@lru_cache(maxsize=8)
def _alone(owner: ast.ClassDef) -> ast.Module:
    """A module that holds nothing but a class."""
    return ast.Module([owner], [])


def _is_set(node: ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _own_attributes(text: str) -> list[str]:
    """The attributes of the instance in an expression: `conv` of `self.conv.stride[0]`."""
    parts = walk_in_layers(ast.parse(text, mode="eval"))
    return list(dict.fromkeys(part.attr for part in parts if is_attribute(part, "self")))


def _stored(site: Site, statement: ast.stmt, name: str) -> _Store | None:
    """How `self.name = value`, `= nn.Buffer(value)` or `self.register_buffer("name", value)` sets an attribute."""
    target = only_target(statement)
    if is_attribute(target, "self", name):
        assigned: ast.expr = statement.value  # type: ignore[attr-defined]
        if isinstance(assigned, ast.Call) and site.resolve_global(assigned.func) in BUFFERS and not has_stars(assigned):
            return _registered(statement, given_by_name(assigned, ("data", "persistent")), "data")
        return _Store(statement, assigned)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not is_attribute(call.func, "self", "register_buffer") or has_stars(call):
        return None
    given = given_by_name(call, ("name", "tensor", "persistent"))
    return _registered(statement, given, "tensor") if is_literal(given.get("name"), name) else None


def _registered(statement: ast.stmt, given: Mapping[str, ast.expr], tensor: str) -> _Store | None:
    value, persistent = given.get(tensor), given.get("persistent")
    if value is None:
        return None
    return _Store(statement, value, buffer=True, loaded=not is_literal(persistent, False))


# Calls that write into an attribute of a module after its constructor: `init.zeros_(module.scale)`


@lru_cache(maxsize=2)
def initialised(tree: ast.Module) -> Mapping[str, list[tuple[ast.Call, ast.If | None]]]:
    """Calls such as `init.zeros_(module.scale)` by attribute, with the innermost `if isinstance(module, Class):`."""
    found: dict[str, list[tuple[ast.Call, ast.If | None]]] = {}
    asked = [part for part in walk(tree) if isinstance(part, ast.If) and _asks_class(part.test)]
    for call in (part for part in walk(tree) if isinstance(part, ast.Call) and part.args):
        given, name = call.args[0], last_name(call.func)
        if not isinstance(given, ast.Attribute) or name is None or name[-1] != "_" or name[-2:] == "__":
            continue
        around = [each for each in asked if is_within(call, ast.Module(each.body, []))]
        branch = max(around, key=lambda each: each.lineno, default=None)
        about = branch.test.args[0] if branch is not None else None  # type: ignore[attr-defined]
        known = about is not None and isinstance(given.value, ast.Name) and is_name(about, given.value.id)
        parts = (part for each in (branch.body if known and branch is not None else ()) for part in walk(each))
        known = known and not any(stores_name(part, given.value.id) for part in parts)  # type: ignore[attr-defined]
        found.setdefault(given.attr, []).append((call, branch if known else None))
    return found


def _asks_class(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and is_name(test.func, "isinstance") and len(test.args) == 2
