"""What the parameters of a function tell: their annotations, and what their defaults say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from graphmend_codemod.project.summary.spelling import Lines, dotted

_NONE: frozenset[str] = frozenset()


def defaults(arguments: ast.arguments) -> dict[str, str]:
    """The parameters whose default is a name, such as a function that is called where nobody gives another."""
    if not arguments.defaults and not arguments.kw_defaults:
        return {}
    return {each.arg: spelled for each, default in _with_defaults(arguments) if (spelled := dotted(default))}


def _with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    yield from ((each, given) for each, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if given)


def python_parameters(arguments: ast.arguments) -> AbstractSet[str]:
    """Parameters whose default says that they are switches or numbers, for want of an annotation."""
    if not arguments.defaults and not arguments.kw_defaults:
        return _NONE
    return {
        each.arg
        for each, default in _with_defaults(arguments)
        if each.annotation is None and type(default) is ast.Constant and default.value is not None
    }


def signature(arguments: ast.arguments, lines: Lines) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """All parameters with their annotations, empty for none, and those that have one."""
    parameters: dict[str, str] = {}
    annotated = []
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if each.annotation is None:
            parameters[each.arg] = ""
        else:
            spelled = lines.annotation(each.annotation)
            parameters[each.arg] = spelled
            annotated.append((each.arg, spelled))
    for extra, shape in ((arguments.vararg, "tuple"), (arguments.kwarg, "dict")):
        if extra is not None:
            spelled = f"{shape}[{lines.annotation(extra.annotation)}]" if extra.annotation is not None else ""
            parameters[extra.arg] = spelled
            if spelled:
                annotated.append((extra.arg, spelled))
    return parameters, tuple(annotated)
