"""One pass over a module's tree to its summary."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.project.summary.assignments import attributes_of, written
from graphmend_codemod.project.summary.body import Body, settle
from graphmend_codemod.project.summary.candidates import (
    FOREIGN,
    RECURRENT,
    SPECTRA,
    is_named_recurrent,
    is_python_annotation,
)
from graphmend_codemod.project.summary.check_functions import noted
from graphmend_codemod.project.summary.computing import COMPUTES, decorates, only_computes
from graphmend_codemod.project.summary.context_managers import LEAVES, SWALLOWS, swallowing
from graphmend_codemod.project.summary.imports import import_root, imported, imported_from
from graphmend_codemod.project.summary.logger_functions import makes_logger
from graphmend_codemod.project.summary.python_attributes import Held
from graphmend_codemod.project.summary.quiet import AWAITED, LOUD, MAKES_LOGGER, is_loud
from graphmend_codemod.project.summary.records import (
    ANNOTATION,
    Attribute,
    Binding,
    ClassSummary,
    FunctionSummary,
    ModuleSummary,
    Value,
    Write,
)
from graphmend_codemod.project.summary.references import UNINTERESTING_ROOTS, Around, Head, Pending, finished
from graphmend_codemod.project.summary.results import result
from graphmend_codemod.project.summary.signatures import defaults, python_parameters, signature
from graphmend_codemod.project.summary.spelling import Lines, decorator, dotted, value_of
from graphmend_codemod.project.summary.walking import set_by_call, walk, walk_construction

_COMPILE_CALL = re.compile(r"compile\s*\(")


class _Class(NamedTuple):
    """The class whose body is being read. `is_module`: it looks like a module, so its `__init__` is not traced."""

    qualname: str
    outer: str
    is_module: bool
    attributes: dict[Attribute, None]


class _Scan:
    """What is known of the module so far. `compiles` is true when something in it may call `torch.compile`."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        first = text.find("compile")  # faster than the engine of `re`
        self.compiles = first >= 0 and _COMPILE_CALL.search(text, first) is not None
        self.scripts = "script" in text and "jit" in text
        self.bindings: list[Binding] = []
        self.stars: list[str] = []
        self.exports: tuple[str, ...] | None = None
        self.functions: list[Pending] = []
        self.classes: list[ClassSummary] = []
        self.methods: set[str] = set()
        self.held = Held()
        self.top = Body(self.lines)


def summarise(tree: ast.Module, text: str) -> ModuleSummary:
    """The summary of the module whose source is `text` and whose tree is `tree`; it keeps no reference to either."""
    scan = _Scan(text)
    body = scan.top
    _module(tree.body, scan, False)
    loose = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    if scan.compiles or scan.scripts:
        walk([*loose], body)
    top = FunctionSummary("", 1, 1, compiles=tuple(body.compiles))
    bound = {binding.name for binding in scan.bindings if _may_lead_home(binding)}
    around = Around(bound, scan.methods, bool(scan.stars), scan.held)
    functions = _with_modules(finished(scan.functions, around, foreign=bool(scan.lines.foreign)), scan.classes)
    return ModuleSummary(
        bindings=tuple(scan.bindings),
        stars=tuple(scan.stars),
        exports=scan.exports,
        functions=(*_with_lists(functions, tree, text), *([top] if top.compiles else [])),
        classes=tuple(scan.classes),
        writes=_writes(scan),
    )


def _writes(scan: _Scan) -> tuple[Write, ...]:
    every: dict[Write, None] = dict(scan.top.writes)
    for pending in scan.functions:
        every |= pending.body.writes
    return tuple(sorted(every))


def _with_modules(functions: list[FunctionSummary], classes: list[ClassSummary]) -> list[FunctionSummary]:
    """The functions, with a note on those that ask a recurrent layer, or make a module outside of `__init__`."""
    owners = {each.owner for each in functions if each.qualname.endswith(".forward")}
    made = {f"{each.qualname}()" for each in classes if each.qualname in owners and each.bases}
    layers = {
        (each.qualname, f"self.{attribute.name}{call}")
        for each in classes
        for attribute in each.attributes
        if _is_refused_layer(attribute.value.spelled.rpartition(".")[2]) or is_named_recurrent(attribute.name)
        for call in ("()", "")
    }
    if not made and not layers:
        return functions
    return [
        each._replace(candidates=(*each.candidates, "module"))
        if (not made.isdisjoint(each.refs) and each.name != "__init__")
        or (layers and any((each.owner, ".".join(used.split(".")[:2])) in layers for used in each.refs))
        else each
        for each in functions
    ]


def _is_refused_layer(made: str) -> bool:
    return made in RECURRENT or made in SPECTRA or made.startswith("Random") or made == "ColorJitter"


