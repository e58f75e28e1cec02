"""The parameters of a function or method that an operator gets, and how it hands them on to the author's code."""

from __future__ import annotations

from graphmend_codemod.analysis.patterns import mentions, positional_names
from graphmend_codemod.analysis.scope import FunctionNode, body_of
from graphmend_codemod.rules.framework.reasons import NotProven


def operator_arguments(function: FunctionNode) -> list[str]:
    """The names of the parameters, those by name only behind the others.

    NotProven where the body reads `*args` or `**options`: an operator does not get what only the caller counts.
    """
    for starred in (function.args.vararg, function.args.kwarg):
        if starred is not None and any(mentions(each, starred.arg) for each in body_of(function)):
            raise NotProven(f"it reads `{starred.arg}`, which holds any number of arguments")
    return [*positional_names(function), *_by_name(function)]


def handed_on(function: FunctionNode) -> str:
    """How an operator calls the code with its arguments `given`: `*given[:-1], eps=given[-1]`."""
    names = _by_name(function)
    if not names:
        return "*given"
    words = [f"{name}=given[{place - len(names)}]" for place, name in enumerate(names)]
    return ", ".join([f"*given[:-{len(names)}]", *words])


def _by_name(function: FunctionNode) -> list[str]:
    return [each.arg for each in function.args.kwonlyargs]
