"""Uses of integers that eager mode keeps in a tensor or an array: whether Python integers do as well in each of them.

A value is one number, or several in a list, tuple or range. Every use of it needs a Python number (`reads`), makes
another value of this kind, hands it to the one function that a call can run, or may need the tensor (`reason`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import (
    asks_for_none,
    is_integer,
    is_name,
    is_none,
    is_not,
    is_size,
    listed,
    other_side,
)
from graphmend_codemod.analysis.scope import dotted, parameter_names, parents_in, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls
from graphmend_codemod.rules.proofs.conditions.attribute_tests import test_of_attributes
from graphmend_codemod.rules.proofs.numbers.integers.number_loops import behind, is_table, iterated, loop_around

COMPARED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)
_TESTED = (ast.If, ast.While, ast.IfExp, ast.Assert)
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_SCALED = (ast.Add, ast.Sub, ast.Mult)
_FILLS = frozenset("arange empty eye full linspace ones rand randn zeros".split())
_RESIZE = "torch.nn.functional.interpolate"
_PAD = "torch.nn.functional.pad"
_SIZED = frozenset(
    {
        *(f"torch.{name}" for name in _FILLS),
        _RESIZE,
        "numpy.arange",
        "builtins.int",
        "builtins.range",
    }
)
_METHODS = frozenset(
    """expand narrow new_empty new_full new_ones new_zeros repeat reshape split unflatten view""".split()
)
_MADE = _FILLS | {"cat", "stack"}
_KEEPS = frozenset(
    """abs clone contiguous exp expand flatten float log mean permute prod relu repeat reshape sigmoid sqrt sum t
    transpose unsqueeze view""".split()
)
"""Methods after which a tensor has dimensions still, or the dtype that a number beside it leaves alone."""
_BOUNDS = frozenset({"builtins.max", "builtins.min"})
Parents = Mapping[int, ast.AST]
Resolve = Callable[[ast.expr], "str | None"]


def sizes_given(call: ast.Call, named: str | None) -> list[ast.expr]:
    """What a call takes for sizes, bounds or the width of a padding; `named` is the qualified name of what it runs."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg is not None)]
    if named == _PAD:
        padding = [word.value for word in call.keywords if word.arg == "pad"]
        return [*call.args[1:2], *padding]
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    taken = named in _SIZED if named is not None else method in _METHODS
    return given[named == _RESIZE :] if taken else []


class Read(NamedTuple):
    """A number that has to be a Python number: it bounds a slice, is a size, or decides a test (`where`)."""

    number: ast.expr
    where: ast.AST