def _with_lists(functions: list[FunctionSummary], tree: ast.Module, text: str) -> list[FunctionSummary]:
    """The functions, with a note on those that have a tensor and the list that it was built from."""
    if "tensor(" not in text:
        return functions
    from graphmend_codemod.analysis.callgraph import ModuleCalls
    from graphmend_codemod.analysis.list_provenance import origins  # costs a hook 8 ms, and few files need it

    # Whatever the file calls torch: what the note leads to asks what the names mean.
    found = origins(text, lambda: ModuleCalls(tree), lambda name: f"torch.{name.rpartition('.')[2]}")
    if found is None:
        return functions
    listed = found.functions
    return [
        each._replace(candidates=tuple(dict.fromkeys((*each.candidates, "list"))))
        if (each.qualname, each.line) in listed
        else each
        for each in functions
    ]


def _may_lead_home(binding: Binding) -> bool:
    return binding.kind != "import" or import_root(binding.target) not in UNINTERESTING_ROOTS


def _module(statements: list[ast.stmt], scan: _Scan, conditional: bool, for_types: bool = False) -> None:
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scan.bindings.append(Binding(node.name, "function", node.name, conditional))
            _function(node, node.name, scan)
        elif isinstance(node, ast.ClassDef):
            scan.bindings.append(Binding(node.name, "class", node.name, conditional))
            _class(node, node.name, scan)
        elif isinstance(node, ast.Import):
            for name, target in imported(node):
                scan.bindings.append(Binding(name, "import", target, conditional, for_types=for_types))
                if import_root(target) in FOREIGN:
                    scan.lines.foreign.add(name)
        elif isinstance(node, ast.ImportFrom):
            for name, target in imported_from(node):
                if name == "*":
                    scan.stars.append(target)
                else:
                    scan.bindings.append(Binding(name, "import", target, conditional, for_types=for_types))
                    if import_root(target) in FOREIGN:
                        scan.lines.foreign.add(name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            _global(node, scan, conditional)
        elif isinstance(node, ast.Expr):
            set_by_call(node.value, scan.top)
        elif isinstance(node, ast.Delete):
            _rebound(node.targets, scan)
        else:
            _rebound(_targets(node), scan)
            typing = isinstance(node, ast.If) and dotted(node.test).rpartition(".")[2] == "TYPE_CHECKING"
            for block in _blocks(node):
                _module(block, scan, True, for_types or (typing and block is node.body))  # type: ignore[attr-defined]


def _targets(node: ast.stmt) -> list[ast.expr]:
    """What the head of a compound statement binds."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.target]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in node.items if item.optional_vars is not None]
    if isinstance(node, ast.Try):
        return [ast.Name(handler.name, ast.Store()) for handler in node.handlers if handler.name]
    return []


def _rebound(targets: Sequence[ast.expr], scan: _Scan) -> None:
    """Note that names no longer mean what an import made them mean."""
    for target in targets:
        if isinstance(target, ast.Name):
            if any(each.name == target.id and each.kind == "import" for each in scan.bindings):
                scan.bindings.append(Binding(target.id, "value", "", True, Value("changed")))
        elif isinstance(target, (ast.Tuple, ast.List)):
            _rebound(target.elts, scan)


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(node, (ast.If, ast.For, ast.While)):
        return [node.body, node.orelse]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [node.body]
    if isinstance(node, ast.Try) or node.__class__.__name__ == "TryStar":
        return [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]  # type: ignore[attr-defined]
    return []


def _global(node: ast.Assign | ast.AnnAssign | ast.AugAssign, scan: _Scan, conditional: bool) -> None:
    if isinstance(node, ast.AugAssign):
        name = dotted(node.target)
        written(node.target, scan.top)
        if name == "__all__":
            scan.exports = None
        elif name and "." not in name:
            scan.bindings.append(Binding(name, "value", "", conditional, Value("changed")))
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if isinstance(target, ast.Name):
            if target.id == "__all__" and isinstance(node.value, (ast.List, ast.Tuple)):
                scan.exports = _strings(node.value)
            elif node.value is not None:
                value = value_of(node.value, scan.lines)
                scan.bindings.append(Binding(target.id, "value", "", conditional, value))
                made = dotted(node.value.func) if isinstance(node.value, ast.Call) else None
                if made is not None and made.partition(".")[0] in scan.lines.foreign:
                    scan.lines.foreign.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                if isinstance(part, ast.Name):
                    scan.bindings.append(Binding(part.id, "value", "", conditional, Value("other")))
                else:
                    written(part, scan.top)
        else:
            written(target, scan.top)


def _strings(node: ast.List | ast.Tuple) -> tuple[str, ...] | None:
    names = [part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return tuple(names) if len(names) == len(node.elts) else None


def _class(node: ast.ClassDef, qualname: str, scan: _Scan, outer: str = "") -> None:
    attributes: dict[Attribute, None] = {}
    first = len(scan.functions)
    is_module = bool(node.bases) and any(getattr(each, "name", "") == "forward" for each in node.body)
    _class_body(node.body, _Class(qualname, outer, is_module, attributes), scan)
    for pending in scan.functions[first:]:
        if pending.owner == qualname and pending.body.attributes:
            construction = pending.head[0] == f"{qualname}.__init__"
            # The attributes of a class without bases are data as often as settings.
            scan.held.add_method(qualname, pending.body, construction and bool(node.bases))
            for attribute in attributes_of(pending.body, scan.lines, construction):
                attributes[attribute] = None
    bases = tuple(spelled for base in node.bases if (spelled := _base(base)))
    scan.held.add_class(qualname, bases)
    decorators = tuple(filter(None, map(decorator, node.decorator_list)))
    scan.classes.append(ClassSummary(qualname, node.lineno, outer, bases, decorators, tuple(attributes)))


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    elif isinstance(node, ast.Call):
        return dotted(node.func) + "()" if dotted(node.func) else ""
    return dotted(node)


def _class_body(statements: list[ast.stmt], owner: _Class, scan: _Scan) -> None:
    qualname, attributes = owner.qualname, owner.attributes
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scan.methods.add(node.name)
            _function(
                node,
                f"{qualname}.{node.name}",
                scan,
                qualname,
                owner.outer,
                owner.is_module and node.name == "__init__",
            )
        elif isinstance(node, ast.ClassDef):
            _class(node, f"{qualname}.{node.name}", scan, owner.outer)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    scan.held.add_value(qualname, target.id, node.value)
                    attributes[Attribute(target.id, value_of(node.value, scan.lines))] = None
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                if node.value is not None or is_python_annotation(scan.lines.annotation(node.annotation)):
                    scan.held.add_value(qualname, node.target.id, node.value)
                bare = ANNOTATION if node.value is None else ""
                value = Value("argument", scan.lines.annotation(node.annotation), bare)
                if node.value is not None and not isinstance(node.value, ast.Constant):
                    value = value_of(node.value, scan.lines)
                attributes[Attribute(node.target.id, value)] = None
        else:
            for block in _blocks(node):
                _class_body(block, owner, scan)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    qualname: str,
    scan: _Scan,
    owner: str = "",
    outer: str = "",
    light: bool = False,
) -> None:
    lines = scan.lines
    decorators = tuple(filter(None, map(decorator, node.decorator_list))) if node.decorator_list else ()
    parameters, annotations = signature(node.args, lines)
    own = next(iter(parameters), "") if owner else ""
    own = own if "staticmethod" not in decorators or own == "cls" else ""  # `cls` is handed the class that it is for
    body = Body(lines, own, parameters, python_parameters(node.args))
    body.defaults = defaults(node.args)
    if light and not scan.compiles:
        walk_construction(node.body, body)
    else:
        walk(node.body, body)
    for spelled in body.defaults.values():
        (body.reads if "." in spelled else body.names).add(spelled)
    end = node.end_lineno or node.lineno
    returns = lines.annotation(node.returns)
    local = body.stores.union(parameters)
    if body.imports:
        local.update(name for name, _ in body.imports)
    imports = tuple(body.imports)
    head: Head = (
        qualname, node.lineno, end, owner, outer, tuple(parameters), annotations, returns, decorators, imports,
    )  # fmt: skip
    scan.functions.append(Pending(head, body, local, owner, outer))
    _note_effects(node, body, decorators, local, owner, outer)
    settle(body)
    if body.asked and not body.test:
        body.test = (bool(outer) and _free(body, local)) or (not owner and _asks_self(body))
    for name in body.changes:
        scan.bindings.append(Binding(name, "value", "", True, Value("changed")))
    for inner in body.definitions:
        if isinstance(inner, ast.ClassDef):
            _class(inner, f"{qualname}.{inner.name}", scan, qualname)
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _function(inner, f"{qualname}.{inner.name}", scan, outer=qualname)


def _note_effects(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    body: Body,
    decorators: tuple[str, ...],
    local: set[str],
    owner: str,
    outer: str,
) -> None:
    """Notes, among what the function returns, what it does besides computing it."""
    if not owner and not outer:
        body.returned.update(dict.fromkeys(decorates(node, operators=body.lines.makes_operators)))
        if only_computes(node, body.calls, local):
            body.returned[COMPUTES] = None
        if (given := result(node)) is not None:
            body.returned[given] = None
    if any(each.endswith("suppress()") for each in body.returned):
        body.returned[SWALLOWS] = None
    if node.name in LEAVES or decorators:
        body.returned.update(dict.fromkeys(swallowing(node, decorators)))
    if not owner and not outer and (check := noted(node)) is not None:
        body.returned[check] = None
    if owner and is_loud(node, decorators):
        body.returned[LOUD] = None
    if body.lines.makes_loggers and not outer and makes_logger(node, decorators, body.calls):
        body.returned[MAKES_LOGGER] = None
    if isinstance(node, ast.AsyncFunctionDef):
        body.returned[AWAITED] = None


def _free(body: Body, local: set[str]) -> bool:
    return any(name not in local for name in body.asked)


def _asks_self(body: Body) -> bool:
    return any(name.startswith("self.") for name in body.asked)
