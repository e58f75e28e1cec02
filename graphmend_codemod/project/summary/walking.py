"""The inside of one function in one iterative walk: names used, calls made, tests that may hold tensors.

Python's own recursion limit is no limit here: the walk keeps its own stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from graphmend_codemod.project.summary.assignments import (
    annotated,
    assign,
    augmented,
    changed,
    loop_target,
    named,
    registration,
)
from graphmend_codemod.project.summary.body import Body, is_moved_mask
from graphmend_codemod.project.summary.calls import asks_reduced, call, decision, is_extreme
from graphmend_codemod.project.summary.candidates import CASTS, COUNT, FOREIGN, GRIDS
from graphmend_codemod.project.summary.context_managers import catchers, may_exist
from graphmend_codemod.project.summary.imports import import_root, imported, imported_from
from graphmend_codemod.project.summary.numbers import is_reduced
from graphmend_codemod.project.summary.spelling import dotted

_IGNORED_FIELDS = frozenset({"ctx", "op", "ops", "type_comment", "kind", "conversion", "annotation", "type_params"})


def walk(roots: Sequence[ast.stmt], body: Body) -> None:
    """Walk statements and everything in them but nested definitions, which are put aside in `body.definitions`."""
    stack: list[Any] = list(roots)
    pop, push = stack.pop, stack.append
    read_name, read = body.names.add, body.reads.add
    name, attribute, constant, load, calling, assignment = _FREQUENT
    handlers = _HANDLERS
    while stack:
        node = pop()
        kind = type(node)  # costs half of what `isinstance` and `__class__` do
        if kind is name:
            if type(node.ctx) is load:
                read_name(node.id)
            else:
                body.stores.add(node.id)
        elif kind is constant:
            continue
        elif kind is calling:
            call(node, body, stack)
        elif kind is assignment:
            assign(node, body, stack)
        elif kind is attribute:
            inner, attr = node.value, node.attr
            if type(inner) is name and attr != "__class__":
                read(f"{inner.id}.{attr}")
            elif spelled := dotted(node):
                read(spelled)
            else:
                push(inner)
        elif kind in handlers:
            handlers[kind](node, body, stack)
        else:
            _rest(node, body, stack)


def walk_construction(roots: list[ast.stmt], body: Body) -> None:
    """Walk the statements of a module's `__init__` for what it assigns; nothing else in it is ever traced."""
    stack: list[Any] = list(roots)
    ignored: list[Any] = []
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is ast.Assign:
            assign(node, body, ignored)
        elif kind is ast.AnnAssign or kind is ast.AugAssign:
            _HANDLERS[kind](node, body, ignored)
        elif kind is ast.Expr:
            set_by_call(node.value, body)
        elif kind in _BLOCKS:
            for name in _BLOCKS[kind]:
                stack += getattr(node, name)
            if kind is ast.For:
                loop_target(node.target, node.iter, body)
        elif kind in _ASIDE:
            _HANDLERS[kind](node, body, ignored)


def set_by_call(made: ast.expr, body: Body) -> None:
    """Note what a call that is a statement of its own sets, or changes in place."""
    if type(made) is ast.Call and (spelled := dotted(made.func)):
        registration(made, spelled, body)
        changed(spelled, body)


def _rest(node: Any, body: Body, stack: list[Any]) -> None:
    """Every other node matters for what it holds."""
    for name in _CHILDREN.get(type(node), ()):
        child = getattr(node, name)
        if type(child) is list:
            stack += child
        elif child is not None:
            stack.append(child)


def _if(node: ast.If | ast.While, body: Body, stack: list[Any]) -> None:
    test = node.test
    _test(test, body)
    if type(test) is ast.Call and dotted(test.func) == "isinstance":
        body.narrowed.append(node)
    stack.append(test)
    stack += node.body
    stack += node.orelse


def _tested(node: ast.IfExp | ast.Assert, body: Body, stack: list[Any]) -> None:
    _test(node.test, body)
    _rest(node, body, stack)


def _test(test: ast.expr, body: Body) -> None:
    body.tests.append(test)
    if type(test) is ast.Compare and type(test.left) is ast.Call:
        body.rows = body.rows or _counts_rows(test.left, body)


def _counts_rows(counted: ast.Call, body: Body) -> bool:
    """True for `len(rows)` with an argument `rows`."""
    counts = type(counted.func) is ast.Name and counted.func.id == "len" and counted.args
    first = counted.args[0] if counts else None
    return type(first) is ast.Name and first.id in body.parameters


def _compare(node: ast.Compare, body: Body, stack: list[Any]) -> None:
    body.value = body.value or (len(node.ops) > 1 and asks_reduced(node))
    stack.append(node.left)
    stack += node.comparators


def _binary(node: ast.BinOp, body: Body, stack: list[Any]) -> None:
    stack.append(node.left)
    stack.append(node.right)


def _unary(node: ast.UnaryOp, body: Body, stack: list[Any]) -> None:
    if type(node.op) is ast.Not:
        body.value = body.value or asks_reduced(node) or is_reduced(node.operand)
    stack.append(node.operand)


