"""The inside of one function in one iterative walk: names used, calls made, tests that may hold tensors.

Python's own recursion limit is no limit here: the walk keeps its own stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphmend_codemod.project.candidates import is_log_call, is_python_annotation, needs
from graphmend_codemod.project.spelling import Lines, dotted

_IGNORED_FIELDS = frozenset({"ctx", "op", "ops", "type_comment", "kind", "conversion", "annotation", "type_params"})


@dataclass(slots=True)
class Body:
    """What a walk over one function body collects. `own` is the name of its first parameter if that is an instance."""

    lines: Lines
    own: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    dynamic: set[str] = field(default_factory=set)
    flows: list[tuple[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    test: bool = False
    log: bool = False
    types: dict[tuple[str, str], None] = field(default_factory=dict)
    imports: list[tuple[str, str]] = field(default_factory=list)
    changes: set[str] = field(default_factory=set)
    returned: dict[str, None] = field(default_factory=dict)
    compiles: list[tuple[str, str]] = field(default_factory=list)
    attributes: list[tuple[str, str, ast.expr | None]] = field(default_factory=list)
    definitions: list[ast.stmt] = field(default_factory=list)


def walk(roots: list[ast.stmt], body: Body) -> None:
    """Walk statements and everything in them but nested definitions, which are put aside in `body.definitions`."""
    stack: list[Any] = list(roots)
    pop = stack.pop
    uses = body.uses
    name, attribute, constant = ast.Name, ast.Attribute, ast.Constant
    load = ast.Load
    while stack:
        node = pop()
        kind = node.__class__
        if kind is name:
            if node.ctx.__class__ is load:
                uses.add(node.id)
            else:
                body.stores.add(node.id)
        elif kind is constant:
            continue
        elif kind is attribute:
            spelled = dotted(node)
            if not spelled:
                stack.append(node.value)
            else:
                uses.add(spelled)
        else:
            handler = _HANDLERS.get(kind)
            if handler is None or handler(node, body, stack):
                for name_of_field in _CHILDREN.get(kind, ()):
                    child = getattr(node, name_of_field)
                    if child.__class__ is list:
                        stack += child
                    elif child is not None:
                        stack.append(child)


def _call(node: ast.Call, body: Body, stack: list[Any]) -> bool:
    function = node.func
    spelled = dotted(function)
    if spelled:
        body.uses.add(spelled + "()")
        last = spelled.rpartition(".")[2]
        if last == "compile" and (node.args or node.keywords):
            body.compiles.append((spelled, dotted(node.args[0] if node.args else node.keywords[0].value)))
        elif last == "isinstance" and len(node.args) == 2:
            _isinstance(node.args, body)
        elif last in ("register_buffer", "register_parameter") and spelled.startswith(f"{body.own}.") and node.args:
            _register(node, last, body)
        if last in _SUPER_NEEDS_ARGUMENTS and spelled == last:
            return True
    elif isinstance(function, ast.Attribute):
        body.uses.add(f"?.{function.attr}()")
        stack.append(function.value)
    else:
        stack.append(function)
    if not body.log and is_log_call(node):
        body.log = True
    stack += node.args
    for keyword in node.keywords:
        stack.append(keyword.value)
    return False


_SUPER_NEEDS_ARGUMENTS = frozenset({"super"})


def _isinstance(arguments: list[ast.expr], body: Body) -> None:
    subject = arguments[0]
    if isinstance(subject, ast.Name):
        kinds = arguments[1].elts if isinstance(arguments[1], ast.Tuple) else [arguments[1]]
        for kind in kinds:
            if spelled := dotted(kind):
                body.types[subject.id, f":{spelled}"] = None


def _register(node: ast.Call, kind: str, body: Body) -> None:
    first = node.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        value = node.args[1] if len(node.args) > 1 else None
        body.attributes.append((first.value, "buffer" if kind == "register_buffer" else "parameter", value))


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
        _flow(target.id, node.value, body)
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
        _flow(name, value, body)
        _type(name, value, body)
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
        stack.append(target)


def _unpacked(target: ast.expr, value: ast.expr, body: Body, stack: list[Any]) -> None:
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        body.stores.add(target.id)
        _flow(target.id, value, body)
    elif isinstance(target, ast.Attribute) and body.own and dotted(target.value) == body.own:
        body.attributes.append((target.attr, "other", None))
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            _unpacked(part, value, body, stack)
    else:
        stack.append(target)


def _flow(name: str, value: ast.expr, body: Body) -> None:
    sources: list[str] = []
    if needs(value, sources):
        body.dynamic.add(name)
    else:
        body.flows.extend([(name, source) for source in sources])


def _type(name: str, value: ast.expr, body: Body) -> None:
    if value.__class__ is ast.Call:
        if spelled := dotted(value.func):
            body.types[name, spelled + "()"] = None
            if spelled.rpartition(".")[2] == "partial" and value.args:
                body.types[name, dotted(value.args[0])] = None
    elif value.__class__ is ast.Name or value.__class__ is ast.Attribute:
        if spelled := dotted(value):
            body.types[name, spelled] = None
    elif isinstance(value, ast.IfExp):
        _type(name, value.body, body)
        _type(name, value.orelse, body)
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            _type(name, part, body)


def _test(node: ast.If | ast.While | ast.IfExp | ast.Assert, body: Body, stack: list[Any]) -> bool:
    if not body.test:
        body.test = needs(node.test, body.asked)
    return True


def _for(node: ast.For | ast.AsyncFor, body: Body, stack: list[Any]) -> bool:
    _loop_target(node.target, node.iter, body)
    return True


def _comprehension(node: ast.comprehension, body: Body, stack: list[Any]) -> bool:
    _loop_target(node.target, node.iter, body)
    for test in node.ifs:
        if not body.test:
            body.test = needs(test, body.asked)
    return True


def _loop_target(target: ast.expr, iterated: ast.expr, body: Body) -> None:
    counts = isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range"
    for part in ast.walk(target):
        if isinstance(part, ast.Name):
            body.stores.add(part.id)
            if not counts:
                body.dynamic.add(part.id)


def _with(node: ast.With | ast.AsyncWith, body: Body, stack: list[Any]) -> bool:
    for item in node.items:
        if isinstance(item.optional_vars, ast.Name):
            body.dynamic.add(item.optional_vars.id)
            _type(item.optional_vars.id, item.context_expr, body)
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


def settled_dynamic(body: Body) -> bool:
    """True when a name that a test asks for may hold a tensor. Names of attributes are left to the caller."""
    if body.test:
        return True
    if not body.asked:
        return False
    dynamic = body.dynamic | {
        name for name, annotation in body.parameters.items() if not (annotation and is_python_annotation(annotation))
    }
    flows = body.flows
    grew = True
    while grew:
        grew = False
        for name, source in flows:
            if source in dynamic and name not in dynamic:
                dynamic.add(name)
                grew = True
    if not dynamic.isdisjoint(body.asked):
        return True
    into = {name for name in body.asked}
    body.asked += [source for name, source in flows if name in into and source.startswith("self.")]
    return False


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
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {}
for _kind in vars(ast).values():
    if isinstance(_kind, type) and issubclass(_kind, ast.AST):
        _names = tuple(name for name in getattr(_kind, "_fields", ()) if name not in _IGNORED_FIELDS)
        _CHILDREN[_kind] = _names
