"""Repeated rows that arithmetic puts beside a tensor, whose size is theirs then: `x - means.repeat_interleave(counts)`.

torch reads the counts to know how many rows there will be. The other operand tells it: where the sizes differ, eager
mode raises, but for a single row, which broadcasting spreads over all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import (
    is_integer,
    is_name,
    is_within,
    only_target,
    stores_name,
    written_integer,
)
from graphmend_codemod.analysis.scope import children, dotted, parents_in, walk
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm
from graphmend_codemod.rules.proofs.outlining.effects.library_effects import RESHAPES
from graphmend_codemod.rules.proofs.rowwise.selectors import is_item
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor

_SOURCE = '''\
def _repeated_to(size, x, repeats, dim=None):
    """`x.repeat_interleave(repeats, dim)` beside a tensor of this size; a single row is spread as broadcasting does."""
    total = repeats.sum()
    fits = (repeats >= 0).all() & ((total == size) | (total == 1))
    {torch}._assert_async(fits, "repeat_interleave makes another number of rows than the tensor beside it has")
    spread = {torch}.where(total == 1, repeats * size, repeats)
    return x.repeat_interleave(spread, dim, output_size=size)'''
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Try)
_MAY_SKIP = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def repeated_to(site: Site, statement: ast.stmt, call: ast.Call) -> FixedForm | None:
    """`_repeated_to(y.shape[0], x, counts, 0)` for rows that are combined with `y`; None where no tensor tells."""
    given = arguments(site, call)
    if given is None or site.settings.guards != "assert":
        return None  # without the check, compiled code would repeat other rows where eager mode raises
    tensor, counts, dim = given
    if dotted(tensor) is None or dotted(counts) is None:
        return None
    beside = Beside(site, statement, call).name()
    if beside is None:
        return None
    x, n, y, torch = site.text(tensor), site.text(counts), beside.name, site.torch
    conditions = [f"isinstance({each}, {torch}.Tensor)" for each in dict.fromkeys((x, n, y))]
    conditions += [f"isinstance({each}, ({torch}.Tensor, int, float))" for each in beside.others if each not in (x, n)]
    conditions += [f"{n}.dim() == 1", f"{n}.dtype in ({torch}.int32, {torch}.int64)"]
    if dim is None:
        d, rows = "0", f"{x}.numel()"
        conditions.append(f"{y}.dim() == 1")
    else:
        d, number = site.text(dim), written_integer(dim)
        rows = f"{x}.shape[{d}]"
        conditions += [f"isinstance({d}, int)"] if number is None else []
        within = f"> {number}" if number is not None and number >= 0 else f">= {-number}" if number is not None else ""
        conditions.append(f"{y}.dim() == {x}.dim() {within}".rstrip())
        conditions += [f"-{x}.dim() <= {d} < {x}.dim()"] if number is None else []
    conditions += [f"{n}.shape[0] == {rows}", f"{y}.shape[{d}] != 1"]
    passed = [f"{y}.shape[{d}]", x, n, *([d] if dim is not None else [])]
    text = f"_repeated_to({', '.join(passed)})"
    return FixedForm(call, text, tuple(conditions), sized=True, helpers=(repeated_helper(site),))


def repeated_helper(site: Site) -> Helper:
    """The function that repeats rows to a size that another tensor has."""
    return Helper("_repeated_to", _SOURCE.replace("{torch}", site.torch or "torch"), shared=True)


def arguments(site: Site, call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """The tensor, the counts, and the dimension if there is one, of `repeat_interleave` without the total."""
    name, given = site.operation(call)
    words = {word.arg: word.value for word in call.keywords}
    if name != "repeat_interleave" or words.keys() - {"repeats", "dim"} or not given:
        return None
    tensor, *rest = given
    counts = rest.pop(0) if rest else words.pop("repeats", None)
    dim = rest.pop(0) if rest else words.pop("dim", None)
    if counts is None or rest or words or any(isinstance(each, ast.Starred) for each in given):
        return None
    if not seems_tensor(site, counts) and not is_item(counts):
        return None  # a number, of which torch reads nothing
    if isinstance(dim, ast.Constant) and dim.value is None:
        dim = None
    return (tensor, counts, dim) if dim is None or is_integer(dim) or isinstance(dim, ast.Name) else None


class Operand(NamedTuple):
    """The name of a tensor, and the other names in the arithmetic that combines it with something."""

    name: str
    others: tuple[str, ...]


class Beside:
    """The name of a tensor that arithmetic combines with what a call gives, before anything else can happen to it."""

    def __init__(self, site: Site, statement: ast.stmt, call: ast.Call) -> None:
        self.site, self._statement, self._call = site, statement, call
        self._function = site.evaluator.scope.node
        self._parents = parents_in(self._function)
        self.following = site.place.below(ast.If, ast.With)

    def name(self) -> Operand | None:
        """None where no tensor is certain to be combined with it, wherever it is used."""
        found = self._names(self._call)
        if found:
            bound = any(self._binds(self._statement, each, but_targets=True) for each in found)
            return None if bound else Operand(found[0], tuple(found[1:]))
        kept = only_target(self._statement)
        if not isinstance(kept, ast.Name) or self._statement.value is not self._call:  # type: ignore[attr-defined]
            return None
        return self._beside_all(kept.id)

    def _names(self, node: ast.expr) -> list[str]:
        """The names that the smallest arithmetic around an expression has beside it, tensors first.

        There are none where another object takes part: it may have a `*` of its own, whose result has another size.
        """
        top, site = node, self._at(node)
        while site is not None and _is_arithmetic(above := self._parents.get(id(top))):
            top = above  # type: ignore[assignment]
            leaves = [each for each in _leaves(top) if each is not node and not isinstance(each, ast.Constant)]
            names = [each for each in leaves if isinstance(each, ast.Name) and site.evaluator.scope.is_local(each.id)]
            if not all(_is_tensor(site, each) or any(each is name for name in names) for each in leaves):
                return []
            if any(not _is_number(site, each) for each in names):
                return list(dict.fromkeys(each.id for each in sorted(names, key=partial(_rank, site))))
        return []

    def _at(self, node: ast.AST) -> Site | None:
        """What is known where an expression is used."""
        while not isinstance(node, ast.stmt):
            node = self._parents[id(node)]
        return self.site if node is self._statement else self.site.at(node)

    def _beside_all(self, kept: str) -> Operand | None:
        """The name beside all uses of what the statement binds to a local, the first of which certainly follows."""
        loads = self.uses(kept)
        if not loads or not self._is_used_next(loads):
            return None
        beside = [self._names(each) for each in loads]
        every = list(dict.fromkeys(name for names in beside for name in names))
        if kept in every or not all(self._stays(each, loads) for each in every):
            return None
        shared = [name for name in every if all(names[:1] == [name] for names in beside)]
        return Operand(shared[0], tuple(each for each in every if each != shared[0])) if shared else None

    def uses(self, kept: str) -> list[ast.Name]:
        """Where the value of the statement is read; nothing where it may be read elsewhere, as in a nested function."""
        nodes = [part for part in walk(self._function) if is_name(part, kept)]
        if not self.site.evaluator.scope.is_local(kept):
            return []
        loads: list[ast.Name] = []
        for each in self.following:
            inside = [part for part in nodes if is_within(part, each)]
            loads += [part for part in inside if isinstance(part.ctx, ast.Load)]
            if self._binds(each, kept, but_targets=False):  # what is read behind it is another value
                return [] if self._binds(each, kept, but_targets=True) else loads
            there = self.site.at(each)
            if there is None or not there.live_after(kept):
                return loads
        return []

    def _is_used_next(self, loads: Sequence[ast.Name]) -> bool:
        """True where a use runs whenever the statement does."""
        for each in self.following:
            used = [load for load in loads if is_within(load, each)]
            if used:
                return isinstance(each, SIMPLE) and any(self.always_runs(load, each) for load in used)
            if any(isinstance(part, _LEAVES) for part in walk(each)):
                return False
        return False

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What an expression is a part of."""
        return self._parents.get(id(node))

    def always_runs(self, node: ast.AST, statement: ast.stmt) -> bool:
        """True where a statement evaluates an expression whenever it runs."""
        while node is not statement:
            node = self._parents[id(node)]
            if isinstance(node, _MAY_SKIP) or (isinstance(node, ast.Compare) and len(node.ops) > 1):
                return False
        return True

    def _stays(self, name: str, loads: Sequence[ast.Name]) -> bool:
        """True where the name holds one tensor, of one size, at the statement and at all of the uses behind it."""
        last = max(number for each in loads for number, after in enumerate(self.following) if is_within(each, after))
        for number, each in enumerate(self.following[: last + 1]):
            if self._binds(each, name, but_targets=number == last):
                return False
        calls = self.site.evaluator.scope.outline.calls
        return not any(isinstance(each.func, ast.Attribute) and each.func.attr in RESHAPES for each in calls)

    @staticmethod
    def _binds(statement: ast.stmt, name: str, *, but_targets: bool) -> bool:
        """True where a statement binds a name, perhaps otherwise than by the targets of an assignment."""
        stores = [part for part in walk(statement) if stores_name(part, name)]
        if but_targets and isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            own = {id(part) for target in targets for part in walk(target)}
            stores = [part for part in stores if id(part) not in own]
        return bool(stores)


def _rank(site: Site, node: ast.expr) -> int:
    return 0 if site.value(node).is_tensor else 1 + _is_number(site, node)


def _is_number(site: Site, node: ast.expr) -> bool:
    """True for what is no tensor."""
    value = site.value(node)
    return value.is_python and not value.hint


def _is_tensor(site: Site, node: ast.expr) -> bool:
    value = site.value(node)
    return value.is_tensor and not value.hint


def _is_arithmetic(node: ast.AST | None) -> bool:
    """True for `a + b`, `-a` and `a < b`."""
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], _COMPARISONS)
    signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd))
    return signed or (isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC))


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of arithmetic."""
    if not _is_arithmetic(node):
        yield node
        return
    for each in children(node):
        yield from _leaves(each)  # type: ignore[arg-type]
