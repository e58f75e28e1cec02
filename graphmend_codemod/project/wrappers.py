"""What a decorator puts in the place of a function."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend_codemod.project.index.definitions import Module
from graphmend_codemod.project.summary.records import FunctionSummary


def wrappers(module: Module, decorator: FunctionSummary) -> Iterator[FunctionSummary]:
    """The nested functions that a decorator returns, or that the functions it returns return.

    What it returns and calls as well, as in `return decorate if f is None else decorate(f)`, is a decorator itself.
    """
    inner = {function.name: function for function in module.nested.get(decorator.qualname, ())}
    for name in decorator.returned:
        function = inner.get(name.removesuffix("()"))
        if function is not None:
            deeper = list(wrappers(module, function))
            yield from deeper if deeper or name.endswith("()") else [function]