@dataclass
class NumberUses:
    """Follows values through the functions that get them.

    `resolve` tells what a dotted name means in the module. The first function binds the name to the numbers in place of
    the tensor. `unless` are tests of the module's own attributes under which a value goes where nobody can follow; they
    are looked for with `outside`. `depth` is 2 where a loop takes rows out of the tensor.
    """

    sure: SureCalls
    resolve: Resolve
    outside: bool = False
    reads: list[Read] = field(default_factory=list)
    unless: list[str] = field(default_factory=list)
    reason: str | None = None
    depth: int = 1
    _first: Definition | None = None
    _length: int | None = None
    _seen: set[tuple[Definition, str, bool, ast.AST | None]] = field(default_factory=set)

    def several(self, function: Definition, name: str, length: int | None = None) -> NumberUses:
        """Follow a tensor of numbers (`length` of them, where that is known) that a function binds to a name."""
        self._first, self._length = function, length
        self._name(function, name, whole=True)
        return self

    def single(self, function: Definition, name: str) -> NumberUses:
        """Follow one number that a function binds to a name, or gets by that name."""
        self._first = function
        self._name(function, name, whole=False)
        return self

    def elements(self, function: Definition, target: ast.expr) -> NumberUses:
        """Follow the numbers that a loop of a function binds to its `target`, or to the names in it."""
        self._first = function
        self._elements(function, target, self._parents(function))
        return self

    @property
    def function(self) -> Definition:
        """The function that the values are followed from."""
        assert self._first is not None
        return self._first

    def conditions(self, site: Site) -> list[str]:
        """What a compile path in that function asks for the calls that were followed; NotProven with `reason`."""
        if self.reason is not None:
            raise NotProven(self.reason)
        certain = CertainCalls(site, self.sure.calls, self.function)
        certain.follow_all(certain.start(), [self.function], self.sure.links)
        return certain.conditions()

    @property
    def slices(self) -> bool:
        """True where a number bounds a slice or is a size."""
        return any(not isinstance(read.where, _TESTED) for read in self.reads)

    @property
    def tests(self) -> list[ast.AST]:
        """The statements and expressions whose test a number decides."""
        return [read.where for read in self.reads if isinstance(read.where, _TESTED)]

    def _parents(self, function: Definition) -> Parents:
        return self.sure.calls.remembered("parents", function.node, lambda: parents_in(function.node))

    def _fail(self, reason: str) -> None:
        self.reason = self.reason or reason

    def _name(self, function: Definition, name: str, *, whole: bool, loop: ast.AST | None = None) -> None:
        """Follow what a name holds; where a `loop` binds it, inside of that and behind it."""
        followed = (function, name, whole, loop)
        if followed in self._seen:
            return
        self._seen.add(followed)
        parents = self._parents(function)
        own, first = {id(node) for node in walk_scope(function.node)}, function is self._first
        if not (whole and first) and not _is_bound_once(loop or function.node, name, parents):
            self._fail(f"`{function.qualname}` binds `{name}` again")
        for node in walk(function.node) if loop is None else behind(function.node, loop):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                self._fail(f"`{name}` is not a local name of `{function.qualname}`")
            if not is_name(node, name):
                continue
            if id(node) not in own:
                self._fail(f"a function nested in `{function.qualname}` uses `{name}`")
            elif isinstance(node.ctx, ast.Load):
                (self._several if whole else self._number)(function, node, parents)
            elif whole and not isinstance(parents[id(node)], ast.Assign):
                self._fail(f"`{function.qualname}` binds `{name}` again")

    def _several(self, function: Definition, node: ast.Name, parents: Parents) -> None:
        parent = parents[id(node)]
        if asks_for_none(parent):
            return
        if isinstance(parent, ast.Call) and node in parent.args and self._named(function, parent) == "builtins.len":
            return
        if (target := self._iterated(function, node, parents)) is not None:
            self.depth = 2 if isinstance(target, (ast.Tuple, ast.List)) else self.depth
            self._elements(function, target, parents)
        elif isinstance(parent, ast.Assign) and parent.value is node and isinstance(parent.targets[0], ast.Tuple):
            for each in parent.targets[0].elts:
                self._unpacked(function, each)
        elif isinstance(parent, ast.Call) and any(node is each for each in self._sizes(function, parent)):
            self.reads.append(Read(node, parent))
        elif isinstance(parent, ast.Subscript) and parent.value is node and self._is_inside(parent):
            self._number(function, parent, parents)
        elif not self._is_handed(function, node, parents, whole=True):
            self._unknown(function, node, parents)

    def _iterated(self, function: Definition, node: ast.Name, parents: Parents) -> ast.expr | None:
        """The part of a loop's target that gets the elements: `(h, w)` of `for i, (h, w) in enumerate(name)`."""
        parent = parents[id(node)]
        loop = parent if isinstance(parent, (ast.For, ast.comprehension)) else parents[id(parent)]
        if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter not in (node, parent):
            return None
        return iterated(loop.target, loop.iter, node.id, lambda call: self._named(function, call))

    def _elements(self, function: Definition, target: ast.expr, parents: Parents) -> None:
        loop = loop_around(target, parents)
        for each in listed(target):
            if isinstance(each, ast.Name):
                self._name(function, each.id, whole=False, loop=loop)
            else:
                self._fail(f"cannot infer what `{short(target)}` takes out of a Tensor")

    def _unpacked(self, function: Definition, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._name(function, target.id, whole=False)
        else:
            self._fail(f"cannot infer what `{short(target)}` takes out of a Tensor")

    def _is_inside(self, element: ast.Subscript) -> bool:
        if not isinstance(element.ctx, ast.Load) or not is_integer(element.slice):
            return False
        return self._length is None or bool(-self._length <= ast.literal_eval(element.slice) < self._length)

    def _number(self, function: Definition, node: ast.expr, parents: Parents) -> None:
        parent = parents[id(node)]
        if (where := self._read(function, node, parents)) is not None:
            self.reads.append(Read(node, where))
        elif isinstance(parent, ast.BinOp) and self._is_tensor(function, other_side(parent, node)):
            return  # a Tensor, whichever the number is
        elif isinstance(parent, ast.expr) and self._makes_number(function, parent, node):
            self._number(function, parent, parents)
        elif isinstance(parent, ast.Assign) and all(isinstance(each, ast.Name) for each in parent.targets):
            for target in parent.targets:
                self._name(function, target.id, whole=False)  # type: ignore[attr-defined]
        elif (
            isinstance(parent, ast.AugAssign) and isinstance(parent.op, _SCALED) and isinstance(parent.target, ast.Name)
        ):
            self._name(function, parent.target.id, whole=False)
        elif isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
            self._fail(f"`{short(parent)}` does not exist on a Python number")
        elif not self._is_handed(function, node, parents, whole=False):
            self._unknown(function, node, parents)

    def _makes_number(self, function: Definition, node: ast.expr, known: ast.expr) -> bool:
        """True for `-n`, `max(n, 2)`, and arithmetic with literals, sizes, and numbers that are followed as well.

        A sum or product with a name may be a Tensor or a number: it is followed as if it were a number.
        """
        if isinstance(node, ast.Call):
            return known in node.args and self._named(function, node) in _BOUNDS
        if not isinstance(node, ast.BinOp):
            return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        return self._is_operand(function, other_side(node, known), node.op)

    def _is_operand(self, function: Definition, node: ast.expr, op: ast.operator) -> bool:
        if isinstance(op, _SCALED) and (isinstance(node, ast.Name) or _is_float(node)):
            return True
        if isinstance(node, ast.BinOp):
            return isinstance(op, _WHOLE) and all(
                self._is_operand(function, each, node.op) for each in (node.left, node.right)
            )
        followed = isinstance(node, ast.Name) and any(
            (by, name, whole) == (function, node.id, False) for by, name, whole, _ in self._seen
        )
        return isinstance(op, _WHOLE) and (followed or is_integer(node) or is_size(node))

    def _is_tensor(self, function: Definition, node: ast.expr, names: frozenset[str] = frozenset()) -> bool:
        """True for tensors with dimensions, which give a Python number and a 0-dim tensor beside them their own dtype.

        They are made by functions of torch, or have an index that only tensors have: `x[:, None]`. `names` are local
        names of which that is asked already.
        """
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else ()
            whole = any(isinstance(part, ast.Slice) or is_none(part) for part in parts)
            return whole or (is_none(node.slice) and self._is_tensor(function, node.value, names))
        if isinstance(node, ast.BinOp):
            return any(self._is_tensor(function, each, names) for each in (node.left, node.right))
        if isinstance(node, ast.Name):
            bound = self._bound(function, node.id)
            more = names | {node.id}
            return node.id in names or (bound != [] and all(self._is_tensor(function, each, more) for each in bound))
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and self._named(function, node) is None:
            return node.func.attr in _KEEPS and self._is_tensor(function, node.func.value, names)
        shapes = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "size")]
        if any(isinstance(each, (ast.Tuple, ast.List)) and not each.elts for each in shapes):
            return False
        return torch_api.torch_function(self._named(function, node)) in _MADE

    def _bound(self, function: Definition, name: str) -> list[ast.expr]:
        """The values that assignments give a local name, and None for other ways; nothing for a parameter."""
        parents = self._parents(function)
        named = [part for part in walk(function.node) if is_name(part, name)]
        above = [parents[id(part)] for part in named if not isinstance(part.ctx, ast.Load)]
        if name in parameter_names(function.node):
            return []
        return [each.value if isinstance(each, ast.Assign) else ast.Constant(None) for each in above]

    def _read(self, function: Definition, node: ast.expr, parents: Parents) -> ast.AST | None:
        """What needs a Python number in place of the node."""
        parent = parents[id(node)]
        if isinstance(parent, ast.Slice):
            return None if node is parent.step else parent
        if isinstance(parent, ast.Subscript):
            return parent if parent.slice is node and not is_table(function.node, parent.value) else None
        if isinstance(parent, (ast.Tuple, ast.List)):
            above = parents[id(parent)]
            inside = isinstance(above, (ast.Call, ast.keyword, ast.Subscript))
            return self._read(function, parent, parents) if inside else None
        call = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and call.func is not node:
            return call if any(node is each for each in self._sizes(function, call)) else None
        return self._decided(function, node, parents)

    def _sizes(self, function: Definition, call: ast.Call) -> list[ast.expr]:
        return sizes_given(call, self._named(function, call))

    def _decided(self, function: Definition, node: ast.expr, parents: Parents) -> ast.AST | None:
        """The `if` of `if p[0] > 0`, where only the truth of the number counts."""
        whole: ast.AST = node
        above = parents[id(node)]
        if isinstance(above, ast.Compare):
            if len(above.ops) != 1 or not isinstance(above.ops[0], COMPARED):
                return None
            other = above.comparators[0] if above.left is node else above.left
            bound = self._bound(function, other.id) if isinstance(other, ast.Name) else []
            if not is_integer(other) and not is_size(other) and not (bound and all(map(is_size, bound))):
                return None
            whole, above = above, parents[id(above)]
        while isinstance(above, ast.BoolOp) or (is_not(above)):
            whole, above = above, parents[id(above)]
        return above if isinstance(above, _TESTED) and above.test is whole else None

    def _named(self, function: Definition, call: ast.Call) -> str | None:
        """The qualified name of what a call runs, where the module gives it."""
        root = (dotted(call.func) or "").partition(".")[0]
        return None if root in local_names(function.node) else self.resolve(call.func)

    def _is_handed(self, function: Definition, node: ast.expr, parents: Parents, *, whole: bool) -> bool:
        parent = parents[id(node)]
        call = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
        # A call may stop the compiler inside of it, and then runs as it is written. TorchScript takes no number for a
        # tensor, so it gets one only in the statement that chooses between both.
        reached = (
            self.sure.reached(function, call, node) if isinstance(call, ast.Call) and node is not call.func else None
        )
        if reached is None:
            return False
        self._name(*reached, whole=whole)
        return True

    def _unknown(self, function: Definition, node: ast.expr, parents: Parents) -> None:
        parent = parents[id(node)]
        use = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
        unless = test_of_attributes(function, node, parents) if self.outside and function is self._first else None
        if unless is None:
            self._fail(f"`{short(use)}` in `{function.qualname}` may need a Tensor")
        elif unless not in self.unless:
            self.unless.append(unless)


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is float


def _is_bound_once(where: ast.AST, name: str, parents: Parents) -> bool:
    """True for a parameter that nothing binds again, and for a local name that one statement binds.

    `end = 0` and `end += n` count as one, and so do `end = 0` and `end = n`: what is added tells what it is.
    """
    bound = [node for node in walk(where) if is_name(node, name)]
    stored = [parents.get(id(node)) for node in bound if not isinstance(node.ctx, ast.Load)]
    given = isinstance(where, (ast.FunctionDef, ast.AsyncFunctionDef)) and name in parameter_names(where)
    others = [each for each in stored if not (isinstance(each, ast.Assign) and is_integer(each.value))]
    if given or len(stored) == 1:
        return len(stored) == (0 if given else 1)
    return len(others) == 1 or (bool(others) and all(isinstance(each, ast.AugAssign) for each in others))
