"""The inside of one function in one iterative walk: names used, calls made, tests that may hold tensors.

Python's own recursion limit is no limit here: the walk keeps its own stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from graphmend_codemod.project.assignments import annotated, assign, augmented, loop_target, named, registration
from graphmend_codemod.project.body import Body
from graphmend_codemod.project.calls import call
from graphmend_codemod.project.candidates import COUNT
from graphmend_codemod.project.spelling import dotted

_IGNORED_FIELDS = frozenset({"ctx", "op", "ops", "type_comment", "kind", "conversion", "annotation", "type_params"})


def walk(roots: Sequence[ast.stmt], body: Body) -> None:
    """Walk statements and everything in them but nested definitions, which are put aside in `body.definitions`."""
    stack: list[Any] = list(roots)
    pop, push = stack.pop, stack.append
    read_name, read = body.names.add, body.reads.add
    name, attribute, constant, load = ast.Name, ast.Attribute, ast.Constant, ast.Load
    handlers, children = _HANDLERS, _CHILDREN
    while stack:
        node = pop()
        kind = node.__class__
        if kind is name:
            if node.ctx.__class__ is load:
                read_name(node.id)
            else:
                body.stores.add(node.id)
        elif kind is constant:
            continue
        elif kind is attribute:
            inner = node.value
            if inner.__class__ is name and node.attr != "__class__":
                read(f"{inner.id}.{node.attr}")
            elif spelled := dotted(node):
                read(spelled)
            else:
                push(inner)
        elif kind not in handlers or handlers[kind](node, body, stack):
            for child_name in children.get(kind, ()):
                child = getattr(node, child_name)
                if child.__class__ is list:
                    stack += child
                elif child is not None:
                    push(child)


def walk_construction(roots: list[ast.stmt], body: Body) -> None:
    """Walk the statements of a module's `__init__` for what it assigns; nothing else in it is ever traced."""
    stack: list[Any] = list(roots)
    ignored: list[Any] = []
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is ast.Assign or kind is ast.AnnAssign or kind is ast.AugAssign:
            _HANDLERS[kind](node, body, ignored)
        elif kind is ast.Expr:
            made = node.value
            if made.__class__ is ast.Call and made.func.__class__ is ast.Attribute:
                registration(made, dotted(made.func), body)
        elif kind in _BLOCKS:
            for name in _BLOCKS[kind]:
                stack += getattr(node, name)
            if kind is ast.For:
                loop_target(node.target, node.iter, body)
        elif kind in _ASIDE:
            _HANDLERS[kind](node, body, ignored)


def _test(node: ast.If | ast.While | ast.IfExp | ast.Assert, body: Body, stack: list[Any]) -> bool:
    body.tests.append(node.test)
    body.rows = body.rows or _counts_rows(node.test, body)
    return True


def _counts_rows(test: ast.expr, body: Body) -> bool:
    """True for `len(rows) > 0` with an argument `rows`."""
    left = test.left if isinstance(test, ast.Compare) else None
    counts = isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and left.args
    first = left.args[0] if counts else None  # type: ignore[union-attr]
    return isinstance(first, ast.Name) and first.id in body.parameters


def _subscript(node: ast.Subscript, body: Body, stack: list[Any]) -> bool:
    index = node.slice
    if isinstance(index, ast.Tuple) and index.elts:
        index = index.elts[0]
    if isinstance(index, ast.Name):
        body.reads_at.append(index.id)
    elif isinstance(index, ast.Compare):
        body.masked = True
    return True


def _for(node: ast.For | ast.AsyncFor, body: Body, stack: list[Any]) -> bool:
    body.loops = True
    loop_target(node.target, node.iter, body)
    return True


def _comprehension(node: ast.comprehension, body: Body, stack: list[Any]) -> bool:
    loop_target(node.target, node.iter, body)
    body.tests += node.ifs
    return True


def _with(node: ast.With | ast.AsyncWith, body: Body, stack: list[Any]) -> bool:
    for item in node.items:
        if isinstance(item.optional_vars, ast.Name):
            body.dynamic.add(item.optional_vars.id)
            body.assigned.append((item.optional_vars.id, item.context_expr))
    return True


