"""A method that only computes its results, from arguments and what the instance holds, as one opaque operator.

The operator gets the tensors of the instance as inputs, so that gradients reach them, and runs the author's method.
Numbers are read where the method reads them; the compile path reads them too, so that Dynamo has a guard on each.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, root_of
from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import call, one_operator
from graphmend_codemod.rules.proofs.outlining.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.library_effects import check_gradient
from graphmend_codemod.rules.proofs.outlining.result_shapes import ResultShapes, empty_results
from graphmend_codemod.rules.proofs.outlining.shared_helpers import operator_name
from graphmend_codemod.rules.proofs.outlining.state_updates import method_parameters

_COMMENT = "# torch.compile cannot trace this method: it calls it as one operator."
_NUMBERS = frozenset({AttributeKind.CONSTANT, AttributeKind.CONFIG, AttributeKind.ARGUMENT})


def edit(site: Site) -> Edit:
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
    text = f"{_COMMENT}\n" + under(first.header("if", conditions), result) + "\n"
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
