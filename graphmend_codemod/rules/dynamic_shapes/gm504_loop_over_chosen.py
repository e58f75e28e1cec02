"""loop-over-chosen (GM504): a loop with a data-dependent number of iterations or slices.

`for i in range(idxs.shape[0])` with `idxs = torch.nonzero(mask)` runs as often as the data says, and `torch.arange(n)`
with a tensor `n` is as long as the data says, so neither can be traced. torch.compile can call such a loop as a whole:
as a custom operator (`torch.library.custom_op`). The operator runs the loop's own text, so compiled results are those
of eager mode, to the last bit.

A function that takes only tensors and returns new tensors whose shapes do not depend on the data becomes an
operator itself. Its fake is the part of the function that makes the results, without the loop that
fills them in.

A loop that fills tensors in place, `places[row, :n] = ...`, moves into a function of its own, which is an operator that
changes these tensors. Eager mode calls the function, where the same text computes the same: the loop reads names that
are certainly bound, no name that it binds is read elsewhere, and it ends at its own end. The tensors have to be made
just before the loop, so that nothing else shares their memory; they and whatever the loop reads are arguments. What the
text of a module does not tell of these, such as that `self.step` is an integer that the instance itself holds, is asked
for while tracing.

No gradient goes through an operator, so trace-time conditions ask that no argument takes one, and that autocast does
nothing to it, but for what was just made of numbers: where one does, the loop breaks the graph as before. A loop that
changes anything else, draws random numbers, or calls more than torch, builtins and functions that only compute is left
alone. An operator hides its inside from the compiler: it is not fused with its surroundings, and waits for the device
as eager mode does. CUDA graphs are recorded around it, where torch is 2.9 or newer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import root_of
from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk_in_layers, walk_scope
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import judged, path_before_body
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR, NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, decorator, head, tensor
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.functions.result_shapes import ResultShapes
from graphmend_codemod.rules.proofs.outlining.functions.shape_parts import CHOOSE
from graphmend_codemod.rules.proofs.outlining.statements import loop_outlining
from graphmend_codemod.rules.proofs.outlining.statements.loop_arguments import without_gradient

rule = Rule(
    __name__,
    __doc__,
    title="run a data-dependent loop as one custom operator under torch.compile",
    contract=Contract(cost=Cost.OUTLINED, cost_note="the loop runs as it does in eager mode"),
)


@rule.on(ast.For)
def loop_over_chosen(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i in range(chosen.shape[0])` in a function outside of classes."""
    scope = site.evaluator.scope
    if scope.class_qualified is not None or "." in site.function or site.place.in_loop:
        return None
    if not _depends_on_data(site, node.iter):
        return None
    message = f"data-dependent number of loop iterations: `{speculation.short(node.iter)}`"
    return judged(message, lambda: edit(site, scope.node), AS_OPERATOR)