def _display(node: ast.Tuple | ast.List, body: Body, stack: list[Any]) -> None:
    stack += node.elts


def _sets_up(call: ast.Call) -> bool:
    """True for `install_hooks(self)`, which may set the instance up."""
    only = call.args[0] if type(call.func) is ast.Name and len(call.args) == 1 else None
    return type(only) is ast.Name and only.id == "self"


def _expression(node: ast.Expr, body: Body, stack: list[Any]) -> None:
    if type(node.value) is ast.BoolOp:  # `x.sum() > 3 and print(x)`
        _test(node.value, body)
    elif type(node.value) is ast.Call:
        body.value = body.value or _sets_up(node.value)
        for given in (*node.value.args, *(word.value for word in node.value.keywords)):
            if type(given) is ast.Compare:  # `check(n == x.shape[0], "other sizes")`
                _test(given, body)
    stack.append(node.value)


def _subscript(node: ast.Subscript, body: Body, stack: list[Any]) -> None:
    index = node.slice
    stack.append(node.value)
    stack.append(index)
    if type(node.value) is ast.Attribute:
        body.value = body.value or node.value.attr in GRIDS
    elif type(index) is ast.Call and type(node.value) is ast.Name:
        body.value = body.value or is_extreme(index)  # `outputs[x.argmax()]`
    if type(index) is ast.Tuple and index.elts:
        for part in index.elts[1:]:
            _index(part, body)
        index = index.elts[0]
    inverted = type(index) is ast.UnaryOp and type(index.op) is ast.Invert
    both = type(index) is ast.BinOp and type(index.op) in {ast.BitAnd, ast.BitOr}
    if type(index) is ast.Compare or inverted or both:
        body.masked = True
    else:
        _index(index, body)


def _index(part: ast.expr, body: Body) -> None:
    while type(part) is ast.BinOp:
        part = part.left
    kind = type(part)
    if kind is ast.Name:
        body.reads_at.append(part.id)  # type: ignore[attr-defined]
    elif kind is ast.Call:
        # `x[mask.view(-1)]`, `x[y.ne(0)]`, `x[kept(y)]`
        plain = type(part.func) is ast.Name and part.func.id not in _COUNTS  # type: ignore[attr-defined]
        body.masked = body.masked or plain or is_moved_mask(part)
    elif kind is ast.Attribute:
        body.masked = body.masked or part.attr.endswith("mask")  # type: ignore[attr-defined]
    elif kind is ast.Subscript:
        if type(part.value) is ast.Name:  # type: ignore[attr-defined]
            body.reads_at.append(part.value.id)  # type: ignore[attr-defined]
            body.value = body.value or part.value.id.endswith(("lens", "lengths"))  # type: ignore[attr-defined]
        key = part.slice.value if type(part.slice) is ast.Constant else ""  # type: ignore[attr-defined]
        body.masked = body.masked or (isinstance(key, str) and key.endswith("mask"))
    elif kind is ast.Compare or (kind is ast.UnaryOp and type(part.op) is ast.Invert):  # type: ignore[attr-defined]
        body.masked = True  # `x[:, y > 0]`, `x[..., ~mask]`
    elif kind is ast.Slice:
        for bound in (part.lower, part.upper):  # type: ignore[attr-defined]
            if bound is None or type(bound) is ast.Constant:
                continue
            body.numbers.append(bound)
            if type(bound) is ast.Subscript and type(bound.value) is ast.Name:
                body.reads_at.append(bound.value.id)
                body.value = body.value or (type(bound.slice) is ast.Constant and type(bound.slice.value) is str)
            elif type(bound) is ast.Call:
                body.value = body.value or is_extreme(bound)


_COUNTS = frozenset({"int", "len", "slice", "range", "str", "tuple", "type"})


def _list(node: ast.ListComp, body: Body, stack: list[Any]) -> None:
    made, first = node.elt, node.generators[0].target
    if type(made) is ast.Call and type(made.func) is ast.Name and made.func.id in CASTS and made.args:
        given = made.args[0]
        body.value = body.value or (type(given) is ast.Name and type(first) is ast.Name and given.id == first.id)
    _rest(node, body, stack)


def _for(node: ast.For | ast.AsyncFor, body: Body, stack: list[Any]) -> None:
    body.loops = True
    _steps(node, body)
    loop_target(node.target, node.iter, body)
    _rest(node, body, stack)


def _steps(node: ast.For | ast.AsyncFor | ast.comprehension, body: Body) -> None:
    """Note a loop over what is named as lengths or shapes are, alone or in step: they may be a tensor."""
    iterated = node.iter
    for each in iterated.args if type(iterated) is ast.Call else (iterated,):
        if type(each) is ast.Name and each.id.endswith(("lens", "lengths", "shapes")):
            body.value = True


def _comprehension(node: ast.comprehension, body: Body, stack: list[Any]) -> None:
    _steps(node, body)
    loop_target(node.target, node.iter, body)
    body.tests += node.ifs
    _rest(node, body, stack)


