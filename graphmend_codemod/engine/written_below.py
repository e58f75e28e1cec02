"""What a function writes in place below a place in it, in the order in which its statements run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.patterns import all_names, last_name
from graphmend_codemod.analysis.scope import of_kind, walk_scope
from graphmend_codemod.core.findings import Span

_SIMPLE = (ast.Assign, ast.AnnAssign)


def written_below(function: ast.AST, place: Span, names: set[str], own: str | None) -> ast.AST | None:
    """What may write a tensor below a place that no loop holds, where `names` lead to it there.

    A name that gets another value leads there no more, if nothing that leads there, and no attribute of the instance
    (`own`), takes part in it.
    """
    leading = set(names)
    for statement, surely in _statements_below(function, place):
        inside = [statement, *walk_scope(statement)]
        if surely and isinstance(statement, _SIMPLE) and statement.value is not None:
            changed = _after(statement, leading, own)
        else:
            changed = _any_order(inside, leading)
            leading = changed
        found = next((part for part, name in written_in(inside) if name in leading), None)
        if found is not None:
            return found
        leading = changed
    return None


def written_in(parts: Iterable[ast.AST], skipped: Span | None = None) -> Iterator[tuple[ast.AST, str]]:
    """What is written in place among these nodes, outside of the lines `skipped`, with the name that leads there."""
    for part in parts:
        if skipped is not None and skipped.start_line <= getattr(part, "lineno", 0) <= skipped.end_line:
            continue
        if isinstance(part, ast.AugAssign):
            yield part, root(part.target)
        elif is_element(part):
            yield part, root(part)
        elif isinstance(part, ast.Call):
            yield from ((part, root(each)) for each in _written_by(part))


def is_element(part: ast.AST) -> bool:
    """True for an element that is assigned or deleted."""
    return isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load)


def root(node: ast.AST) -> str:
    """`m` for `m`, `m[0]`, `m.view(-1)` and `m.data`; an empty string where no name leads there."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id


def _written_by(call: ast.Call) -> Sequence[ast.expr]:
    """What a call writes in place by its name or arguments: `x.add_(1)`, `torch.relu_(x)`, `silu(x, inplace=True)`."""
    name = last_name(call.func)
    if name.endswith("_") and not name.endswith("__"):
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return [*owner, *call.args[:1]]
    found = aliasing.of_operator(name, call, None)
    words = [word.value for word in call.keywords if word.arg == "out"]
    return [*words, *found.writes] if found.known else words


def _statements_below(node: ast.AST, place: Span) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements that run after a place in a node, innermost block first, and whether each runs for sure.

    In a `try` none does: its handlers and its end run after an exception, too.
    """
    tried = hasattr(node, "handlers")  # `except*` is a node of its own
    for block in _blocks(node):
        reached = [index for index, each in enumerate(block) if _overlaps(each, place)]
        if not reached:
            continue
        if _starts_before(block[reached[0]], place):
            yield from ((each, surely and not tried) for each, surely in _statements_below(block[reached[0]], place))
        yield from ((each, not tried) for each in block[reached[-1] + 1 :])
        for other in _blocks(node) if tried else ():
            yield from ((each, False) for each in other if other is not block)
        return


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _overlaps(statement: ast.stmt, place: Span) -> bool:
    end = (statement.end_lineno or statement.lineno, statement.end_col_offset or 0)
    return (statement.lineno, statement.col_offset) < place[2:] and place[:2] < end


def _starts_before(statement: ast.stmt, place: Span) -> bool:
    return (statement.lineno, statement.col_offset) < place[:2]


def _after(statement: ast.Assign | ast.AnnAssign, leading: set[str], own: str | None) -> set[str]:
    """The names that lead to the tensor after an assignment."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    bound = {
        part.id for target in targets for part in of_kind(ast.walk(target), ast.Name) if isinstance(part.ctx, ast.Store)
    }
    if statement.value is None or _source(statement.value, leading) in leading:
        return leading | bound
    read = all_names(statement.value)
    apart = own not in read and read.isdisjoint(leading)
    return leading - bound if apart or _is_fresh(statement.value, leading) else leading


def _any_order(parts: Sequence[ast.AST], leading: set[str]) -> set[str]:
    """These names and those that assignments among these nodes make of them, in whatever order they run."""
    stores = [(part.targets, part.value) for part in parts if isinstance(part, ast.Assign)]
    pairs = [(target.id, value) for targets, value in stores for target in targets if isinstance(target, ast.Name)]
    while more := {name for name, value in pairs if _source(value, leading) in leading} - leading:
        leading = leading | more
    return leading


def _source(value: ast.expr, leading: set[str]) -> str:
    """The name that leads to what may share memory with a value; an empty string where there is none."""
    return "" if _is_fresh(value, leading) else root(value)


def _is_fresh(value: ast.expr, leading: set[str]) -> bool:
    """True for what a method of a tensor to which a name leads makes anew, and for views of that: `x.clone()[0]`."""
    while isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            effect = aliasing.of_operator(last_name(value.func), value, value.func.value)
            if not effect.known:
                return False
            if not effect.shares:
                return root(value.func.value) in leading
            value = value.func
        elif isinstance(value, ast.Call):
            return False
        value = value.value
    return False
