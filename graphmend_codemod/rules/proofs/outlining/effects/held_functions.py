"""What calls hand over: functions among it, which code gets as an attribute of the instance or as a parameter.

Which function an attribute holds is a guess from what its class assigns. The compile path asks for it, which Dynamo
answers while it traces.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from graphmend_codemod.analysis.arguments import bound
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import has_stars, is_attribute, stored_names
from graphmend_codemod.analysis.scope import FunctionNode, defaults_of, walk
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.log_calls import find_log_call
from graphmend_codemod.rules.proofs.logging.own_methods import LOG_METHODS

Functions = Mapping[str, FunctionNode]


def attribute_values(site: Site, attribute: str) -> Iterator[ast.Name]:
    """The names that the class assigns to an attribute, those behind a condition last.

    `self.reduce = all_reduce if shared else noop` gives `noop`, then `all_reduce`.
    """
    if all(each.owner for each in site.summary.functions):
        return  # before the whole file is parsed for it
    owner = site.class_name
    for value in calls_in(site.source.text).assigned(owner, attribute):
        ways = [value.orelse, value.body] if isinstance(value, ast.IfExp) else [value]
        yield from (each for each in ways if isinstance(each, ast.Name))


def plain(site: Site, name: ast.expr) -> FunctionNode | None:
    """The function of this file that a plain name stands for."""
    if not isinstance(name, ast.Name):
        return None
    summary = site.summary
    if all(each.qualname != name.id for each in summary.functions):
        return None  # before the whole file is parsed for it
    found = [each.node for each in calls_in(site.source.text).named(name.id)]
    alone = len(found) == 1 and summary.binds_only(name.id, ("function",))
    return found[0] if alone and not found[0].decorator_list else None


def own_method(site: Site, call: ast.Call, own: str) -> FunctionNode | None:
    """The method of the instance `own` that a call runs, without decorators but `torch.no_grad`."""
    name = call.func.attr if is_attribute(call.func, own) else None
    if name is None or not any(each.name == name and each.owner for each in site.summary.functions):
        return None  # before the whole file is parsed for it
    owner = site.class_name
    calls = calls_in(site.source.text)
    key = calls.method(owner, name)
    found = calls.definitions[key].node if key is not None else None
    named = [each.func if isinstance(each, ast.Call) else each for each in (found.decorator_list if found else ())]
    return None if any(site.resolve_global(each) != "torch.no_grad" for each in named) else found


def first_proven(
    site: Site, candidates: Iterator[ast.Name], check: Callable[[FunctionNode], object]
) -> tuple[str, FunctionNode] | None:
    """The first candidate that is a function of this file and that passes `check`, which raises NotProven."""
    for name in candidates:
        function = plain(site, name)
        if function is None:
            continue
        try:
            check(function)
        except NotProven:
            continue
        return name.id, function
    return None


def handed(function: FunctionNode, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call for parameters that the function calls."""
    return _called(function, call, bound(function, call).plain)


def defaults(function: FunctionNode, call: ast.Call) -> dict[str, ast.expr]:
    """The defaults of parameters that the function calls; none where stars may hide an argument."""
    return _called(function, call, {each.arg: value for each, value in defaults_of(function)})


def _called(function: FunctionNode, call: ast.Call, values: dict[str, ast.expr]) -> dict[str, ast.expr]:
    if has_stars(call):
        return {}
    nodes = [part for statement in function.body for part in walk(statement)]
    called = {part.func.id for part in nodes if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    stored = stored_names(nodes)
    return {name: value for name, value in values.items() if name in called - stored}


def is_message(site: Site, call: ast.Call, qualified: str | None) -> bool:
    """True for a call that only writes a log message."""
    if qualified is not None and qualified.startswith("loguru.logger."):
        return qualified.rpartition(".")[2] in LOG_METHODS
    return find_log_call(site, call) is not None


def given_as(function: FunctionNode, call: ast.Call, names: frozenset[str], skipped: int = 0) -> Iterator[ast.expr]:
    """What a call may hand over for parameters of these names."""
    yield from (given for name, given in bound(function, call, skipped).pairs() if name in names)