@rule.on(ast.For, lines=loop_outlining.writes_of_elements)
def filling_loop(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, row in enumerate(mask): found[i, : row.sum()] = 1`."""
    filling = None if site.place.in_loop else loop_outlining.found(site, node)
    if filling is None:
        return None
    message = f"data-dependent loop that fills `{filling.filled[0]}`: `{speculation.short(filling.cause.node)}`"
    return judged(message, lambda: loop_outlining.edit(site, filling), AS_OPERATOR)


# A function of tensors as one operator: its results, and what it must not do

_COMMENT = "# The loop depends on the data: torch.compile calls this function as one operator."


def _depends_on_data(site: Site, node: ast.expr) -> bool:
    """True when what a loop iterates over is as long as the data says."""
    chosen = _chosen(site)
    return any(
        (isinstance(part, ast.Name) and part.id in chosen) or (isinstance(part, ast.Call) and _chooses(site, part))
        for part in walk_in_layers(node)
    )


def _chosen(site: Site) -> set[str]:
    """Locals whose length or value is what the data says."""
    names: set[str] = set()
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            calls = [part for part in walk_in_layers(node.value) if isinstance(part, ast.Call)]
            if any(_chooses(site, call) for call in calls):
                names.add(node.targets[0].id)
    return names


def _chooses(site: Site, call: ast.Call) -> bool:
    name, _ = site.operation(call)
    return name in CHOOSE or (name == "where" and len(call.args) == 1)


def edit(site: Site, function: FunctionNode) -> Edit:
    """The compile path in front of the function's body that calls it as one operator, with operator and fake.

    NotProven if it does more than make new tensors of known shapes.
    """
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the function is decorated")
    if not site.torch_at_import:
        raise NotProven("`torch` may not be bound when the module is imported; import it at the top of the file")
    names = _tensor_parameters(site, function)
    effects = FunctionEffects(site)
    changed = sorted(effects.changed(function))
    if changed:
        raise NotProven(f"the function changes its argument `{changed[0]}`")
    if effects.random:
        raise NotProven("the function draws random numbers")
    effects.demand_separate_results(function, new=True)
    shapes = ResultShapes(site, function, body_of(function))
    operator = site.free_name(f"_{function.name.strip('_')}_operator")
    fake = site.free_name(f"{operator}_fake")
    tests = [f"{site.torch}.compiler.is_dynamo_compiling()"]
    first = site.flow.places[id(function.body[0])].env
    for name in names:
        tests += [f"{site.torch}.is_tensor({name})"] if first[name].hint else []
        tests += without_gradient(site.torch, name)
    path = path_before_body(site, _COMMENT, tests, f"{operator}({', '.join(names)})")
    helpers = (
        NAMING,
        Helper(operator, _operator(site, function, names, shapes, operator), after=(function.name, "_operator_name")),
        Helper(fake, _fake(site, names, shapes, operator, fake), after=(function.name, operator)),
    )
    return Edit((path,), imports=site.imports, helpers=helpers)


def _tensor_parameters(site: Site, function: FunctionNode) -> list[str]:
    args = function.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        raise NotProven("a custom operator takes positional arguments only")
    first = site.flow.places[id(function.body[0])].env
    for each in args.args:
        if not first[each.arg].is_tensor:
            raise NotProven(
                f"cannot infer that the argument `{each.arg}` is a Tensor; annotate it: `{each.arg}: torch.Tensor`"
            )
    if not args.args:
        raise NotProven("the function has no arguments")
    return [each.arg for each in args.args]


def _sizes(site: Site, function: FunctionNode, names: list[str]) -> Iterator[str]:
    """`ids (rows, columns)` for `rows, columns = ids.shape`."""
    for node in function.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            value = node.value
            if isinstance(value, ast.Attribute) and value.attr == "shape" and root_of(value) in names:
                yield f"`{root_of(value)}` is ({site.text(node.targets[0]).strip('()')})."


def _operator(site: Site, function: FunctionNode, names: list[str], shapes: ResultShapes, operator: str) -> str:
    given = ", ".join(f"Tensor {name}" for name in names)
    made = "Tensor" if shapes.results == 1 else f"({', '.join(['Tensor'] * shapes.results)})"
    sizes = " ".join(_sizes(site, function, names))
    return "\n".join(
        [
            *decorator(site, operator, f"({given}) -> {made}"),
            head(site, operator, [tensor(site, name) for name in names], _returns(site, shapes)),
            f'    """`{function.name}` as one operator for torch.compile.',
            *(["", f"    {sizes}"] if sizes else []),
            '    """',
            f"    return {function.name}({', '.join(names)})",
        ]
    )


def _fake(site: Site, names: list[str], shapes: ResultShapes, operator: str, fake: str) -> str:
    about = '    """Tensors of the same shapes, for tracing."""'
    first = head(site, fake, [tensor(site, name) for name in names], _returns(site, shapes))
    return "\n".join([f"@{operator}.register_fake", first, about, *shapes.lines(as_list=False)])


def _returns(site: Site, shapes: ResultShapes) -> str:
    one = f"{site.torch}.Tensor"
    return one if shapes.results == 1 else "tuple"  # an old Python cannot import more of that
