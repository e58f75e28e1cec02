"""A function as one opaque operator: its body stays, and torch.compile calls it as a whole.

The compile path stands in front of the body and asks while tracing whether an operator can take what is given. What the
function returns has to have shapes that do not depend on data; `result_shapes` cuts the part out of it that makes them.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, root_of
from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.constants import cached_functions
from graphmend_codemod.rules.proofs.outlining import array_functions, state_updates
from graphmend_codemod.rules.proofs.outlining.custom_op import call, functions, one_operator, operator_name
from graphmend_codemod.rules.proofs.outlining.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.library_effects import check_gradient
from graphmend_codemod.rules.proofs.outlining.result_shapes import ResultShapes, empty_results
from graphmend_codemod.rules.proofs.outlining.state_updates import method_parameters

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
        return method_edit(site) if is_method_with_results(site) else state_updates.edit(site)
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


# A method that only computes its results, from arguments and what the instance holds, as one opaque operator

_METHOD = "# torch.compile cannot trace this method: it calls it as one operator."
_NUMBERS = frozenset({AttributeKind.CONSTANT, AttributeKind.CONFIG, AttributeKind.ARGUMENT})


def method_edit(site: Site) -> Edit:
    """The compile path in front of the body of the method around the site. NotProven where that would show."""
    scope, function = site.evaluator.scope, site.evaluator.scope.node
    own, owner = scope.self_name or "", (scope.class_qualified or "").rpartition(".")[2]
    names = method_parameters(site, function, own)
    if scope.class_facts is None or not scope.class_facts.is_module:
        raise NotProven(f"`{owner}` is no `nn.Module`, by which the operator finds what the method reads")
    effects = FunctionEffects(site)
    if effects.changed(function, own=own) or effects.set or effects.off:
        raise NotProven("the method returns something and changes something, too; move one into a method of its own")
    if effects.parts:
        raise NotProven(f"`{next(iter(effects.parts.values()))}` is not held by the instance of the method itself")
    effects.demand_separate_results(function, own)
    check_gradient(site, function)
    _check_returned(function, own)
    body = body_of(function)
    shapes, first = ResultShapes(site, function, body), site.at(body[0])
    if first is None:
        raise NotProven("the function is not reached by torch.compile")
    parts = ", ".join(f'"{each}"' for each in sorted(effects.read))
    given = [own, f"({parts}{',' if len(effects.read) == 1 else ''})", *names, *_numbers(site, effects, own)]
    conditions = ["torch.compiler.is_dynamo_compiling()", *([f"type({own}) is {owner}"] if effects.methods else [])]
    conditions.append(call(site, "_fits_an_operator", given, 1).lstrip())
    operator = operator_name(site, function.name)
    result = f"return {operator}({', '.join([own, *names])})"
    text = f"{_METHOD}\n" + under(first.header("if", conditions), result) + "\n"
    results = "" if shapes.results == 1 else f", nested=({', '.join(map(str, range(shapes.results)))})"
    made = [
        f"@_one_operator({parts}{', ' if parts else ''}shapes={operator}_shapes{results})",
        f"def {operator}({own}, *given):",
        f'    """`{owner}.{function.name}` as one operator for torch.compile."""',
        f"    return {owner}.{function.name}({own}, *given)",
    ]
    empty = empty_results(shapes, f"{operator}_shapes", [own, *names])
    helpers = (
        *one_operator(site),
        Helper(f"{operator}_shapes", empty, after=("_one_operator",)),
        Helper(operator, "\n".join(made), after=("_one_operator", f"{operator}_shapes")),
    )
    return Edit((Replacement(site.span(body[0]), (text, site.original(body[0]))),), ("torch",), helpers)


def _check_returned(function: FunctionNode, own: str) -> None:
    """NotProven where the method hands out what the instance holds: an operator hands out a copy."""
    for node in (part for part in walk(function) if isinstance(part, ast.Return)):
        for value in elements_of(node.value) if node.value is not None else ():
            if root_of(value) == own:
                raise NotProven(f"`{short(value)}` is handed out, which the instance holds")


def _numbers(site: Site, effects: FunctionEffects, own: str) -> list[str]:
    """The attributes of the instance that are numbers, as far as its class says."""
    facts = {name: site.evaluator.scope.attribute(name) for name in sorted(effects.read)}
    return [
        f"{own}.{name}"
        for name, fact in facts.items()
        if name == "training" or (fact is not None and fact.kind in _NUMBERS)
    ]
