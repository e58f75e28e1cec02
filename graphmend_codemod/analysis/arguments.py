"""Which parameter of a function holds what a call gives it: the one place that binds arguments to parameters.

Who asks what certainly goes where takes `plain`. Who must not miss anything takes `pairs` or `holding`: they count what
stars hide, what `*rest` and `**words` gather, and arguments that no parameter takes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import positional_names
from graphmend_codemod.analysis.scope import FunctionNode, parameter_names


class Arguments(NamedTuple):
    """What a call gives a function.

    `plain` has the parameters that hold one argument as it is. `others` are the arguments that are not among these,
    each with the parameters that may hold it or a part of it.
    """

    plain: dict[str, ast.expr]
    others: tuple[tuple[ast.expr, frozenset[str]], ...] = ()

    def get(self, name: str) -> ast.expr | None:
        """The argument that a parameter certainly holds; None where the call gives none, or does not tell."""
        return self.plain.get(name)

    def parameter_of(self, node: ast.expr) -> str | None:
        """The parameter that holds an argument as it is; None where `*rest`, a star or `**words` is in between."""
        return next((name for name, each in self.plain.items() if each is node), None)

    def pairs(self) -> Iterator[tuple[str, ast.expr]]:
        """Each parameter with each argument that it may hold, or a part of which."""
        yield from self.plain.items()
        yield from ((name, each) for each, names in self.others for name in sorted(names))

    def holding(self, asked: Callable[[ast.expr], bool]) -> frozenset[str]:
        """The parameters that may hold an argument for which the answer is yes, or a part of it."""
        found = {name for name, each in self.plain.items() if asked(each)}
        return frozenset(found.union(*(names for each, names in self.others if asked(each))))


def bound(function: FunctionNode | ast.Lambda, call: ast.Call, skipped: int = 0) -> Arguments:
    """What a call gives a function. The first parameters, `skipped` of them, get something else: an instance."""
    args, names = function.args, positional_names(function)
    own, names = set(names[:skipped]), names[skipped:]
    stars = [number for number, each in enumerate(call.args) if isinstance(each, ast.Starred)]
    first = stars[0] if stars else len(call.args)
    plain = dict(zip(names, call.args[:first], strict=False))
    by_name = {each.arg for each in (*args.args, *args.kwonlyargs)} - own - plain.keys()
    plain |= {word.arg: word.value for word in call.keywords if word.arg in by_name}
    if len(plain) == len(call.args) + len(call.keywords):
        return Arguments(plain)  # most calls
    free = parameter_names(function) - own - plain.keys()
    behind = frozenset(free.intersection(names[first:]) | _name_of(args.vararg))
    anywhere = frozenset(parameter_names(function) - own)  # the call raises, or runs something else
    others = [
        (each.value if isinstance(each, ast.Starred) else each, behind or anywhere)
        for each in call.args[min(first, len(names)) :]
    ]
    for word in call.keywords:
        hidden = by_name - plain.keys() if word.arg is None else set()
        if word.arg is None or plain.get(word.arg) is not word.value:
            others.append((word.value, frozenset(hidden | _name_of(args.kwarg)) or anywhere))
    return Arguments(plain, tuple(others))


def _name_of(argument: ast.arg | None) -> set[str]:
    return {argument.arg} if argument is not None else set()
