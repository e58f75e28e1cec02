"""Sizes that are divided as tensors, and the division of Python integers that takes its place under `torch.compile`.

`torch.div(x.size(1), n, rounding_mode="trunc")` is a tensor. With sizes that Dynamo takes for constants its value is
known; with dynamic ones it has to be read back wherever it is used as a size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_literal, is_name, is_size, last_name, stores_name
from graphmend_codemod.analysis.scope import parents_in, walk, walk_in_layers
from graphmend_codemod.analysis.values import Origin
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_TAKES_SIZES = frozenset(
    """view reshape expand repeat new_zeros new_ones new_empty new_full zeros ones empty full arange narrow
    unflatten as_strided range""".split()
)
_KEEPS_INTEGERS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_HANDS_ON = (ast.Tuple, ast.List, ast.keyword, ast.UnaryOp, ast.Compare, ast.BoolOp)


def divisions(site: Site, node: ast.expr) -> list[ast.Call]:
    """The divisions of sizes in an expression."""
    return [part for part in walk_in_layers(node) if isinstance(part, ast.Call) and _is_division(site, part)]


def division_edit(site: Site, node: ast.Assign, calls: list[ast.Call]) -> Edit:
    """The statement with integers under `torch.compile`; NotProven with the reason if it may differ."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        raise NotProven("the result is not assigned to a single variable")
    target = node.targets[0].id
    parents = parents_in(node)
    for call in calls:
        if not _is_size(call, parents, node):
            _demand_number(site, target)
    written = {id(call): (call, _divided(site, call, parents[id(call)])) for call in calls}
    inside = site.but(written=written)
    value = node.value
    line = f"{target} = {inside.text(value)}"
    if site.indentation(1) + len(line) > site.line_limit and isinstance(value, ast.Call):
        arguments = [inside.text(each) for each in value.args]
        arguments += [f"{word.arg}={inside.text(word.value)}" for word in value.keywords]
        line = site.call(f"{target} = {inside.text(value.func)}(", arguments, deeper=1)
    elif site.indentation(1) + len(line) > site.line_limit and isinstance(value, ast.List):
        line = site.call(f"{target} = [", [inside.text(each) for each in value.elts], deeper=1, after="]")
    # Rounding down is the same as towards zero as long as the divisor is positive.
    asserted, told = told_multiples(site, node, calls)
    conditions = [
        site.compiling,
        *asserted,
        *dict.fromkeys(f"{site.text(call.args[1])} > 0" for call in calls if _may_differ(call)),
    ]
    return two_paths(site, node, conditions, [*told, line])