def _return(node: ast.Return, body: Body, stack: list[Any]) -> bool:
    if node.value is None:
        return False
    choice = isinstance(node.value, ast.IfExp)
    for value in (node.value.body, node.value.orelse) if choice else (node.value,):  # type: ignore[attr-defined]
        _returned(value, body)
    return True


def _returned(value: ast.expr, body: Body) -> None:
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        value = _after_hasattr(value)
    spelled = dotted(value)
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "sum" and not value.args + value.keywords:
        body.returned[COUNT] = None
    if not spelled and isinstance(value, ast.Call):
        spelled = dotted(value.func) + "()"
        for argument in value.args:
            if isinstance(argument, ast.Name):
                body.returned[argument.id] = None
    elif isinstance(value, ast.Constant):
        spelled = repr(value.value) if value.value in (True, False, None) else "..."
    body.returned[spelled or "..."] = None


def _after_hasattr(value: ast.BoolOp) -> ast.expr:
    rest = [part for part in value.values if not (isinstance(part, ast.Call) and dotted(part.func) == "hasattr")]
    return rest[0] if len(rest) == 1 else value


def _aside(node: ast.stmt, body: Body, stack: list[Any]) -> bool:
    body.definitions.append(node)
    body.stores.add(node.name)  # type: ignore[attr-defined]
    if isinstance(node, ast.ClassDef):
        stack.extend(node.decorator_list)
    else:
        arguments = node.args  # type: ignore[attr-defined]
        stack.extend(arguments.defaults)
        stack.extend([default for default in arguments.kw_defaults if default is not None])
        stack.extend(node.decorator_list)  # type: ignore[attr-defined]
    return False


def _lambda(node: ast.Lambda, body: Body, stack: list[Any]) -> bool:
    stack.append(node.body)
    return False


def _import(node: ast.Import, body: Body, stack: list[Any]) -> bool:
    body.imports += imported(node)
    return False


def _import_from(node: ast.ImportFrom, body: Body, stack: list[Any]) -> bool:
    body.imports += [pair for pair in imported_from(node) if pair[0] != "*"]
    return False


def _global(node: ast.Global, body: Body, stack: list[Any]) -> bool:
    body.changes.update(node.names)
    return False


def _handler(node: ast.ExceptHandler, body: Body, stack: list[Any]) -> bool:
    if node.name:
        body.stores.add(node.name)
    return True


def _capture(node: ast.MatchAs | ast.MatchStar, body: Body, stack: list[Any]) -> bool:
    if node.name:
        body.stores.add(node.name)
        body.dynamic.add(node.name)
    return True


def imported(node: ast.Import) -> list[tuple[str, str]]:
    """(name, module) for every name that `import` binds; `import a.b` binds `a`."""
    pairs = []
    for alias in node.names:
        root = alias.name.partition(".")[0]
        pairs.append((alias.asname, alias.name) if alias.asname else (root, root))
    return pairs


def imported_from(node: ast.ImportFrom) -> list[tuple[str, str]]:
    """(name, `module:attribute`) for every name that `from M import` binds; (`*`, M) for a star import."""
    module = "." * node.level + (node.module or "")
    return [("*", module) if a.name == "*" else (a.asname or a.name, f"{module}:{a.name}") for a in node.names]


def import_root(target: str) -> str:
    """The top-level package of an import target, empty for a relative one."""
    return target.partition(":")[0].partition(".")[0]


Handler = Callable[[Any, Body, "list[Any]"], bool]
_HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Call: call,
    ast.Subscript: _subscript,
    ast.Assign: assign,
    ast.AnnAssign: annotated,
    ast.AugAssign: augmented,
    ast.NamedExpr: named,
    ast.If: _test,
    ast.While: _test,
    ast.IfExp: _test,
    ast.Assert: _test,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.comprehension: _comprehension,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Return: _return,
    ast.FunctionDef: _aside,
    ast.AsyncFunctionDef: _aside,
    ast.ClassDef: _aside,
    ast.Lambda: _lambda,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
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
