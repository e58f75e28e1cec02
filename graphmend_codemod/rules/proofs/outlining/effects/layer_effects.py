"""What methods of layers do that an operator cannot, as far as their text tells: writes to the instance, messages.

Methods of a class in the file are read as they are. A base class in another file may hold code for a flag that is off
(`if self.gradient_checkpointing and self.training:`), which an operator asks for.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.arguments import Arguments, bound
from graphmend_codemod.analysis.patterns import (
    all_given,
    is_attribute,
    is_constant,
    is_name,
    is_within,
    last_name,
    operands_of,
    owner_of,
    root_of,
    stores_name,
)
from graphmend_codemod.analysis.scope import FunctionNode, body_of, of_kind, parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.other_files import calls_of, function_of

_SAYS = frozenset({"print", "warn", "warning", "warning_once", "info", "debug", "error", "log", "exception"})
_CHANGES = frozenset(
    """append extend insert add_module register_module update pop remove clear setdefault popitem appendleft""".split()
)
_NOT_AGAIN = frozenset({"setattr", "register_buffer", "apply", "checkpoint", "numpy", "data_ptr"})
"""What changes the layer, or what `torch.func.vjp` cannot look through."""


def flags_off(site: Site, name: str, base: str) -> set[str]:
    """What has to be False on a layer of class `name`, so that its base class in another file only runs `forward`.

    NotProven where that class does more, or cannot be read.
    """
    reason = NotProven(f"`{name}` has a base class in another file, which may have side effects")
    index = site.evaluator.scope.index
    facts, home = index.class_facts(base), index.home(base)
    calls = calls_of(home[0].text) if home is not None else None
    made = calls.class_named(home[1]) if home is not None and calls is not None else None
    if facts is None or home is None or calls is None or made is None:
        raise reason
    if not all(each.startswith(("torch.", "builtins.")) for each in facts.bases):
        raise reason
    off = _set_to_false(made)
    found: set[str] = set()
    for definition in calls.definitions.values():
        if definition.owner != home[1] or definition.qualname.endswith(".__init__"):
            continue
        for statement in _run_by_calls(definition.node):
            flag = _flag_of(statement, off)
            if flag is not None:
                found.add(flag)
            elif next(effects_in(site, statement), None) is not None or run_by(statement):
                raise reason
    return found


def _set_to_false(node: ast.ClassDef) -> set[str]:
    """The attributes that the body of a class sets to False."""
    off = [each for each in node.body if isinstance(each, ast.Assign) and is_constant(each.value, False)]
    return {target.id for each in off for target in each.targets if isinstance(target, ast.Name)}


def _run_by_calls(method: FunctionNode) -> list[ast.stmt]:
    """The statements that a call of an instance may run: of `__init_subclass__` those of the functions inside of it,
    which may take the place of `forward`."""
    if method.name != "__init_subclass__":
        return body_of(method)
    inside = (node for node in body_of(method) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [statement for each in inside for statement in body_of(each)]


def _flag_of(statement: ast.stmt, off: set[str]) -> str | None:
    """The flag of the instance without which nothing of the statement runs."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return None
    first = operands_of(statement.test, ast.And)[0]
    return next((each for each in off if is_attribute(first, "self", each)), None)


def demand_handed(site: Site, method: FunctionNode) -> None:
    """NotProven where a method hands its instance to a function that may change it.

    One that a table of the project chooses (`TABLE.get(kind)`) is taken to compute, as each of its functions has to.
    """
    chosen = {
        target.id
        for node in of_kind(walk_scope(method), ast.Assign)
        if _is_looked_up(site, node.value)
        for target in of_kind(node.targets, ast.Name)
    }
    for call in (node for node in walk(method) if isinstance(node, ast.Call)):
        handed = [each for each in all_given(call) if is_name(each, "self")]
        if not handed:
            continue
        if isinstance(call.func, ast.Name) and call.func.id in chosen:
            continue
        qualified = site.resolve_global(call.func)
        if qualified is not None and qualified.startswith("builtins."):
            continue
        function = _definition(site, qualified)
        arguments = bound(function, call) if function is not None else Arguments({})
        taken = [arguments.parameter_of(each) for each in handed]
        if function is None or None in taken or _changes(function, taken):
            raise NotProven(f"`{short(call)}` gets the layer itself, and may change it")


def demand_called(site: Site, method: FunctionNode, seen: set[int]) -> None:
    """NotProven where a function of the project that a method calls may do more than compute."""
    for call in (node for node in walk(method) if isinstance(node, ast.Call)):
        qualified = site.resolve_global(call.func)
        if qualified is None or qualified.startswith(("torch.", "builtins.", "math.")):
            continue
        function = _definition(site, qualified)
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        for text in effects_in(site, function):
            raise NotProven(f"`{text}` in `{function.name}` is not supported inside a custom operator")
        if qualified.rpartition(".")[0] == site.summary.name:
            demand_called(site, function, seen)


