"""A function as one opaque operator: its body stays, and torch.compile calls it as a whole.

The compile path stands in front of the body and asks while tracing whether an operator can take what is given. What the
function returns has to have shapes that do not depend on data; `result_shapes` cuts the part out of it that makes them.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.constants import cached_functions
from graphmend_codemod.rules.proofs.outlining import array_functions, method_results, state_updates
from graphmend_codemod.rules.proofs.outlining.custom_op import call, one_operator
from graphmend_codemod.rules.proofs.outlining.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.library_effects import check_gradient
from graphmend_codemod.rules.proofs.outlining.result_shapes import ResultShapes, empty_results
from graphmend_codemod.rules.proofs.outlining.shared_helpers import functions, operator_name

_COMMENT = "# torch.compile cannot trace this function: it calls it as one operator."


def edit(site: Site) -> Edit:
    """The compile path in front of the body of the function around the site. NotProven where that would show."""

    def look() -> Edit | str:
        try:
            return _edit(site)
        except NotProven as why:
            return str(why)

    # Gradients are all that a place in the function decides.
    question = f"opaque function {site.no_grad}"
    found = site.remembered(question, site.evaluator.scope.node, look, anywhere=True)
    if isinstance(found, str):
        raise NotProven(found)
    return found


def _edit(site: Site) -> Edit:
    function = site.evaluator.scope.node
    if cached_functions.is_cached(site):
        return cached_functions.edit(site)
    if site.evaluator.scope.class_qualified is not None:
        return method_results.edit(site) if is_method_with_results(site) else state_updates.edit(site)
    names = _parameters(site, function)
    if array_functions.draws_arrays(site):
        return array_functions.edit(site, names)
    body = body_of(function)
    effects = FunctionEffects(site)
    if any(name in names for name in effects.changed(function)):
        raise NotProven("the function changes one of its arguments")
    effects.demand_separate_results(function)
    check_gradient(site, function)
    shapes = ResultShapes(site, function, body)
    text = _Text(site, function, names, shapes, effects.random)
    header = site.reached(body[0], "the function")
    condition = header.header("if", ["torch.compiler.is_dynamo_compiling()", text.condition])
    path = f"{_COMMENT}\n" + under(condition, f"return {text.operator}({', '.join(text.given)})") + "\n"
    return Edit(
        (Replacement(site.span(body[0]), (path, site.original(body[0]))),), ("torch",), text.helpers(), whole=True
    )


def is_method_with_results(site: Site) -> bool:
    """True in a method that returns something: it is taken whole only where nothing less will do."""
    scope = site.evaluator.scope
    returns = any(isinstance(part, ast.Return) and part.value is not None for part in walk(scope.node))
    return scope.class_qualified is not None and returns


def _parameters(site: Site, function: FunctionNode) -> list[str]:
    args = function.args
    demand_torch(site)
    if "." in site.function:
        raise NotProven("the code is in a nested function; move it into a function of its own")
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the function is decorated")
    if args.vararg or args.kwarg or args.kwonlyargs:
        raise NotProven("the function takes any number of arguments, or some by name only")
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    if not names:
        raise NotProven("the function has no arguments")
    return names


class _Text:
    """What is written for one function. Where it draws random numbers, the operator of layers keeps their state."""

    def __init__(
        self, site: Site, function: FunctionNode, names: list[str], shapes: ResultShapes, random: bool
    ) -> None:
        self._site, self._function, self._names, self._shapes = site, function, names, shapes
        self._random = random
        self.operator = operator_name(site, function.name)
        self.given = ["None", *names] if random else names
        fits = "_fits_an_operator" if random else "_fits_a_function"
        self.condition = call(site, fits, ["None", "()", *names] if random else names, 1).lstrip()

    def helpers(self) -> tuple[Helper, ...]:
        """The definitions that the compile path needs, in an order in which each comes after what it needs."""
        name, shapes = self._function.name, f"{self.operator}_shapes"
        given = ["_", *self._names] if self._random else self._names
        shared = one_operator(self._site) if self._random else functions(self._site, gradient=self._shapes.smooth)
        return (
            *shared,
            Helper(shapes, empty_results(self._shapes, shapes, given), after=(name, shared[-1].name)),
            Helper(self.operator, self._one_operator(shared[-1].name), after=(name, shared[-1].name, shapes)),
        )

    def _one_operator(self, decorator: str) -> str:
        results = self._shapes.results
        nested = "" if results == 1 else f", nested=({', '.join(map(str, range(results)))})"
        return "\n".join(
            [
                f"@{decorator}(shapes={self.operator}_shapes{nested})",
                f"def {self.operator}({'_, ' if self._random else ''}*given):",
                f'    """`{self._function.name}` as one operator for torch.compile."""',
                f"    return {self._function.name}(*given)",
            ]
        )
