"""What a statement reads or writes of tensors that come into its function, and what is known of two such accesses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, only_target, root_of, stored_names
from graphmend_codemod.analysis.scope import dotted, walk, walk_scope
from graphmend_codemod.rules.proofs.memory.given_writes import elements_read, is_new

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Access(NamedTuple):
    """Names, as they are where a function starts, whose memory a statement reads or writes, or a call in it does."""

    statement: ast.stmt
    names: frozenset[str]
    line: int
    call: ast.Call | None = None
    part: ast.AST | None = None


def is_part(node: ast.AST | None) -> bool:
    """True for what writes some elements of a tensor: `x[1] = 0`, `x[:2].add_(1)`, `x.index_fill_(0, i, 1)`."""
    if isinstance(node, ast.AugAssign):
        return dotted(node.target) is None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return isinstance(node, ast.Subscript)
    some = node.func.attr.startswith(("index_", "scatter_", "masked_"))
    return node.func.attr.endswith("_") and (some or dotted(node.func.value) is None)


def is_tested(access: Access) -> bool:
    """True for what the test of an `if`, `while` or `assert` reads, and binds to no name."""
    if access.call is not None or not isinstance(access.statement, (ast.If, ast.While, ast.Assert)):
        return False
    test = [*ast.walk(access.statement.test)]
    return any(part is access.part for part in test) and not any(isinstance(part, ast.NamedExpr) for part in test)


def given_on(
    function: Definition, read: Sequence[Access], written: Sequence[Access]
) -> Iterator[tuple[Access, Access]]:
    """What is read and written above; not by one statement that gives nothing on, such as `self.mean.mul_(0.9)`."""
    for one, other in product(read, written):
        if one.statement is other.statement and isinstance(one.statement, (ast.Expr, ast.AugAssign)):
            continue
        if one.line <= other.line or not _repeats(function, other.statement):
            yield one, other


def is_made_anew(function: Definition, read: Access, written: Access) -> bool:
    """True where a name is bound to a new tensor between `x[mask] = 0` and what reads the name, be it in a loop."""
    names = read.names & written.names
    bound = {
        only.id
        for each in function.node.body
        if written.line < each.lineno < read.line and isinstance(only := only_target(each), ast.Name)
        if is_new(each.value)  # type: ignore[attr-defined]
    }
    return _repeats(function, written.statement) and bool(names) and names <= bound


def _repeats(function: Definition, statement: ast.stmt) -> bool:
    """True for `x[mask] = 0`: computed once more of what was written, it gives the same to what reads it below."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Subscript) or not isinstance(statement.value, ast.Constant):  # type: ignore[attr-defined]
        return False
    root, todo, seen = (dotted(target.value) or "").partition(".")[0], [target.slice], set[str]()
    bound = [each for each in walk_scope(function.node) if isinstance(each, ast.Assign)]
    while todo:
        names = {(dotted(each) or "").partition(".")[0] for each in elements_read(todo.pop())} - seen
        if root in names:
            return False
        seen |= names
        todo += [each.value for each in bound for one in each.targets if isinstance(one, ast.Name) and one.id in names]
    return bool(root)


def under_clone(function: Definition) -> Iterator[int]:
    """The ids of `self.queue` in `self.queue.detach().clone()`: of a parameter nobody makes an operator."""
    for node in walk(function.node) if function.owner else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clone":
            copied = [*walk(node.func.value)]
            if any(is_attribute(part, "self") for part in copied):
                yield from map(id, copied)


def is_of_its_round(function: Definition, access: Access) -> bool:
    """True for `part.weight.mul_(2)` in `for part in parts:`, which changes nothing of the other parts."""
    part = access.part or access.call or access.statement
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        part = part.func
    elif isinstance(part, ast.AugAssign):
        part = part.target
    around = (each for each in walk_scope(function.node) if isinstance(each, (ast.For, ast.AsyncFor)))
    targets = {
        name
        for each in around
        if each.lineno <= access.line <= (each.end_lineno or 0)
        for name in stored_names(walk(each.target))
    }
    return isinstance(part, ast.expr) and root_of(part) in targets


def loops_of(function: Definition) -> Iterator[range]:
    """The lines of each loop of a function."""
    for each in walk_scope(function.node):
        if isinstance(each, _LOOPS):
            yield range(each.lineno, (each.end_lineno or 0) + 1)


def is_in(loops: Collection[range], line: int) -> bool:
    return any(line in each for each in loops)


def names_of(accesses: Collection[Access]) -> set[str]:
    return {name for each in accesses for name in each.names}
