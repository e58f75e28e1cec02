"""Whether anyone asks which object a name or an attribute holds, and whether anyone writes into it in place.

A select gives a new tensor where a branch would have kept an old one, so `y is x`, `y.mul_(2)` and an attribute that
somebody gave the old one would tell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from functools import partial

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.patterns import all_given, elements_of, is_name, last_name
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameter_names, walk
from graphmend_codemod.analysis.value_flow import bindings_in, names_holding, objects_in
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.own_methods import LOG_METHODS
from graphmend_codemod.rules.proofs.memory.module_memory import ModuleMemory

_SHOWS_MEMORY = frozenset({"data_ptr", "untyped_storage", "storage", "is_set_to"})
_OF_TWO = frozenset({"id", "is_", "is_not"})
_ASKS_WHICH = _OF_TWO | {"count", "get", "index", "pop", "remove"}
_SHOWS_LAYOUT = frozenset({"is_contiguous", "stride", "storage_offset", "as_strided"})
_HELD_BY_TENSORS = frozenset({"data", "grad", "names", "requires_grad"})
"""What code assigns to a tensor that is no attribute of its own."""
_CLASSES_OF_TENSORS = frozenset({"Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"})
_OF_EACH_TENSOR = frozenset("device dim dtype grad is_cuda is_nested is_sparse ndim requires_grad shape size".split())
Meant = Callable[[ast.expr], bool]


def asked(tree: ast.AST, meant: Meant, marks: Collection[str] = (), calls: ModuleCalls | None = None) -> str | None:
    """The text of `a is b` or `id(a)` in `tree` where `a` is one of the expressions that are `meant`; None if none is.

    So it is for `getattr(a, "tag", 1)`, for `a.tag`, read or assigned, where that is one of the `marks`, and for
    `isinstance(a, nn.Parameter)`: a new tensor has no such attributes, and is no parameter. Comparisons with constants,
    `a is None`, tell nothing of an object. In a function, `a` may also be what a list or another name holds, and a
    function of the module that gets it may ask, where `calls` are given.
    """
    questions = [(node, sides) for node in walk(tree) if (sides := _asked_of(node, marks))]
    found = next((node for node, sides in questions if any(map(meant, sides))), None)
    if found is not None or not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None if found is None else speculation.short(found)
    handed = [] if calls is None else _asked_by_callees(calls, tree, marks)
    if not questions and not handed:
        return None  # most functions
    holds = _holding(tree, meant)
    return next((speculation.short(node) for node, sides in (*questions, *handed) if any(map(holds, sides))), None)


def _asked_of(node: ast.AST, marks: Collection[str]) -> list[ast.expr]:
    """The expressions of whose objects a node asks."""
    if isinstance(node, ast.Compare) and any(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
        sides = [node.left, *node.comparators]
        return [] if any(isinstance(each, ast.Constant) for each in sides) else sides
    if isinstance(node, ast.Compare):
        return [node.left] if isinstance(node.ops[0], (ast.In, ast.NotIn)) else []
    if isinstance(node, (ast.Set, ast.Dict)):  # whose elements and keys are found by what they are
        return node.elts if isinstance(node, ast.Set) else [each for each in node.keys if each is not None]
    if isinstance(node, ast.Call) and (name := last_name(node.func)) in _ASKS_WHICH:
        return node.args if name in _OF_TWO else node.args[:1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHOWS_MEMORY:
        return [node.func.value, *node.args]
    return _own_of(node, marks)


def _asked_by_callees(
    calls: ModuleCalls, function: FunctionNode, marks: Collection[str]
) -> list[tuple[ast.AST, list[ast.expr]]]:
    """The calls of functions of the module that ask which object a parameter is, with what they get for it."""
    caller = calls.at(function.lineno)
    found: list[tuple[ast.AST, list[ast.expr]]] = []
    for node in walk(function) if caller is not None else ():
        callee = calls.callee(caller, node) if caller is not None and isinstance(node, ast.Call) else None
        if callee is not None and isinstance(node, ast.Call):
            about, nothing = (callee.key, frozenset(marks)), frozenset[str]()
            wanted = calls.remembered("asked", about, partial(_asked_parameters, calls, callee, marks), nothing)
            sides = [each for name, each in callee.arguments(node).pairs() if name in wanted]
            found += [(node, sides)] if sides else []
    return found


def _asked_parameters(calls: ModuleCalls, callee: Definition, marks: Collection[str]) -> frozenset[str]:
    """The parameters of whose objects a function asks, or one that gets them from it."""
    asks = any(_asked_of(node, marks) for node in walk(callee.node))
    if not asks and not _asked_by_callees(calls, callee.node, marks):
        return frozenset()  # most functions
    meant = {name: partial(is_name, name=name) for name in parameter_names(callee.node)}
    return frozenset(name for name, means in meant.items() if asked(callee.node, means, marks, calls) is not None)


def _holding(function: FunctionNode, meant: Meant) -> Meant:
    """Whether an expression may be one of the objects that are meant, or a container that holds one."""

    def holds(node: ast.expr, names: AbstractSet[str]) -> bool:
        return any(meant(each) or dotted(each) in names for each in objects_in(node))

    names = names_holding((each for node in walk(function) for each in bindings_in(node)), holds)
    return partial(holds, names=names)


def _own_of(node: ast.AST, marks: Collection[str]) -> list[ast.expr]:
    """The expressions of whose own attributes or class a node asks, `a` in `hasattr(a, "tag")`."""
    if isinstance(node, ast.Attribute):
        return [node.value] if node.attr == "__dict__" or node.attr in marks else []
    called, given = (node.func, node.args) if isinstance(node, ast.Call) else (None, [])
    if not isinstance(called, ast.Name) or not given:
        return []
    if called.id in {"getattr", "hasattr", "setattr"} and len(given) > 1:
        name = given[1].value if isinstance(given[1], ast.Constant) else ""
        return [] if name in _OF_EACH_TENSOR else given[:1]
    if called.id == "isinstance" and len(given) == 2:
        return given[:1] if any(last_name(each) in _CLASSES_OF_TENSORS for each in elements_of(given[1])) else []
    return given[:1] if called.id in {"type", "vars"} and len(given) == 1 else []


def marks_of(text: str) -> frozenset[str]:
    """The attributes that a file assigns to something other than its instances, and that no tensor has by itself."""

    def look() -> frozenset[str]:
        parts = (part for part in walk(tree_of(text)) if isinstance(part, ast.Attribute))
        stored = (part for part in parts if isinstance(part.ctx, ast.Store) and not is_name(part.value, "self"))
        return frozenset(part.attr for part in stored) - _HELD_BY_TENSORS

    return calls_in(text).remembered("marks", None, look)


def layout_asked_of_names(site: Site, names: Iterable[str]) -> str | None:
    """The place below the site where the strides of one of these names are asked for; None if there is none."""
    wanted, scope, at = frozenset(names), site.evaluator.scope.node, site.place.statement
    looped = any(isinstance(each, (ast.For, ast.AsyncFor, ast.While)) for each in site.place.parents)
    for node in walk(scope):
        called = node.func if isinstance(node, ast.Call) else None
        if called is None or not isinstance(called, ast.Attribute) or called.attr not in _SHOWS_LAYOUT:
            continue
        if (looped or called.lineno > at.lineno) and isinstance(called.value, ast.Name) and called.value.id in wanted:
            return speculation.short(node)
    return None


def asked_of_names(site: Site, names: Iterable[str]) -> str | None:
    """The place in the function where the object behind one of these names is asked for; None if there is none."""
    wanted = frozenset(names)
    marks, calls = marks_of(site.source.text), calls_in(site.source.text)
    own = calls.at(site.evaluator.scope.node.lineno)  # as the calls spell it, whose lines are the same
    function = own.node if own is not None else site.evaluator.scope.node
    return asked(function, lambda side: isinstance(side, ast.Name) and side.id in wanted, marks, calls)


def why_attributes_must_stay(site: Site, attributes: Iterable[str]) -> str | None:
    """Why a copy may not take the place of the tensors that these attributes hold; None if nothing in the project
    asks for their identity or writes into one of them. NeedsProject if not all files were read.
    """
    wanted = frozenset(attributes)
    tree = tree_of(site.source.text)
    marks = marks_of(site.source.text)
    found = asked(tree, lambda side: isinstance(side, ast.Attribute) and side.attr in wanted, marks)
    if found is not None:
        return f"`{found}` tells one tensor from another, and `torch.where` returns a new one"
    calls = calls_in(site.source.text)
    memory = ModuleMemory(site, calls)
    for function in calls.definitions.values():
        own = _constructs(site, calls, function)
        for node, written in memory.writes(function):
            shared = (name for name in written if "." in name and not (own and name.startswith("self.")))
            if any(name.rpartition(".")[2] in wanted for name in shared):
                return f"`{speculation.short(node)}` writes in place, and `torch.where` returns a new tensor"
    for name in sorted(wanted):
        for path, write in site.evaluator.scope.index.writers(name):
            if write.how == "changed" and path != site.summary.path:
                return f"`{name}` is changed in place in {path}, and `torch.where` returns a new tensor"
    return _counted_writes(site)


def _counted_writes(site: Site) -> str | None:
    """Why an attribute may not be written where a branch would not write it: a method of the class is told of it."""
    own = site.evaluator.scope.class_facts
    index = site.evaluator.scope.index
    family = [own, *map(index.class_facts, index.heirs(own.qualified))] if own is not None else []
    if any(each is not None and "__setattr__" in each.methods for each in family):
        return "`__setattr__` of its class may do more than write, and compiled code would write in any case"
    return None


def _constructs(site: Site, calls: ModuleCalls, function: Definition) -> bool:
    """True for the constructor of the site's class: what it does to `self` comes before the site's method runs."""
    return function.node.name == "__init__" and calls.related(function.owner, site.function.partition(".")[0])


def shown_names(site: Site) -> frozenset[str]:
    """Names that the function puts into text as they are: f-strings, `print`, loggers, `str`, `repr`, `format`."""

    def look() -> frozenset[str]:
        found: set[str] = set()
        for node in walk(site.evaluator.scope.node):
            shown: list[ast.expr] = []
            if isinstance(node, ast.FormattedValue):
                shown = [node.value]
            elif isinstance(node, ast.Call) and _shows(node):
                shown = all_given(node)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                shown = elements_of(node.right)
            found.update(part.id for part in shown if isinstance(part, ast.Name))
        return frozenset(found)

    return site.remembered("shown names", site.evaluator.scope.node, look, anywhere=True)


def _shows(node: ast.Call) -> bool:
    name = last_name(node.func)
    return name in LOG_METHODS | {"print", "str", "repr", "format"}