def _try(node: ast.Try, body: Body, stack: list[Any]) -> None:
    if any(catchers(node)):
        body.catching.append(node)
    _rest(node, body, stack)


def _with(node: ast.With | ast.AsyncWith, body: Body, stack: list[Any]) -> None:
    if any(catchers(node)):
        body.catching.append(node)
    for item in node.items:
        body.value = body.value or may_exist(item.context_expr)
        if isinstance(item.optional_vars, ast.Name):
            body.dynamic.add(item.optional_vars.id)
            body.keep(item.optional_vars.id, item.context_expr)
    _rest(node, body, stack)


def _return(node: ast.Return, body: Body, stack: list[Any]) -> None:
    value = node.value
    if value is None:
        return
    if type(value) is ast.IfExp:
        _returned(value.body, body)
        _returned(value.orelse, body)
    else:
        _returned(value, body)
    stack.append(value)


def _returned(value: ast.expr, body: Body) -> None:
    if type(value) is ast.BoolOp and type(value.op) is ast.And:
        value = _after_hasattr(value)
    spelled = dotted(value)
    if type(value) is ast.Call and dotted(value.func) == "bool" and [type(each) for each in value.args] == [ast.Call]:
        value = value.args[0]
    if type(value) is ast.Call:
        if getattr(value.func, "attr", "") == "sum" and not value.args and not value.keywords:
            body.returned[COUNT] = None
        if not spelled:
            spelled = dotted(value.func) + "()"
            for argument in value.args:
                if type(argument) is ast.Name:
                    body.returned[argument.id] = None
    elif type(value) is ast.Constant:
        spelled = repr(value.value) if value.value in (True, False, None) else "..."
    body.returned[spelled or "..."] = None


def _after_hasattr(value: ast.BoolOp) -> ast.expr:
    rest = [part for part in value.values if not (isinstance(part, ast.Call) and dotted(part.func) == "hasattr")]
    return rest[0] if len(rest) == 1 else value


def _aside(node: ast.stmt, body: Body, stack: list[Any]) -> None:
    body.definitions.append(node)
    body.stores.add(node.name)  # type: ignore[attr-defined]
    if isinstance(node, ast.ClassDef):
        stack.extend(node.decorator_list)
    else:
        arguments = node.args  # type: ignore[attr-defined]
        stack.extend(arguments.defaults)
        stack.extend([default for default in arguments.kw_defaults if default is not None])
        stack.extend(node.decorator_list)  # type: ignore[attr-defined]


def _lambda(node: ast.Lambda, body: Body, stack: list[Any]) -> None:
    stack.append(node.body)


def _import(node: ast.Import | ast.ImportFrom, body: Body, stack: list[Any]) -> None:
    pairs = imported(node) if isinstance(node, ast.Import) else imported_from(node)
    body.imports += [pair for pair in pairs if pair[0] != "*"]
    body.value = body.value or any(import_root(target) in FOREIGN for _, target in pairs)


def _global(node: ast.Global, body: Body, stack: list[Any]) -> None:
    body.changes.update(dict.fromkeys(node.names))


def _handler(node: ast.ExceptHandler, body: Body, stack: list[Any]) -> None:
    if node.name:
        body.stores.add(node.name)
    _rest(node, body, stack)


def _capture(node: ast.MatchAs | ast.MatchStar, body: Body, stack: list[Any]) -> None:
    if node.name:
        body.stores.add(node.name)
        body.dynamic.add(node.name)
    _rest(node, body, stack)


_FREQUENT = (ast.Name, ast.Attribute, ast.Constant, ast.Load, ast.Call, ast.Assign)
Handler = Callable[[Any, Body, "list[Any]"], None]
_HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Compare: _compare,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Expr: _expression,
    ast.Subscript: _subscript,
    ast.AnnAssign: annotated,
    ast.AugAssign: augmented,
    ast.NamedExpr: named,
    ast.If: _if,
    ast.While: _if,
    ast.IfExp: _tested,
    ast.Assert: _tested,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.comprehension: _comprehension,
    ast.ListComp: _list,
    ast.Try: _try,
    ast.BoolOp: decision,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Return: _return,
    ast.FunctionDef: _aside,
    ast.AsyncFunctionDef: _aside,
    ast.ClassDef: _aside,
    ast.Lambda: _lambda,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Global: _global,
    ast.ExceptHandler: _handler,
    ast.MatchAs: _capture,
    ast.MatchStar: _capture,
}
_ASIDE = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom})
_BLOCKS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.With: ("body",),
    ast.Try: ("body", "handlers", "orelse", "finalbody"),
    ast.ExceptHandler: ("body",),
}
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {}
for _kind in vars(ast).values():
    if isinstance(_kind, type) and issubclass(_kind, ast.AST):
        _names = tuple(name for name in getattr(_kind, "_fields", ()) if name not in _IGNORED_FIELDS)
        _CHILDREN[_kind] = _names
