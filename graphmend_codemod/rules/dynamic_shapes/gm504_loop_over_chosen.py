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
from dataclasses import dataclass

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_name, root_of, stored_names
from graphmend_codemod.analysis.scope import FunctionNode, body_of, walk_in_layers, walk_scope
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import judged, path_before_body
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR, NotProven, cannot_infer_tensor
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining import loop_outlining
from graphmend_codemod.rules.proofs.outlining.custom_op import decorator, head, naming, tensor
from graphmend_codemod.rules.proofs.outlining.loop_arguments import without_gradient

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
    if not depends_on_data(site, node.iter):
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

_CHOOSING = frozenset("nonzero argwhere unique unique_consecutive masked_select".split())
_READING = frozenset("item tolist numpy".split())
_VALUE_SIZED = frozenset("bincount repeat_interleave one_hot histc".split())
_COMMENT = "# The loop depends on the data: torch.compile calls this function as one operator."


def depends_on_data(site: Site, node: ast.expr) -> bool:
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
    return name in _CHOOSING or name in _READING or (name == "where" and len(call.args) == 1)


def edit(site: Site, function: FunctionNode) -> Edit:
    """The compile path in front of the function's body that calls it as one operator, with operator and fake.

    NotProven if it does more than make new tensors of known shapes.
    """
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the function is decorated")
    if not site.torch_at_import:
        raise NotProven("`torch` may not be bound when the module is imported; import it at the top of the file")
    names = _tensor_parameters(site, function)
    _check_effects(site, function, names)
    slice_ = _Slice(site, function, body_of(function), names)
    operator = site.free_name(f"_{function.name.strip('_')}_operator")
    fake = site.free_name(f"{operator}_fake")
    tests = [f"{site.torch}.compiler.is_dynamo_compiling()"]
    first = site.flow.places[id(function.body[0])].env
    for name in names:
        tests += [f"{site.torch}.is_tensor({name})"] if first[name].hint else []
        tests += without_gradient(site.torch, name)
    path = path_before_body(site, _COMMENT, tests, f"{operator}({', '.join(names)})")
    helpers = (
        naming(site),
        Helper(operator, _operator(site, function, names, slice_, operator), after=(function.name, "_operator_name")),
        Helper(fake, _fake(site, names, slice_, operator, fake), after=(function.name, operator)),
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


def _check_effects(site: Site, function: FunctionNode, names: list[str]) -> None:
    for node in walk_scope(function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotProven("the function has side effects")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            raise NotProven("the function defines a nested function")
        target = _written(node)
        if target is not None and root_of(target) in names and isinstance(target, (ast.Subscript, ast.Attribute)):
            raise NotProven(f"the function changes its argument `{root_of(target)}`")
        if isinstance(node, ast.Call):
            _check_call(site, node, names)


def _written(node: ast.AST) -> ast.expr | None:
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return node
    return None


def _check_call(site: Site, call: ast.Call, names: list[str]) -> None:
    qualified = site.resolve(call.func)
    name = torch_api.torch_function(qualified)
    if qualified is not None and name is None and not qualified.startswith(("builtins.", "torch.")):
        raise NotProven(f"`{speculation.short(call)}` may have side effects")
    method = call.func.attr if qualified is None and isinstance(call.func, ast.Attribute) else name
    if method in aliasing.RANDOM or qualified in {"builtins.print", "builtins.input", "builtins.open"}:
        raise NotProven(f"`{speculation.short(call)}` has effects")
    own = isinstance(call.func, ast.Attribute) and qualified is None and root_of(call.func) in names
    if own and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        raise NotProven(f"the function changes its argument `{root_of(call.func)}`")
    if qualified is None and not isinstance(call.func, ast.Attribute):
        raise NotProven(f"`{speculation.short(call)}` may have side effects")


@dataclass
class _Slice:
    """The statements that make the results, without those that only fill them in."""

    site: Site
    function: FunctionNode
    body: list[ast.stmt]
    parameters: list[str]

    def __post_init__(self) -> None:
        last = self.body[-1]
        returns = [node for node in walk_scope(self.function) if isinstance(node, ast.Return)]
        if not isinstance(last, ast.Return) or last.value is None or len(returns) != 1:
            raise NotProven("the function must have exactly one `return`, at its end")
        self.result: ast.expr = last.value
        self.results = list(last.value.elts) if isinstance(last.value, ast.Tuple) else [last.value]
        self.kept = self._kept(last)
        roots = [self._root(result, last) for result in self.results]
        if len(set(roots)) < len(roots):
            raise NotProven("two results may share storage")

    def _kept(self, last: ast.Return) -> list[ast.stmt]:
        needed = all_names(self.result)
        self._check_static(self.result, last)
        kept: list[ast.stmt] = [last]
        for statement in reversed(self.body[:-1]):
            bound = stored_names([statement, *walk_scope(statement)])
            if not bound & needed:
                continue
            if not isinstance(statement, ast.Assign):
                raise NotProven(f"the shape of a result may depend on `{speculation.short(statement)}`")
            self._check_static(statement.value, statement)
            needed |= all_names(statement.value)
            kept.insert(0, statement)
        return kept

    def _check_static(self, node: ast.expr, statement: ast.stmt) -> None:
        """Refuse what the data sizes."""
        site = self.site.reached(statement)
        chosen = _chosen(site)
        for part in walk_in_layers(node):
            if isinstance(part, ast.Name) and part.id in chosen:
                raise NotProven(f"the shape of a result depends on `{part.id}`")
            if isinstance(part, ast.Subscript) and site.value(part.value).is_tensor and not _plain(part.slice):
                raise NotProven(f"the shape of a result may depend on `{speculation.short(part)}`")
            if isinstance(part, ast.Call):
                self._check_sized(site, part)

    def _check_sized(self, site: Site, call: ast.Call) -> None:
        name, _ = site.operation(call)
        known = name in torch_api.RETURNS_TENSOR or name in torch_api.PYTHON_METHODS or site.value(call).is_python
        sized = name in torch_api.CREATION or name in {"repeat", "expand", "view", "reshape", "narrow"}
        values = [site.value(argument) for argument in call.args if not isinstance(argument, ast.Starred)]
        if not known or _chooses(site, call) or name in _VALUE_SIZED:
            raise NotProven(f"the shape of a result may depend on `{speculation.short(call)}`")
        if sized and not (name or "").endswith("_like") and not all(value.is_python for value in values):
            raise NotProven(f"the shape of a result may depend on `{speculation.short(call)}`")

    def _root(self, node: ast.expr, statement: ast.stmt) -> int:
        """What stands for the storage of a result: the expression that made it."""
        site = self.site.at(statement)
        value = site.value(node) if site is not None else None
        if value is None or not value.is_tensor:
            raise NotProven(cannot_infer_tensor(self.site, node))
        if isinstance(node, ast.Name):
            for earlier in reversed(self.kept):
                target = earlier.targets[0] if isinstance(earlier, ast.Assign) else None
                if earlier is not statement and is_name(target, node.id):
                    return self._root(earlier.value, earlier)  # type: ignore[attr-defined]
            raise NotProven(f"the result `{node.id}` may be an argument")
        if self.site.is_fresh(value):
            return id(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self.site.resolve(node.func) is None:
            return self._root(node.func.value, statement)
        raise NotProven(f"`{speculation.short(node)}` may share storage with an argument")


def _plain(index: ast.expr) -> bool:
    parts = elements_of(index)
    return all(isinstance(part, (ast.Constant, ast.Slice, ast.UnaryOp)) for part in parts)


def _shapes(site: Site, slice_: _Slice) -> Iterator[str]:
    """`ids (rows, columns)` for `rows, columns = ids.shape`."""
    for node in slice_.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            value = node.value
            if isinstance(value, ast.Attribute) and value.attr == "shape" and root_of(value) in slice_.parameters:
                yield f"`{root_of(value)}` is ({site.text(node.targets[0]).strip('()')})."


def _operator(site: Site, function: FunctionNode, names: list[str], slice_: _Slice, operator: str) -> str:
    count = len(slice_.results)
    given = ", ".join(f"Tensor {name}" for name in names)
    several = isinstance(slice_.result, ast.Tuple)
    schema = f"({given}) -> ({', '.join(['Tensor'] * count)})" if several else f"({given}) -> Tensor"
    shapes = " ".join(_shapes(site, slice_))
    return "\n".join(
        [
            *decorator(site, operator, schema),
            head(site, operator, [tensor(site, name) for name in names], _returns(site, slice_)),
            f'    """`{function.name}` as one operator for torch.compile.',
            *(["", f"    {shapes}"] if shapes else []),
            '    """',
            f"    return {function.name}({', '.join(names)})",
        ]
    )


def _fake(site: Site, names: list[str], slice_: _Slice, operator: str, fake: str) -> str:
    lines = [f"    {ast.unparse(statement)}" for statement in slice_.kept]
    about = '    """Tensors of the same shapes, for tracing."""'
    first = head(site, fake, [tensor(site, name) for name in names], _returns(site, slice_))
    return "\n".join([f"@{operator}.register_fake", first, about, *lines])


def _returns(site: Site, slice_: _Slice) -> str:
    one = f"{site.torch}.Tensor"
    return f"tuple[{', '.join([one] * len(slice_.results))}]" if isinstance(slice_.result, ast.Tuple) else one