def is_division(node: ast.Call) -> bool:
    """True for what is spelled like one."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in {"div", "floor_divide"} and len(node.args) == 2


def _is_division(site: Site, node: ast.Call) -> bool:
    if not is_division(node) or not _is_length(site, node.args[0]):
        return False
    qualified, words = site.resolve(node.func), {word.arg: word.value for word in node.keywords}
    if qualified == "torch.floor_divide":
        return not words
    mode = words.get("rounding_mode")
    rounded = isinstance(mode, ast.Constant) and mode.value in ("trunc", "floor")
    return qualified == "torch.div" and rounded and len(words) == 1


def _is_length(site: Site, node: ast.expr) -> bool:
    """True for the size of something, which is never negative."""
    if is_size(node):
        return True
    value = site.value(node)
    return isinstance(node, ast.Name) and value.is_python and value.origin is Origin.SHAPE


def _may_differ(call: ast.Call) -> bool:
    mode = next((word.value for word in call.keywords), None)
    positive = isinstance(call.args[1], ast.Constant) and isinstance(call.args[1].value, int) and call.args[1].value > 0
    return is_literal(mode, "trunc") and not positive


def _divided(site: Site, call: ast.Call, parent: ast.AST) -> str:
    size, divisor = call.args
    tight = isinstance(divisor, (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript))
    text = f"{site.text(size)} // {site.text(divisor) if tight else f'({site.text(divisor)})'}"
    loose = isinstance(parent, (ast.Call, ast.Assign, ast.Tuple, ast.List, ast.keyword))
    added = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))
    return text if loose or added else f"({text})"


def _is_size(call: ast.Call, parents: dict[int, ast.AST], statement: ast.Assign) -> bool:
    """True where the result is handed to something that takes sizes, alone or with a number added."""
    node: ast.AST = call
    while node is not statement:
        node = parents[id(node)]
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            return name in _TAKES_SIZES
        if not isinstance(node, (ast.BinOp, ast.Tuple, ast.List, ast.Constant)):
            return False
    return False


def _demand_number(site: Site, name: str) -> None:
    """NotProven where `name` goes anywhere that an integer would be told from a tensor of one."""
    reads = _NumberReads(site)
    if not reads.are_numbers(name):
        raise NotProven(f"`{speculation.short(reads.other)}` may need a Tensor")


class _NumberReads:
    """What is done with names that hold an integer, or a list with one in it; `other` is what else was found."""

    def __init__(self, site: Site) -> None:
        self.other: ast.AST = site.node
        self._site, self._seen = site, set[str]()
        self._function = site.evaluator.scope.node
        self._parents = parents_in(self._function)

    def are_numbers(self, name: str) -> bool:
        """True where a name, and each that gets its value, is only read as a number."""
        if name in self._seen:
            return True
        self._seen.add(name)
        for part in walk(self._function):
            if is_name(part, name) and isinstance(part.ctx, ast.Load) and not self._is_number(name, part):
                self.other = self._parents[id(part)]
                return False
        return True

    def _is_number(self, name: str, node: ast.AST) -> bool:
        """True for a size, a bound, a test, and for what is computed with a tensor.

        What is computed with other numbers is one itself, but for a quotient: that of tensors has fewer digits.
        """
        while True:
            inner, node = node, self._parents[id(node)]
            if isinstance(node, ast.Call):
                return last_name(node.func) in _TAKES_SIZES and inner is not node.func
            if isinstance(node, ast.BinOp):
                other = node.right if node.left is inner else node.left
                if self._site.value(other).is_tensor:
                    return isinstance(node.op, (*_KEEPS_INTEGERS, ast.Div))
                if not isinstance(node.op, _KEEPS_INTEGERS):
                    return False
            elif isinstance(node, (ast.Slice, ast.Subscript)):
                if inner is not getattr(node, "value", None) or isinstance(getattr(node, "ctx", None), ast.Store):
                    return True
            elif isinstance(node, ast.Assign):
                return all(self._keeps(name, each) for each in node.targets)
            elif not isinstance(node, _HANDS_ON):
                return isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)) and inner is node.test

    def _keeps(self, name: str, target: ast.expr) -> bool:
        """True for `m = n` and `sizes[1] = sizes[1] - 1`, as far as what they bind is a number as well."""
        if isinstance(target, ast.Subscript):
            return is_name(target.value, name)
        return isinstance(target, ast.Name) and self.are_numbers(target.id)


# Sizes that a function asserts to be multiples of something, and how the compiler is told

_COMMENT = "# All of it, as asserted above: sizes that are made of a product stay short for the compiler."


class _Size(NamedTuple):
    """`name = tensor.size(dimension)`, in the statement at `position` of the function's body."""

    name: str
    tensor: str
    dimension: int
    position: int


def told_multiples(site: Site, node: ast.stmt, divided: Sequence[ast.Call]) -> tuple[list[str], list[str]]:
    """Conditions, and lines that cut tensors to the multiple that their size is, before its first division.

    The conditions say what was asserted once more: `python -O` leaves assertions out.
    """
    body = site.evaluator.scope.node.body
    if node not in body:
        return [], []
    position = body.index(node)
    for name in dict.fromkeys(each.args[0].id for each in divided if isinstance(each.args[0], ast.Name)):
        size = _size(body[:position], name)
        if size is None or _stores(walk(site.evaluator.scope.node), name) != 1:
            continue
        between = body[size.position + 1 : position]
        factor = _factor(site, between, name)
        if factor is None or _divides(body[:position], name):
            continue
        tensors = [each for each in _same(between, size) if not _stores(_parts(between), each)]
        if size.tensor in tensors:
            text = site.text(factor)
            text = text if isinstance(factor, (ast.Name, ast.Constant)) else f"({text})"
            cut = [f"{each} = {each}.narrow({size.dimension}, 0, {name})" for each in tensors]
            others = [f"{each}.size({size.dimension}) == {name}" for each in tensors if each != size.tensor]
            return [f"{name} % {text} == 0", *others], [_COMMENT, f"{name} = {name} // {text} * {text}", *cut]
    return [], []


