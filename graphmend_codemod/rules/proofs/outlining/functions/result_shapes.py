"""The part of a function that makes tensors like its results, without what depends on data.

It is cut out of the author's own statements, from the end to the beginning: what binds a name that is needed stays, if
torch can run it without data; what only writes into tensors, or binds others of the same shape and dtype, falls away.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_name, is_not, names_bound
from graphmend_codemod.analysis.scope import FunctionNode, parameters, walk, walk_in_layers
from graphmend_codemod.analysis.values import BOOL, Value
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import def_line, nested
from graphmend_codemod.rules.proofs.outlining.effects.eager_parts import is_compile_path
from graphmend_codemod.rules.proofs.outlining.functions.shape_parts import (
    READ_DATA,
    asks_tensor,
    assignments_in,
    head_of,
    names_changed,
    names_filled,
    one_element,
    only_in_place,
    reads_data,
)
from graphmend_codemod.rules.proofs.outlining.statements.ctc_losses import ctc_loss
from graphmend_codemod.rules.proofs.substitution import exchanged
from graphmend_codemod.rules.proofs.untraced.evidence import is_container

_SIZED = torch_api.name_set("repeat expand view reshape narrow new_zeros new_ones new_empty new_full")
_REDUCES = torch_api.name_set("sum mean prod any all max min amax amin std var norm median")
_BUILTINS = torch_api.name_set("len int float min max abs isinstance tuple list range sum round bool")
_ELEMENTWISE = torch_api.name_set(
    """log exp sqrt abs neg square sigmoid tanh relu clamp clip pow log1p expm1 reciprocal rsqrt float double to cumsum
    cumprod softmax log_softmax"""
)


class ResultShapes:
    """Cuts the statements of `function` down to its results; `statements` are what is left."""

    def __init__(self, site: Site, function: FunctionNode, body: Sequence[ast.stmt]) -> None:
        self._site = site
        self._function = function
        self.results = 0
        self.smooth = False
        """Whether a result may need a gradient: it is not known to hold integers or bools."""
        self._unsized: set[str] = set()
        self._containers = {
            name for each in assignments_in(function) if is_container(each.value) for name in names_bound(each)
        }
        self._find_unsized()
        needed: set[str] = set()
        self.statements = self._block(body, needed)
        if not self.results:
            raise NotProven("the function returns nothing")

    @property
    def nested(self) -> str:
        """What the decorator of an operator with several results says of them."""
        return nested(self.results)

    def lines(self, as_list: bool = True) -> list[str]:
        """The statements as text, with the results in a list or as the function gives them."""
        for node in (part for each in self.statements for part in walk(each) if not as_list):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.List):
                given = node.value.elts
                node.value = given[0] if len(given) == 1 else ast.Tuple(given, ast.Load())
        texts = [ast.unparse(ast.fix_missing_locations(each)) for each in self.statements]
        return [f"    {line}" for each in texts for line in each.splitlines()]

    # sizes that data decides

    def _find_unsized(self) -> None:
        """Names of tensors of one dimension that is as long as data says; one element stands in for them."""
        for node in sorted(assignments_in(self._function), key=lambda each: each.lineno):
            if self._unique(node) is not None:
                target = node.targets[0]
                for place, each in enumerate(elements_of(target)):
                    if isinstance(each, ast.Name) and place != 1:
                        self._unsized.add(each.id)
            elif self._stand_in(node.value) is not None or self._is_unsized(node.value):
                self._unsized |= names_bound(node)

    def _is_unsized(self, node: ast.expr) -> bool:
        fine = self._settled(node)
        return any(
            isinstance(part, ast.Name) and part.id in self._unsized and id(part) not in fine
            for part in walk_in_layers(node)
        )

    def _stand_in(self, node: ast.expr) -> ast.expr | None:
        """One element of what a mask chooses from, for `x[mask]`; None for all other expressions."""
        if not isinstance(node, ast.Subscript) or not self._is_mask(node.slice):
            return None
        while isinstance(node, ast.Subscript):
            node = node.value
        return one_element(node)

    def _exchanged(self, node: ast.expr) -> ast.expr:
        """The expression with one element in place of `x[mask]` wherever that may be of any length."""
        fine = self._settled(node)
        parts = (part for part in walk(node) if id(part) in fine and isinstance(part, ast.Subscript))
        instead = {id(part): made for part in parts if (made := self._stand_in(part)) is not None}
        calls = (part for part in walk(node) if isinstance(part, ast.Call))
        instead |= {id(part): made for part in calls if (made := ctc_loss(self._site, part)) is not None}
        return exchanged(node, lambda part: instead.get(id(part))) if instead else node

    def _unique(self, node: ast.stmt) -> list[ast.stmt] | None:
        """What stands in for the results of `torch.unique(x, return_inverse=True)`; None for all others."""
        call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            return None
        words = {word.arg: word.value for word in call.keywords}
        flags = [words.pop(name, None) for name in ("return_inverse", "return_counts")]
        words.pop("sorted", None)
        known = torch_api.torch_function(self._site.resolve_global(call.func)) == "unique" and not words
        if not known or not all(isinstance(flag, ast.Constant) and flag.value is True for flag in flags):
            return None
        target = node.targets[0]  # type: ignore[attr-defined]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 3:
            return None
        empty = ast.parse(f"torch.empty_like({ast.unparse(call.args[0])}, dtype=torch.int64)", mode="eval").body
        values = [one_element(call.args[0]), empty, one_element(empty)]
        return [ast.Assign([each], value) for each, value in zip(target.elts, values, strict=True)]

    def _is_mask(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Compare)
        assigned = assignments_in(self._function)
        bound = [each.value for each in assigned if any(is_name(target, node.id) for target in each.targets)]
        return bool(bound) and all(map(self._makes_mask, bound))

    def _makes_mask(self, node: ast.expr) -> bool:
        site = self._site
        if isinstance(node, ast.Compare) or site.value(node).dtype == BOOL:
            return True
        if not isinstance(node, ast.Call):
            return False
        given = [word.value for word in node.keywords if word.arg == "dtype"]
        if any(site.resolve_global(each) == "torch.bool" for each in given):
            return True
        return isinstance(node.func, ast.Attribute) and node.func.attr in {"ne", "eq", "gt", "lt", "ge", "le"}

    # statements

    def _block(self, body: Sequence[ast.stmt], needed: set[str]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for statement in reversed(body):
            kept[:0] = self._statement(statement, needed)
        return kept

    def _statement(self, node: ast.stmt, needed: set[str]) -> list[ast.stmt]:
        if isinstance(node, ast.Return):
            needed.clear()
            return [self._return(node, needed)]
        if isinstance(node, ast.With):
            return self._block(node.body, needed)
        if isinstance(node, ast.If) and is_compile_path(self._site, node.test):
            return self._block(node.orelse, needed)
        bound = names_bound(node)
        leaves = any(isinstance(part, ast.Return) for part in walk(node))
        if isinstance(node, ast.If) and (leaves or bound & needed) and self._is_static(node.test, node):
            return self._branch(node, needed)
        if leaves:
            raise NotProven(f"a `return` below `{speculation.short(head_of(node))}` depends on data")
        if filled := sorted(needed & (self._containers & names_filled(node) | self._changed(node))):
            raise NotProven(f"the shape of a result may depend on what is put into `{filled[0]}`")
        if not bound & needed:
            return []
        if isinstance(node, ast.Assign):
            return self._assignment(node, needed)
        if isinstance(node, (ast.If, ast.For, ast.While, ast.AugAssign)):
            changed = [name for name in sorted(bound & needed) if not self._keeps_shape(node, name)]
            if not changed:
                return []
            raise NotProven(f"the shape or dtype of `{changed[0]}` may depend on `{speculation.short(head_of(node))}`")
        raise NotProven(f"the shape of a result may depend on `{speculation.short(node)}`")

    def _changed(self, node: ast.stmt) -> set[str]:
        """What is not certainly a tensor, into which a statement puts something."""
        site, scope = self._site.at(node), self._site.evaluator.scope
        names = {each for each in names_changed(node) if scope.is_local(each)}
        return {each for each in names if site is None or not site.value(ast.Name(each, ast.Load())).is_tensor}

    def _return(self, node: ast.Return, needed: set[str]) -> ast.stmt:
        if node.value is None:
            raise NotProven("the function returns nothing")
        values = elements_of(node.value)
        if self.results not in {0, len(values)} or (len(values) == 1 and isinstance(node.value, ast.Tuple)):
            raise NotProven("the function returns one or several results")
        self.results = len(values)
        made = []
        for value in values:
            self._check(value, node)
            if not self._is_tensor(value, node):
                raise NotProven(f"cannot infer that the result `{speculation.short(value)}` is a Tensor")
            inner = self._site.at(node)
            self.note_dtype((inner.value(value).dtype if inner is not None else None) or "")
            made.append(self._exchanged(value))
            needed |= all_names(made[-1])
        return ast.Return(ast.List(made, ast.Load()))

    def note_dtype(self, dtype: str) -> None:
        """Notes that a result is of this dtype, which is empty where it is not known."""
        self.smooth = self.smooth or not dtype.startswith(("torch.int", "torch.uint", "torch.bool"))

    def demand_made(self, name: str) -> None:
        """NotProven where a name that only this code binds may hold anything but a tensor."""
        if not self._is_always_made(name, frozenset()):
            raise NotProven(f"cannot infer that the result `{name}` is a Tensor")

    def _is_tensor(self, value: ast.expr, node: ast.stmt, seen: frozenset[str] = frozenset()) -> bool:
        """True for what is certainly a tensor where `node` runs: an operator returns nothing else."""
        site = self._site.at(node)
        if site is None or site.value(value).is_python:
            return False
        if site.value(value).is_tensor:
            return True
        if isinstance(value, ast.UnaryOp):
            return self._is_tensor(value.operand, node, seen)
        if isinstance(value, ast.BinOp):
            return any(self._is_tensor(side, node, seen) for side in (value.left, value.right))
        if isinstance(value, ast.Subscript):
            return self._is_inverse(value.slice) or self._is_tensor(value.value, node, seen)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            return value.func.attr in torch_api.RETURNS_TENSOR and self._is_tensor(value.func.value, node, seen)
        return isinstance(value, ast.Name) and value.id not in seen and self._is_always_made(value.id, seen)

    def _is_always_made(self, name: str, seen: frozenset[str]) -> bool:
        made = [each for each in assignments_in(self._function) if name in names_bound(each)]
        others = any(each.arg == name for each in parameters(self._function))
        bound = {id(target) for each in made for target in each.targets}
        for part in walk(self._function):
            if isinstance(part, ast.AugAssign):
                bound.add(id(part.target))  # a tensor stays one
            others = others or (is_name(part, name) and isinstance(part.ctx, ast.Store) and id(part) not in bound)
        return not others and bool(made) and all(self._is_made(each, seen | {name}) for each in made)

    def _is_made(self, node: ast.Assign, seen: frozenset[str]) -> bool:
        """True where an assignment gives its one name a tensor."""
        return isinstance(node.targets[0], ast.Name) and self._is_tensor(node.value, node, seen)

    def _branch(self, node: ast.If, needed: set[str]) -> list[ast.stmt]:
        after, other = set(needed), set(needed)
        body, orelse = self._block(node.body, after), self._block(node.orelse, other)
        needed.clear()
        needed |= after | other | all_names(node.test)
        return [ast.If(node.test, body or [ast.Pass()], orelse)]

    def _assignment(self, node: ast.Assign, needed: set[str]) -> list[ast.stmt]:
        made = self._unique(node)
        stand_in = self._stand_in(node.value)
        if made is None:
            made = [ast.Assign(list(node.targets), self._exchanged(node.value) if stand_in is None else stand_in)]
            if stand_in is None:
                self._check(node.value, node, unsized=not names_bound(node).isdisjoint(self._unsized))
        needed -= names_bound(node)
        for each in made:
            needed |= all_names(each.value)  # type: ignore[attr-defined]
        return made

    def _keeps_shape(self, node: ast.stmt, name: str) -> bool:
        """True where `name` is a tensor of one shape and dtype before and after the statement, whatever it does."""
        before, after = self._site.at(node), None
        if before is None:
            return False
        old = before.value(ast.Name(name, ast.Load()))
        if old.is_tensor and only_in_place(node, name):
            return True  # which changes neither
        following = before.following()
        after = self._site.at(following[0]) if following else None
        new: Value | None = None if after is None else after.value(ast.Name(name, ast.Load()))
        return new is not None and old.is_tensor and new.is_tensor and (old.shape, old.dtype) == (new.shape, new.dtype)

    # expressions

    def _is_static(self, node: ast.expr, statement: ast.stmt) -> bool:
        """True for a test that Python decides: it asks for a number, a word, None, a type, or a shape."""
        site = self._site.at(statement)
        if site is None or reads_data(site, node) or self._is_unsized(node):
            return False
        chosen = [part for part in walk(node) if isinstance(part, ast.Subscript) and not self._is_plain(site, part)]
        if chosen or any(asks_tensor(site, part) for part in walk(node)):
            return False
        if isinstance(node, ast.BoolOp):
            return all(self._is_static(part, statement) for part in node.values)
        if is_not(node):
            return self._is_static(node.operand, statement)
        if isinstance(node, ast.Compare):
            if all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
                return True
            sides = [node.left, *node.comparators]
            words = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
            return words or all(site.value(side).is_python for side in sides)
        return site.value(node).is_python

    def _check(self, node: ast.expr, statement: ast.stmt, unsized: bool = False) -> None:
        """NotProven for what the data sizes, or what cannot run without data."""
        site = self._site.reached(statement)
        fine = self._settled(node)
        for part in walk_in_layers(node):
            if isinstance(part, ast.Name) and part.id in self._unsized and id(part) not in fine and not unsized:
                raise NotProven(f"the size of a result depends on data: `{part.id}`")
            if isinstance(part, ast.Subscript) and id(part) not in fine and not self._is_plain(site, part):
                raise NotProven(f"the shape of a result may depend on `{speculation.short(part)}`")
            if isinstance(part, ast.Call) and ctc_loss(self._site, part) is None:
                self._check_call(site, part)
                like = isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_like")
                if unsized and not like and not self._is_elementwise(part):
                    raise NotProven(f"the shape of a result may depend on `{speculation.short(part)}`")
            if isinstance(part, (ast.Lambda, ast.Await, ast.NamedExpr)) or asks_tensor(site, part):
                raise NotProven(f"the shape of a result may depend on `{speculation.short(part)}`")

    def _settled(self, node: ast.expr) -> set[int]:
        """Names, by identity, whose size does not matter: only a sum or mean is taken, or elements by their numbers."""
        found: set[int] = set()
        for part in walk_in_layers(node):
            inner: ast.expr | None = None
            if isinstance(part, ast.Subscript) and self._is_inverse(part.slice):
                inner = part.value
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and not part.args:
                whole = part.func.attr in _REDUCES and not part.keywords
                inner = part.func.value if whole else None
            if inner is not None and self._is_elementwise(inner):
                parts = [each for each in walk_in_layers(inner) if isinstance(each, ast.expr)]
                found |= {id(each) for each in parts if isinstance(each, ast.Name) or self._stand_in(each) is not None}
        return found

    def _is_inverse(self, node: ast.expr) -> bool:
        """True for the numbers that `torch.unique` gives back, which are integers of the shape of what it was given."""
        if not isinstance(node, ast.Name):
            return False
        bound = [each for each in assignments_in(self._function) if node.id in names_bound(each)]
        made = self._unique(bound[0]) if len(bound) == 1 else None
        return made is not None and is_name(made[1].targets[0], node.id)  # type: ignore[attr-defined]

    @staticmethod
    def _is_elementwise(node: ast.expr) -> bool:
        """True where nothing but arithmetic is done to the tensors of an expression."""
        calls = [each for each in walk_in_layers(node) if isinstance(each, ast.Call)]
        return all(isinstance(each.func, ast.Attribute) and each.func.attr in _ELEMENTWISE for each in calls)

    def _is_plain(self, site: Site, node: ast.Subscript) -> bool:
        if site.value(node.value).is_python:
            return True
        parts = elements_of(node.slice)
        return all(
            isinstance(part, (ast.Constant, ast.UnaryOp))
            or (isinstance(part, ast.Slice) and self._is_plain_slice(site, part))
            or site.value(part).is_python
            or self._is_integer(site, part)
            for part in parts
        )

    @staticmethod
    def _is_plain_slice(site: Site, part: ast.Slice) -> bool:
        bounds = [each for each in (part.lower, part.upper, part.step) if each is not None]
        return all(isinstance(each, (ast.Constant, ast.UnaryOp)) or site.value(each).is_python for each in bounds)

    def _is_integer(self, site: Site, part: ast.expr) -> bool:
        """True for an index of integers, which chooses as many elements as it has."""
        value = site.value(part)
        if value.is_tensor and (value.dtype or "").startswith("torch.int"):
            return True
        if isinstance(part, ast.Call) and torch_api.torch_function(site.resolve(part.func)) == "arange":
            return True
        return self._is_inverse(part)

    def _check_call(self, site: Site, call: ast.Call) -> None:
        qualified = site.resolve(call.func)
        name = torch_api.torch_function(qualified)
        if name is None and qualified is None and isinstance(call.func, ast.Attribute):
            name = call.func.attr
        text = speculation.short(call)
        values = [site.value(each) for each in call.args if not isinstance(each, ast.Starred)]
        if name is None:
            builtin = (qualified or "").removeprefix("builtins.")
            plain = builtin in _BUILTINS or (qualified or "").startswith("math.")
            if not plain or any(value.is_tensor for value in values):
                raise NotProven(f"the shape of a result may depend on `{text}`")
            return
        known = name in torch_api.RETURNS_TENSOR or name in torch_api.PYTHON_METHODS or site.value(call).is_python
        if not known or name in READ_DATA or (name == "where" and len(call.args) == 1):
            raise NotProven(f"the shape of a result may depend on `{text}`")
        sized = name in torch_api.CREATION or name in _SIZED
        if sized and not name.endswith("_like") and any(value.is_tensor for value in values[qualified is None :]):
            raise NotProven(f"the shape of a result may depend on `{text}`")


def empty_results(shapes: ResultShapes, name: str, given: Sequence[str]) -> str:
    """The function `name` of what is `given`, which makes tensors like the results, as text."""
    about = '    """Tensors of the shapes and dtypes of the results, for tracing."""'
    return "\n".join([def_line(name, given), about, *shapes.lines()])
