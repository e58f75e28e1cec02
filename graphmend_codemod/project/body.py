"""The inside of one function in one iterative walk: names used, calls made, tests that may hold tensors.

Python's own recursion limit is no limit here: the walk keeps its own stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from graphmend_codemod.project.candidates import (
    CHOOSES_ROWS,
    LOG_METHODS,
    NUMPY_NUMBERS,
    READS_VALUES,
    REDUCES,
    is_log_call,
    is_python_annotation,
    needs,
)
from graphmend_codemod.project.spelling import Lines, dotted

_IGNORED_FIELDS = frozenset({"ctx", "op", "ops", "type_comment", "kind", "conversion", "annotation", "type_params"})


_REGISTRATIONS = {"register_buffer": "buffer", "register_parameter": "parameter"}
_SPECIAL_CALLS = frozenset({"compile", "isinstance", *_REGISTRATIONS})


class Body:
    """What a walk over one function body collects. `own` is the name of its first parameter if that is an instance.

    `parameters` have their annotations, `python` are those with a default that is no tensor. `names` are plain names
    read, `reads` dotted ones, `calls` what is called (`?.f` on something unknown).
    """

    def __init__(
        self, lines: Lines, own: str = "", parameters: dict[str, str] | None = None, python: Collection[str] = ()
    ) -> None:
        self.lines = lines
        self.own = own
        self.parameters = parameters or {}
        self.python = python
        self.names: set[str] = set()
        self.reads: set[str] = set()
        self.calls: set[str] = set()
        self.stores: set[str] = set()
        self.assigned: list[tuple[str, ast.expr]] = []
        self.tests: list[ast.expr] = []
        self.dynamic: set[str] = set()
        self.asked: list[str] = []
        self.test = False
        self.log = False
        self.value = False
        self.rows = False
        self.loops = False
        self.pieces = False
        self.types: dict[tuple[str, str], None] = {}
        self.imports: list[tuple[str, str]] = []
        self.changes: set[str] = set()
        self.returned: dict[str, None] = {}
        self.compiles: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str, ast.expr | None]] = []
        self.definitions: list[ast.stmt] = []
        self._values: dict[str, list[ast.expr]] | None = None

    def values(self) -> dict[str, list[ast.expr]]:
        """Values by the local name that they are assigned to."""
        if self._values is None:
            self._values = {}
            for name, value in self.assigned:
                self._values.setdefault(name, []).append(value)
        return self._values

    def origins(self, sources: Iterable[str]) -> set[str] | None:
        """The parameters, attributes (`self.NAME`) and names from outside that these names come from.

        None when one of them may hold a tensor whatever those hold.
        """
        todo, seen = list(sources), set()
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.dynamic:
                return None
            if name in self.parameters or name not in self.stores:
                found.add(name)
            for value in self.values().get(name, ()):
                if needs(value, todo):
                    return None
        return found

    def is_python_parameter(self, name: str) -> bool:
        """True when its annotation or its default says that it is no tensor."""
        annotation = self.parameters[name]
        return is_python_annotation(annotation) if annotation else name in self.python


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
            call = node.value
            if call.__class__ is ast.Call and call.func.__class__ is ast.Attribute:
                _registration(call, dotted(call.func), body)
        elif kind in _BLOCKS:
            for name in _BLOCKS[kind]:
                stack += getattr(node, name)
            if kind is ast.For:
                _loop_target(node.target, node.iter, body)
        elif kind in _ASIDE:
            _HANDLERS[kind](node, body, ignored)


def _call(node: ast.Call, body: Body, stack: list[Any]) -> bool:
    function = node.func
    spelled = function.id if function.__class__ is ast.Name else dotted(function)
    if spelled:
        body.calls.add(spelled)
        last = spelled.rpartition(".")[2]
        if last in _SPECIAL_CALLS:
            _special(node, spelled, last, body)
    elif function.__class__ is ast.Attribute:
        last = function.attr
        body.calls.add(f"?.{last}")
        stack.append(function.value)
    else:
        last = ""
        stack.append(function)
    if last in LOG_METHODS and not body.log:
        body.log = is_log_call(node)
    elif (last in READS_VALUES and not node.args) or last == "repeat_interleave":
        body.value = True
    elif last == "split" and node.args and node.args[0].__class__ is ast.Name:
        body.pieces = True
    elif last in NUMPY_NUMBERS and spelled.startswith(("np.", "numpy.")):
        body.value = True
    elif last in CHOOSES_ROWS or (last == "where" and len(node.args) == 1) or (last in REDUCES and _is_masked(node)):
        body.rows = True
    stack += node.args
    for keyword in node.keywords:
        stack.append(keyword.value)
    return False


def _special(node: ast.Call, spelled: str, last: str, body: Body) -> None:
    if last == "compile" and (node.args or node.keywords):
        body.compiles.append((spelled, dotted(node.args[0] if node.args else node.keywords[0].value)))
    elif last == "isinstance" and len(node.args) == 2:
        _isinstance(node.args, body)
    else:
        _registration(node, spelled, body)


def _isinstance(arguments: list[ast.expr], body: Body) -> None:
    subject = arguments[0]
    if isinstance(subject, ast.Name):
        kinds = arguments[1].elts if isinstance(arguments[1], ast.Tuple) else [arguments[1]]
        for kind in kinds:
            if spelled := dotted(kind):
                body.types[subject.id, f":{spelled}"] = None


def _registration(node: ast.Call, spelled: str, body: Body) -> None:
    owner, _, last = spelled.rpartition(".")
    if last in _REGISTRATIONS and owner == body.own and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            value = node.args[1] if len(node.args) > 1 else None
            body.attributes.append((first.value, _REGISTRATIONS[last], value))


def _assign(node: ast.Assign, body: Body, stack: list[Any]) -> bool:
    for target in node.targets:
        _store(target, node.value, body, stack)
    stack.append(node.value)
    return False


def _annotated(node: ast.AnnAssign, body: Body, stack: list[Any]) -> bool:
    if isinstance(node.target, ast.Name):
        body.types[node.target.id, f":{body.lines.annotation(node.annotation)}"] = None
    if node.value is None:
        if isinstance(node.target, ast.Name):
            body.stores.add(node.target.id)
        return False
    _store(node.target, node.value, body, stack)
    stack.append(node.value)
    return False


def _augmented(node: ast.AugAssign, body: Body, stack: list[Any]) -> bool:
    target = node.target
    if isinstance(target, ast.Name):
        body.stores.add(target.id)
        body.assigned.append((target.id, node.value))
    elif isinstance(target, ast.Attribute) and dotted(target.value) == body.own:
        body.attributes.append((target.attr, "changed", None))
    else:
        stack.append(target)
    stack.append(node.value)
    return False


def _named(node: ast.NamedExpr, body: Body, stack: list[Any]) -> bool:
    _store(node.target, node.value, body, stack)
    stack.append(node.value)
    return False


def _store(target: ast.expr, value: ast.expr, body: Body, stack: list[Any]) -> None:
    kind = target.__class__
    if kind is ast.Name:
        name = target.id  # type: ignore[attr-defined]
        body.stores.add(name)
        body.assigned.append((name, value))
    elif kind is ast.Attribute:
        if body.own and target.value.__class__ is ast.Name and target.value.id == body.own:  # type: ignore[attr-defined]
            body.attributes.append((target.attr, "", value))  # type: ignore[attr-defined]
        else:
            stack.append(target.value)  # type: ignore[attr-defined]
    elif isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, given in zip(target.elts, value.elts, strict=True):
                _store(part, given, body, stack)
        else:
            for part in target.elts:
                _unpacked(part, value, body, stack)
    else:
        body.rows = body.rows or (body.loops and kind is ast.Subscript and _may_be_mask(target.slice))  # type: ignore[attr-defined]
        stack.append(target)


def _is_masked(node: ast.Call) -> bool:
    """True for `x[mask].sum()`."""
    if node.args or not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Subscript):
        return False
    return isinstance(node.func.value.slice, (ast.Name, ast.Compare))


def _may_be_mask(index: ast.expr) -> bool:
    """True for an index that may choose rows by a condition: `y[m == i]`, `y[m[:, i]]`, `y[i, rows]`, `y[a:b]`."""
    kind = index.__class__
    if kind is ast.Tuple:
        return any(map(_may_be_mask, index.elts))  # type: ignore[attr-defined]
    if kind is ast.Slice:
        return index.lower.__class__ is ast.Name and index.upper.__class__ is ast.Name  # type: ignore[attr-defined]
    return kind is ast.Compare or kind is ast.Subscript or kind is ast.Name


def _unpacked(target: ast.expr, value: ast.expr, body: Body, stack: list[Any]) -> None:
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        body.stores.add(target.id)
        body.assigned.append((target.id, value))
    elif isinstance(target, ast.Attribute) and body.own and dotted(target.value) == body.own:
        body.attributes.append((target.attr, "other", None))
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            _unpacked(part, value, body, stack)
    else:
        stack.append(target)


def types_of(value: ast.expr) -> Iterator[str]:
    """What is known of an assigned value: `C()` for a call, `other` for an alias, both arms of a choice."""
    if isinstance(value, ast.Call):
        if spelled := dotted(value.func):
            yield spelled + "()"
            if spelled.rpartition(".")[2] == "partial" and value.args and (inner := dotted(value.args[0])):
                yield inner
    elif isinstance(value, (ast.Name, ast.Attribute)):
        if spelled := dotted(value):
            yield spelled
    elif isinstance(value, ast.IfExp):
        yield from types_of(value.body)
        yield from types_of(value.orelse)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from types_of(part)


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


def _for(node: ast.For | ast.AsyncFor, body: Body, stack: list[Any]) -> bool:
    body.loops = True
    _loop_target(node.target, node.iter, body)
    return True


def _comprehension(node: ast.comprehension, body: Body, stack: list[Any]) -> bool:
    _loop_target(node.target, node.iter, body)
    body.tests += node.ifs
    return True


def _loop_target(target: ast.expr, iterated: ast.expr, body: Body) -> None:
    called = iterated.func.id if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) else ""
    if called == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        body.stores.add(target.elts[0].id)
        target = target.elts[-1]
    counts = called == "range"
    for part in ast.walk(target):
        if isinstance(part, ast.Name):
            body.stores.add(part.id)
            if not counts:
                body.dynamic.add(part.id)


def _with(node: ast.With | ast.AsyncWith, body: Body, stack: list[Any]) -> bool:
    for item in node.items:
        if isinstance(item.optional_vars, ast.Name):
            body.dynamic.add(item.optional_vars.id)
            body.assigned.append((item.optional_vars.id, item.context_expr))
    return True


def _return(node: ast.Return, body: Body, stack: list[Any]) -> bool:
    value = node.value
    if value is None:
        return False
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        value = _after_hasattr(value)
    spelled = dotted(value)
    if not spelled and isinstance(value, ast.Call):
        spelled = dotted(value.func) + "()"
        for argument in value.args:
            if isinstance(argument, ast.Name):
                body.returned[argument.id] = None
    elif isinstance(value, ast.Constant):
        spelled = repr(value.value) if value.value in (True, False, None) else "..."
    body.returned[spelled or "..."] = None
    return True


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


def settle(body: Body) -> None:
    """Decide `body.test`: whether a test may hold a tensor. What is left in `body.asked` then only the class knows."""
    if not body.tests:
        return
    for test in body.tests:
        if needs(test, body.asked):
            body.test = True
            return
    origins = body.origins(body.asked)
    if origins is None or any(name in body.parameters and not body.is_python_parameter(name) for name in origins):
        body.test = True
    else:
        body.asked = sorted(origins)


Handler = Callable[[Any, Body, "list[Any]"], bool]
_HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Call: _call,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.NamedExpr: _named,
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