def _parts(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from walk(statement)


def _stores(nodes: Iterator[ast.AST], name: str) -> int:
    return sum(stores_name(each, name) for each in nodes)


def _size(body: Sequence[ast.stmt], name: str) -> _Size | None:
    """Where `name` is bound to a size: `rows, name = x.size()`, `name = x.size(1)`."""
    for position, statement in enumerate(body):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        tensor = _sized(value)
        if tensor is None or not isinstance(value, ast.Call):
            continue
        if isinstance(target, ast.Tuple) and not value.args and all(isinstance(each, ast.Name) for each in target.elts):
            names = [each.id for each in target.elts if isinstance(each, ast.Name)]
            if names.count(name) == 1 and tensor not in names:
                return _Size(name, tensor, names.index(name), position)
        elif is_name(target, name) and len(value.args) == 1:
            dimension = value.args[0]
            if isinstance(dimension, ast.Constant) and isinstance(dimension.value, int):
                return _Size(name, tensor, dimension.value, position)
    return None


def _sized(node: ast.expr) -> str | None:
    """`x` for `x.size()` and `x.size(1)`."""
    sized = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    owner = node.func.value if sized and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else None


def _factor(site: Site, statements: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """`m` of `assert name % m == 0`, made of numbers and of parameters that nothing binds."""
    for statement in statements:
        test = statement.test if isinstance(statement, ast.Assert) else None
        left = test.left if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) else None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(left, ast.BinOp):
            continue
        zero = is_literal(test.comparators[0], 0)
        by = isinstance(left.op, ast.Mod) and is_name(left.left, name)
        if zero and by and all(_is_fixed(site, part) for part in walk_in_layers(left.right)):
            return left.right
    return None


def _is_fixed(site: Site, node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        function = site.evaluator.scope.node
        arguments = {each.arg for each in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}
        return node.id in arguments and not _stores(walk(function), node.id)
    number = isinstance(node, ast.Constant) and isinstance(node.value, int)
    return number or isinstance(node, (ast.BinOp, ast.Mult, ast.Add, ast.Load))


def _divides(statements: Sequence[ast.stmt], name: str) -> bool:
    """True when `name` is divided before, where the compiler is told already."""
    return any(
        isinstance(part, ast.Call) and any(is_name(each, name) for each in part.args[:1])
        for part in _parts(statements)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        if part.func.attr in {"div", "floor_divide"}
    )


def _same(statements: Sequence[ast.stmt], size: _Size) -> list[str]:
    """The tensor, and those that are asserted to have the same size in that dimension."""
    found = [size.tensor]
    for statement in statements:
        test = statement.test if isinstance(statement, ast.Assert) else None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            continue
        sides = [_whole(test.left, size.dimension), _whole(test.comparators[0], size.dimension)]
        if size.tensor in sides:
            found += [each for each in sides if each is not None and each not in found]
    return found


def _whole(node: ast.expr, dimension: int) -> str | None:
    """`x` for `x.size()` and for `x.size()[:n]` with the dimension in it."""
    inner: ast.expr = node
    if isinstance(node, ast.Subscript):
        part, inner = node.slice, node.value
        upper = part.upper if isinstance(part, ast.Slice) and part.lower is part.step is None else None
        count = upper.value if isinstance(upper, ast.Constant) and isinstance(upper.value, int) else -1
        if not 0 <= dimension < count:
            return None
    return _sized(inner) if isinstance(inner, ast.Call) and not inner.args else None
