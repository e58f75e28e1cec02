"""Integers that a constructor keeps in 0-dim tensors, with the Python number that each of them has."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import (
    given_by_name,
    is_attribute,
    is_literal,
    is_name,
    last_name,
)
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS
from graphmend_codemod.rules.proofs.sizes.initialised_again import initialised

SUFFIX = "_as_int"
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_OF_LAYERS = frozenset({"kernel_size", "stride", "dilation"})
_ALL_BUFFERS = frozenset({"buffers", "named_buffers", "_buffers"})
_SET_TO = frozenset({"constant_", "copy_", "fill_"})
_SETS = frozenset({"register_buffer", "setattr", "__setattr__", "delattr"})
Resolve = Callable[[ast.expr], str | None]


@dataclass(frozen=True)
class Kept:
    """An integer tensor that the constructor keeps as an attribute.

    `number` is an expression for its value in any method. `buffer` tells that it moves with the module from device to
    device. `reason` says why the number is not known to be the tensor's.
    """

    number: str
    buffer: bool
    reason: str | None = None


class Integers:
    """The integer tensors that a class keeps as attributes, by name."""

    def __init__(self, owner: ast.ClassDef, tree: ast.Module, resolve: Resolve) -> None:
        self.kept: dict[str, Kept] = {}
        self._resolve = resolve
        self._tensors: dict[str, ast.expr] = {}
        self._numbers: dict[str, ast.expr] = {}
        self._layers: set[str] = set()
        self._reasons: dict[str, str | None] = {}
        self._statements: dict[str, ast.stmt] = {}
        constructors = [each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        self.constructor = constructors[0] if len(constructors) == 1 else None
        if self.constructor is not None:
            self._construct(self.constructor)
        for name, kept in self.kept.items():
            reasons = _changes(name, [self._statements[name]], owner, tree)
            reason = kept.reason or next(reasons, None) or self._unsteady(kept.number, owner, tree)
            self.kept[name] = replace(kept, reason=reason or self._given_again(name, owner, tree))

    def _construct(self, node: ast.FunctionDef) -> None:
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if getattr(each.annotation, "id", "") == "int":
                self._numbers[each.arg] = _own(node, each.arg) or ast.Name(each.arg, ast.Load())
        for statement in node.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement, statement.targets[0])
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._register(statement, statement.value)
            else:
                self._forget(statement)

    def _forget(self, node: ast.AST) -> None:
        for part in walk(node):
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                self._numbers.pop(part.id, None)
                self._tensors.pop(part.id, None)

    def _assign(self, statement: ast.Assign, target: ast.expr) -> None:
        value, attribute = statement.value, own_attribute(target)
        number, tensor = self._number(value), self._tensor(value)
        if attribute is not None:
            if isinstance(value, ast.Call) and (self._resolve(value.func) or "").startswith("torch.nn.Conv"):
                self._layers.add(attribute)
            if tensor is not None:
                self._keep(attribute, statement, value, tensor, buffer=False)
            return
        reason = self._why_not(value)
        self._forget(target)
        if isinstance(target, ast.Name) and number is not None:
            self._numbers[target.id] = number
        elif isinstance(target, ast.Name) and tensor is not None:
            self._tensors[target.id] = tensor
            self._reasons[target.id] = reason

    def _register(self, statement: ast.Expr, call: ast.Call) -> None:
        if own_attribute(call.func) != "register_buffer" or any(isinstance(each, ast.Starred) for each in call.args):
            return
        given = given_by_name(call, ("name", "tensor", "persistent"))
        name, value, persistent = given.get("name"), given.get("tensor"), given.get("persistent")
        tensor = self._tensor(value) if value is not None else None
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or value is None or tensor is None:
            return
        passing = isinstance(persistent, ast.Constant) and persistent.value is False
        loaded = None if passing else f"the buffer `{name.value}` may be loaded with another number"
        self._keep(name.value, statement, value, tensor, buffer=True, reason=loaded)

    def _keep(
        self,
        name: str,
        statement: ast.stmt,
        value: ast.expr,
        tensor: ast.expr,
        *,
        buffer: bool,
        reason: str | None = None,
    ) -> None:
        if name in self.kept:
            reason = f"`{name}` is created twice"
        self.kept[name] = Kept(ast.unparse(tensor), buffer, reason or self._why_not(value))
        self._statements[name] = statement
        if isinstance(value, ast.Name):
            self._tensors[value.id] = _call(name)

    def _number(self, node: ast.expr) -> ast.expr | None:
        """A Python integer, in words that any method can say where there are such words.

        Known are constants, parameters annotated so, sizes of a convolution, and what they make.
        """
        if isinstance(node, ast.Constant):
            return node if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return self._numbers.get(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
            left, right = self._number(node.left), self._number(node.right)
            return ast.BinOp(left, node.op, right) if left is not None and right is not None else None
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
            return None
        size = node.value
        of_layer = isinstance(size, ast.Attribute) and size.attr in _OF_LAYERS
        return node if of_layer and (own_attribute(size.value) or "") in self._layers else None  # type: ignore[attr-defined]

    def _tensor(self, node: ast.expr) -> ast.expr | None:
        """The number of an integer tensor; None for anything else."""
        made = self._made_of(node)
        if made is not None:
            return self._number(made) or made
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
            tensors = [self._tensor(side) for side in (node.left, node.right)]
            left, right = (
                tensor or self._number(side) for tensor, side in zip(tensors, (node.left, node.right), strict=True)
            )
            return ast.BinOp(left, node.op, right) if any(tensors) and left is not None and right is not None else None
        if isinstance(node, ast.Name):
            return self._tensors.get(node.id)
        name = own_attribute(node)
        return _call(name) if name is not None and name in self.kept else None

    def _given_again(self, name: str, owner: ast.ClassDef, tree: ast.Module) -> str | None:
        """Why `init.constant_(module.stride, n)` of the module may write another number than the constructor did."""
        foreign = _foreign(owner, tree)
        for call, branch in initialised(tree).get(name, ()):
            receiver = call.args[0].value  # type: ignore[attr-defined]
            asked = branch.test.args[1] if branch is not None else None  # type: ignore[attr-defined]
            if is_name(receiver, "self") and id(call) in foreign:
                continue
            if isinstance(asked, ast.Name) and asked.id != owner.name and _is_unrelated(asked.id, owner, tree):
                continue
            plain = last_name(call.func) in _SET_TO and len(call.args) == 2 and not call.keywords
            direct = branch is not None and any(getattr(each, "value", None) is call for each in branch.body)
            given = self._number_behind(branch, call) if branch is not None and plain and direct else None
            if given != self._expanded(_call(name)):
                return f"`{speculation.short(call)}` may write another number"
        return None

    def _number_behind(self, branch: ast.If, call: ast.Call) -> str | None:
        """The number that a call of a branch writes, in words of the instance; None where it is not known."""
        receiver = branch.test.args[0].id  # type: ignore[attr-defined]
        body = [ast.parse(ast.unparse(each)).body[0] for each in branch.body if each.lineno < call.lineno]
        value = ast.parse(ast.unparse(call.args[1]), mode="eval").body
        for part in (part for each in (*body, value) for part in walk(each)):
            if isinstance(part, ast.Name) and part.id == receiver:
                part.id = "self"
        numbers, tensors, self._numbers, self._tensors = self._numbers, self._tensors, {}, {}
        try:
            for each in body:
                if isinstance(each, ast.Assign) and all(isinstance(target, ast.Name) for target in each.targets):
                    self._assign(each, each.targets[0])
                elif not isinstance(each, ast.Expr):
                    return None
            found = self._number(value) or self._tensor(value)
            return None if found is None else self._expanded(found)
        finally:
            self._numbers, self._tensors = numbers, tensors

    def _expanded(self, number: ast.expr) -> str:
        """A number in words of what the constructor was given and of layers, without those of other tensors."""
        text = ast.unparse(number)
        for name in reversed(self.kept):
            text = text.replace(spelled(name), f"({self.kept[name].number})")
        return ast.dump(ast.parse(text, mode="eval"))

    def _unsteady(self, number: str, owner: ast.ClassDef, tree: ast.Module) -> str | None:
        """Why a number may be another one later than it was in the constructor."""
        constructed = [] if self.constructor is None else [self.constructor]
        for part in walk_in_layers(ast.parse(number, mode="eval")):
            if isinstance(part, ast.Name) and part.id != "self":
                return f"`{part.id}` is known to be a Python integer only in the constructor"
            name = own_attribute(part)
            if name is not None and not name.endswith(SUFFIX):
                reason = next(_changes(name, constructed, owner, tree), None)
                if reason is not None:
                    return reason
        return None

    def _made_of(self, node: ast.expr) -> ast.expr | None:
        """`n` for `torch.tensor(n, dtype=torch.int64)`."""
        if not isinstance(node, ast.Call) or self._resolve(node.func) not in TENSOR_MAKERS or len(node.args) != 1:
            return None
        words = {word.arg: word.value for word in node.keywords}
        dtype = words.pop("dtype", None)
        single = isinstance(node.args[0], (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Call, ast.Constant))
        if not single or not words.keys() <= {"device"} or (dtype is None and self._number(node.args[0]) is None):
            return None
        return node.args[0] if dtype is None or self._resolve(dtype) in INT64_NAMES else None

    def _why_not(self, node: ast.expr) -> str | None:
        """Why the number of an integer tensor is not known to be one."""
        made = self._made_of(node)
        if made is not None:
            known = self._number(made) is not None
            return None if known else f"cannot infer that `{speculation.short(made)}` is a Python integer"
        for part in walk(node):
            name = own_attribute(part)
            reason = self.kept[name].reason if name in self.kept else self._reasons.get(getattr(part, "id", ""))
            if reason is not None:
                return reason
        return None


def spelled(name: str) -> str:
    """The call that gives the number of a tensor."""
    return f"self._{name}{SUFFIX}()"


def _call(name: str) -> ast.expr:
    return ast.parse(spelled(name), mode="eval").body


def _own(constructor: ast.FunctionDef, parameter: str) -> ast.expr | None:
    """`self.name` for a parameter that is kept so, and never bound to anything else."""
    names = [part for part in walk(constructor) if is_name(part, parameter)]
    if any(not isinstance(name.ctx, ast.Load) for name in names):
        return None
    for statement in constructor.body:
        if isinstance(statement, ast.Assign) and getattr(statement.value, "id", "") == parameter:
            name = own_attribute(statement.targets[0])
            if name is not None and len(statement.targets) == 1 and not _is_kept_again(constructor, name):
                return ast.parse(f"self.{name}", mode="eval").body
    return None


def _is_kept_again(constructor: ast.FunctionDef, name: str) -> bool:
    stores = [part for part in walk(constructor) if own_attribute(part) == name]
    return sum(not isinstance(part.ctx, ast.Load) for part in stores) != 1  # type: ignore[attr-defined]


def own_attribute(node: ast.AST) -> str | None:
    """`name` for `self.name`; None for any other."""
    if is_attribute(node, "self"):
        return node.attr
    return None


def _changes(name: str, known_in: Iterable[ast.stmt], owner: ast.ClassDef, tree: ast.Module) -> Iterator[str]:
    """Reasons why the attribute may not stay what these statements of the constructor made it."""
    known = {id(part) for statement in known_in for part in walk(statement)}
    others = _foreign(owner, tree)
    for part in _telling(tree):
        if isinstance(part, ast.Attribute):
            own = own_attribute(part) is not None and id(part) in others
            if part.attr in _ALL_BUFFERS:
                yield f"`{speculation.short(part)}` exposes all buffers"
            elif part.attr == f"_{name}{SUFFIX}" and not own:
                yield f"`{part.attr}` is already used for something else"
            elif part.attr == name and not isinstance(part.ctx, ast.Load) and id(part) not in known and not own:
                yield f"`{speculation.short(part)}` is assigned again"
            elif part.attr.endswith("_") and isinstance(part.value, ast.Attribute) and part.value.attr == name:
                yield f"`{speculation.short(part)}` changes it in place"
            elif part.attr == "data" and isinstance(part.value, ast.Attribute) and part.value.attr == name:
                yield f"`{speculation.short(part)}` exposes its data"
        elif isinstance(part, ast.FunctionDef) and part.name == f"_{name}{SUFFIX}" and id(part) not in others:
            yield f"`{part.name}` is already used for something else"
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            if isinstance(part.value, ast.Attribute) and part.value.attr == name:
                yield f"`{speculation.short(part)}` is assigned"
        elif isinstance(part, ast.Call) and id(part) not in known and id(part) not in others:
            called = getattr(part.func, "attr", getattr(part.func, "id", ""))
            texts = [each for each in part.args if is_literal(each, name)]
            if called in _SETS and (texts or not all(isinstance(each, ast.Constant) for each in _named(part))):
                yield f"`{speculation.short(part)}` assigns it again"
    for attribute, where, node in _written_by_name(tree):
        if attribute == name and id(where) not in others:
            yield f"`{speculation.short(node)}` changes it in place"


def _named(call: ast.Call) -> list[ast.expr]:
    """The name that `setattr(module, name, value)` and `module.register_buffer(name, value)` are given."""
    first = 1 if isinstance(call.func, ast.Name) else 0
    return [*call.args[first : first + 1], *(word.value for word in call.keywords if word.arg == "name")]


@lru_cache(maxsize=2)
def _written_by_name(tree: ast.Module) -> list[tuple[str, ast.AST, ast.AST]]:
    """Attributes whose tensors are written into by another name, or as `out`: each with the nodes that say so."""
    found: list[tuple[str, ast.AST, ast.AST]] = []
    for function in (part for part in walk(tree) if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))):
        names: dict[str, list[tuple[str, ast.AST]]] = {}
        for part in walk(function):
            value = part.value if isinstance(part, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
            if isinstance(value, ast.Attribute):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]  # type: ignore[attr-defined]
                for each in targets:
                    names.setdefault(getattr(each, "id", ""), []).append((value.attr, value))
        for part in walk(function):
            written = _written(part)
            if isinstance(written, ast.Attribute):
                found.append((written.attr, written, part))
            elif isinstance(written, ast.Name):
                found += [(attribute, value, part) for attribute, value in names.get(written.id, ())]
    return found


def _written(node: ast.AST) -> ast.expr | None:
    """The name that `w += 1`, `w[0] = 1` and `w.add_(1)` write into, and what `f(x, out=w)` does."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.target, ast.Name) else None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.keyword):
        return node.value if node.arg == "out" else None
    if isinstance(node, ast.Attribute) and (node.attr == "data" or (node.attr.endswith("_") and node.attr[0] != "_")):
        return node.value if isinstance(node.value, ast.Name) else None
    return None


