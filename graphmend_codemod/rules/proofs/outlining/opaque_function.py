"""A function as one opaque operator: its body stays, and torch.compile calls it as a whole.

The compile path stands in front of the body and asks while tracing whether an operator can take what is given. What the
function returns has to have shapes that do not depend on data; `result_shapes` cuts the part out of it that makes them.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import FunctionNode, walk
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import state_updates
from graphmend_codemod.rules.proofs.outlining.custom_op import call, one_operator
from graphmend_codemod.rules.proofs.outlining.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.result_shapes import ResultShapes

_COMMENT = "# torch.compile cannot trace this function: it calls it as one operator."
_ARRAYS = frozenset({"numpy", "__array__", "data_ptr"})


def edit(site: Site) -> Edit:
    """The compile path in front of the body of the function around the site. NotProven where that would show."""
    if site.evaluator.scope.class_qualified is not None:
        return state_updates.edit(site)
    function = site.evaluator.scope.node
    names = _parameters(site, function)
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if any(name in names for name in FunctionEffects(site).changed(function)):
        raise NotProven("the function changes one of its arguments")
    _check_gradient(site, function)
    shapes = ResultShapes(site, function, body)
    operator = site.free_name(f"_{function.name.strip('_')}_operator")
    given = ["None", *names]
    test = call(site, "_fits_an_operator", ["None", "()", *names], 1).lstrip()
    header = site.at(body[0])
    if header is None:
        raise NotProven("the function is not reached by torch.compile")
    condition = header.header("if", ["torch.compiler.is_dynamo_compiling()", test])
    text = f"{_COMMENT}\n{condition}\n    return {operator}({', '.join(given)})\n"
    replacement = Replacement(site.span(body[0]), (text, site.original(body[0])))
    made = _shapes(shapes, operator, names)
    helpers = (
        *one_operator(site),
        Helper(f"{operator}_shapes", made, after=(function.name, "_one_operator")),
        Helper(
            operator,
            _operator(site, function, names, operator, shapes.results),
            after=(function.name, "_one_operator", f"{operator}_shapes"),
        ),
    )
    return Edit((replacement,), imports=("torch",), helpers=helpers)


def _parameters(site: Site, function: FunctionNode) -> list[str]:
    args = function.args
    if site.torch != "torch" or not site.torch_at_import:
        raise NotProven("`torch` may not be bound when the module is imported")
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


def _check_gradient(site: Site, function: FunctionNode) -> None:
    for part in walk(function):
        if isinstance(part, ast.keyword) and part.arg == "requires_grad":
            raise NotProven("it makes a tensor that requires gradients, which an operator does not hand out")
        if isinstance(part, ast.Attribute) and part.attr in _ARRAYS and not site.no_grad:
            raise NotProven(f"a gradient cannot run `.{part.attr}()` again; write `.tolist()`")


def _shapes(shapes: ResultShapes, operator: str, names: list[str]) -> str:
    head = f"def {operator}_shapes(_, {', '.join(names)}):"
    if len(head) > 79:
        head = "\n".join([f"def {operator}_shapes(", "    _,", *(f"    {name}," for name in names), "):"])
    lines = [
        f"    {line}"
        for each in shapes.statements
        for line in ast.unparse(ast.fix_missing_locations(each)).splitlines()
    ]
    return "\n".join([head, '    """Tensors of the shapes and dtypes of the results, for tracing."""', *lines])


def _operator(site: Site, function: FunctionNode, names: list[str], operator: str, results: int) -> str:
    nested = "" if results == 1 else f", nested=({', '.join(map(str, range(results)))})"
    return "\n".join(
        [
            f"@_one_operator(shapes={operator}_shapes{nested})",
            f"def {operator}(_, *given):",
            f'    """`{function.name}` as one operator for torch.compile."""',
            f"    return {function.name}(*given)",
        ]
    )