def demand_no_writes(method: FunctionNode) -> None:
    """NotProven where a method writes into tensors that it may have been given."""
    for node in walk(method):
        target: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.Call):
            if any(word.arg in ("inplace", "out") for word in node.keywords):
                raise NotProven(f"`{short(node)}` may write into what the layer is given")
            word = last_name(node.func)
            if isinstance(node.func, ast.Attribute) and word.endswith("_") and not word.endswith("__"):
                target = node.func.value
        if target is not None and not _is_new(method, root_of(target), _reaching(method, target)):
            raise NotProven(f"`{short(node)}` may write into what the layer is given")


def _reaching(method: FunctionNode, write: ast.expr) -> list[ast.AST]:
    """The nodes of a method that may run before a write."""
    looped = any(isinstance(each, (ast.For, ast.While)) and is_within(write, each) for each in walk(method))
    end = math.inf if looped else write.lineno
    return [node for node in walk(method) if getattr(node, "lineno", 0) <= end]


def _is_new(method: FunctionNode, name: str | None, nodes: list[ast.AST], seen: frozenset[str] = frozenset()) -> bool:
    """True for a local that holds results of arithmetic, tuples, tensors that calls of torch make, and their views."""
    if name is None or any(each.arg == name for each in parameters(method)):
        return False
    stored = [node for node in nodes if stores_name(node, name)]
    made = [
        node
        for node in of_kind(nodes, ast.Assign)
        if any(stores_name(part, name) for each in node.targets for part in walk(each))
    ]
    grown = [node for node in nodes if isinstance(node, ast.AugAssign) and is_name(node.target, name)]
    known = seen | {name}
    plain = all(
        any(is_name(target, name) for target in each.targets) and _makes(method, each.value, nodes, known)
        for each in made
    )
    return bool(made) and plain and len(stored) == len(made) + len(grown)


def _makes(method: FunctionNode, node: ast.expr, nodes: list[ast.AST], known: frozenset[str]) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.BinOp, ast.Compare, ast.Tuple, ast.List, ast.Constant, ast.Dict))
    word = last_name(node.func)
    if word in aliasing.FRESH and word not in aliasing.VIEWS:
        return True
    of = owner_of(node)
    named = isinstance(of, ast.Name) and word in aliasing.VIEWS
    return named and (of.id in known or _is_new(method, of.id, nodes, known))  # type: ignore[union-attr]


def _is_looked_up(site: Site, node: ast.expr) -> bool:
    """`TABLE[kind]`, `TABLE.get(kind, default)`, with a table at the top level of a file."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    elif isinstance(node, ast.Subscript):
        node = node.value
    else:
        return False
    return isinstance(node, ast.Name) and not site.evaluator.scope.is_local(node.id) and _is_of_project(site, node)


def _is_of_project(site: Site, node: ast.Name) -> bool:
    qualified = site.resolve_global(node)
    return qualified is not None and not qualified.startswith(("torch.", "builtins."))


def _definition(site: Site, qualified: str | None) -> FunctionNode | None:
    found = function_of(site, qualified) if qualified is not None else None
    alone = found is not None and len(found[1].named(found[2].qualname)) == 1
    return found[2].node if found is not None and alone else None


def _changes(function: ast.AST, taken: Sequence[str | None]) -> bool:
    """True where a function may change one of these arguments, or hands it on."""
    for node in walk(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if root_of(node) in taken:
                return True
        elif isinstance(node, ast.Call):
            handed = [*node.args, *(word.value for word in node.keywords)]
            word = last_name(node.func)
            if isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr", "isinstance", "type"):
                continue
            if any(is_name(each, name) for each in handed for name in taken if name):
                return True
            if root_of(node.func) in taken and (word in _CHANGES | _NOT_AGAIN or word.endswith("_")):
                return True
    return False


def run_by(function: ast.AST) -> set[str]:
    """Attributes of the instance that a method calls or looks layers up in."""
    found: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Call):
            parts = [node.func]
        elif isinstance(node, (ast.For, ast.comprehension)):
            parts = [node.iter, *(node.iter.args if isinstance(node.iter, ast.Call) else [])]
        else:
            continue
        chains = [each for part in parts for each in _chain(part)]
        found |= {each.attr for each in chains if is_attribute(each, "self")}
    return found


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        yield node
        node = node.value


def effects_in(site: Site, function: ast.AST) -> Iterator[str]:
    """What a method does that changes more than its locals, as text."""
    for node in walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)):
            yield short(node)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Attribute) or _of_instance(node):
                yield short(node)
        elif isinstance(node, ast.Call):
            word = last_name(node.func)
            changes = word in _CHANGES or (word.endswith("_") and not word.endswith("__"))
            in_place = changes and _of_instance(node.func)
            says = word in _SAYS and not (site.resolve_global(node.func) or "").startswith(("math.", "torch."))
            if says or word in _NOT_AGAIN or in_place:
                yield short(node)


def _of_instance(node: ast.expr) -> bool:
    return isinstance(node, (ast.Attribute, ast.Subscript)) and root_of(node) == "self"
