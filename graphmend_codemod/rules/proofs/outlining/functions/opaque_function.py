"""A function as one opaque operator: its body stays, and torch.compile calls it as a whole.

The compile path stands in front of the body and asks while tracing whether an operator can take what is given. What the
function returns has to have shapes that do not depend on data; `result_shapes` cuts the part out of it that makes them.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, root_of
from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import path_before_body
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of_words
from graphmend_codemod.rules.proofs.constants import cached_functions
from graphmend_codemod.rules.proofs.outlining.custom_op import call, calling, functions, one_operator, operator_name
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.effects.library_effects import check_gradient
from graphmend_codemod.rules.proofs.outlining.functions import array_functions, state_updates
from graphmend_codemod.rules.proofs.outlining.functions.result_shapes import ResultShapes, empty_results
from graphmend_codemod.rules.proofs.outlining.functions.state_updates import method_parameters
from graphmend_codemod.rules.proofs.outlining.operator_arguments import handed_on, operator_arguments
from graphmend_codemod.rules.proofs.outlining.statements.ctc_losses import lengths_asked

_COMMENT = "# torch.compile cannot trace this function: it calls it as one operator."


def edit(site: Site) -> Edit:
    """The compile path in front of the body of the function around the site. NotProven where that would show."""
    # Gradients are all that a place in the function decides.
    return site.proven_once(f"opaque function {site.no_grad}", site.evaluator.scope.node, lambda: _edit(site))


def _edit(site: Site) -> Edit:
    function = site.evaluator.scope.node
    if cached_functions.is_cached(site):
        return cached_functions.edit(site)
    if site.evaluator.scope.class_qualified is not None:
        return method_edit(site) if is_method_with_results(site) else state_updates.edit(site)
    names = _parameters(site, function)
    if (made := array_functions.array_made(site, function)) is not None:
        return array_functions.edit(site, names, made)
    effects = FunctionEffects(site)
    if any(name in names for name in effects.changed(function)):
        raise NotProven("the function changes one of its arguments")
    effects.demand_separate_results(function)
    check_gradient(site, function)
    return _called(site, function, names, ResultShapes(site, function, body_of(function)), effects.random)


def _called(site: Site, function: FunctionNode, names: list[str], shapes: ResultShapes, random: bool) -> Edit:
    """The edit. Where the function draws random numbers, the operator of layers keeps their state."""
    fits = "_fits_an_operator" if random else "_fits_a_function"
    asked = call(site, fits, ["__name__", "None", "()", *names] if random else names, 1).lstrip()
    given, takes = (["None", *names], ["_", *names]) if random else (names, names)
    name, operator = function.name, operator_name(site, function.name)
    shared = one_operator(site) if random else functions(site, gradient=shapes.smooth)
    made, last = f"{operator}_shapes", shared[-1].name
    decorator = f"{last}(shapes={made}{shapes.nested})"
    text = calling(
        operator, decorator, "_, *given" if random else "*given", name, f"return code({handed_on(function)})"
    )
    helpers = (
        *shared,
        Helper(made, empty_results(shapes, made, takes), after=(name, last)),
        Helper(operator, text, after=(name, last, made)),
    )
    lengths = dict.fromkeys(lengths_asked(site, body_of(function), names))
    conditions = ["torch.compiler.is_dynamo_compiling()", *lengths, asked]
    path = path_before_body(site, _COMMENT, conditions, f"{operator}({', '.join(given)})")
    return Edit((path,), ("torch",), helpers, whole=True)


def is_method_with_results(site: Site) -> bool:
    """True in a method that returns something: it is taken whole only where nothing less will do."""
    scope = site.evaluator.scope
    returns = any(isinstance(part, ast.Return) and part.value is not None for part in walk(scope.node))
    return scope.class_qualified is not None and returns


def _parameters(site: Site, function: FunctionNode) -> list[str]:
    demand_torch(site)
    if "." in site.function:
        raise NotProven("the code is in a nested function; move it into a function of its own")
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the function is decorated")
    names = operator_arguments(function)
    if not names:
        raise NotProven("the function has no arguments")
    return names


# A method that only computes its results, from arguments and what the instance holds, as one opaque operator

_METHOD = "# torch.compile cannot trace this method: it calls it as one operator."
_NUMBERS = frozenset({AttributeKind.CONSTANT, AttributeKind.CONFIG, AttributeKind.ARGUMENT})


def method_edit(site: Site) -> Edit:
    """The compile path in front of the body of the method around the site. NotProven where that would show."""
    scope, function = site.evaluator.scope, site.evaluator.scope.node
    own, owner = scope.self_name or "", site.class_name
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
    shapes = ResultShapes(site, function, body_of(function))
    parts = ", ".join(f'"{each}"' for each in sorted(effects.read))
    given = ["__name__", own, tuple_of_words(sorted(effects.read)), *names, *numbers_read(site, effects, own)]
    conditions = ["torch.compiler.is_dynamo_compiling()", *([f"type({own}) is {owner}"] if effects.methods else [])]
    conditions += dict.fromkeys(lengths_asked(site, body_of(function), names))
    conditions.append(call(site, "_fits_an_operator", given, 1).lstrip())
    operator = operator_name(site, function.name)
    path = path_before_body(site, _METHOD, conditions, f"{operator}({', '.join([own, *names])})")
    decorator = f"_one_operator({parts}{', ' if parts else ''}shapes={operator}_shapes{shapes.nested})"
    method = f"{owner}.{function.name}"
    made = calling(operator, decorator, f"{own}, *given", method, f"return code({own}, {handed_on(function)})")
    empty = empty_results(shapes, f"{operator}_shapes", [own, *names])
    helpers = (
        *one_operator(site),
        Helper(f"{operator}_shapes", empty, after=("_one_operator",)),
        Helper(operator, made, after=("_one_operator", f"{operator}_shapes", owner)),
    )
    return Edit((path,), ("torch",), helpers)


def _check_returned(function: FunctionNode, own: str) -> None:
    """NotProven where the method hands out what the instance holds: an operator hands out a copy."""
    for node in (part for part in walk(function) if isinstance(part, ast.Return)):
        for value in elements_of(node.value) if node.value is not None else ():
            if root_of(value) == own:
                raise NotProven(f"`{short(value)}` is handed out, which the instance holds")


def numbers_read(site: Site, effects: FunctionEffects, own: str) -> list[str]:
    """The attributes of the instance that are numbers, as far as its class says."""
    facts = {name: site.evaluator.scope.attribute(name) for name in sorted(effects.read)}
    return [
        f"{own}.{name}"
        for name, fact in facts.items()
        if name == "training" or (fact is not None and fact.kind in _NUMBERS)
    ]