@lru_cache(maxsize=2)
def _telling(tree: ast.Module) -> list[ast.AST]:
    """The nodes of a module that may change an attribute, or give one a meaning: few, and asked for each attribute."""
    return [part for part in walk(tree) if _may_tell(part)]


def _may_tell(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        named = node.attr in _ALL_BUFFERS or node.attr.endswith(SUFFIX) or not isinstance(node.ctx, ast.Load)
        return named or (isinstance(node.value, ast.Attribute) and (node.attr[-1] == "_" or node.attr == "data"))
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", getattr(node.func, "id", "")) in _SETS
    return isinstance(node, ast.Subscript) or (isinstance(node, ast.FunctionDef) and node.name.endswith(SUFFIX))


def _is_unrelated(name: str, owner: ast.ClassDef, tree: ast.Module) -> bool:
    """True for a class of the module that is neither the owner nor, as far as the module tells, a base of it."""
    found = next((each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name), None)
    return found is not None and owner in strangers(found, tree)


@lru_cache(maxsize=8)
def _foreign(owner: ast.ClassDef, tree: ast.Module) -> frozenset[int]:
    """The nodes inside of classes that have nothing to do with a class, by id."""
    return frozenset(id(part) for other in strangers(owner, tree) for part in walk(other))


def strangers(owner: ast.ClassDef, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of the module that are neither the class nor, as far as their bases tell, subclasses of it."""
    related = {owner.name}
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    for _ in classes:
        for each in classes:
            bases = {part.id for base in each.bases for part in walk(base) if isinstance(part, ast.Name)}
            if not related.isdisjoint(bases):
                related.add(each.name)
    return [each for each in classes if each.name not in related]
