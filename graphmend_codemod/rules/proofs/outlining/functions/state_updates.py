"""A method that only changes tensors of its instance as one opaque operator: queues, codebooks, statistics.

The operator gets these tensors and gives their new values back, which the graph then copies into them: so nothing has
to be known of shapes, and the compiler sees each change. It runs the author's method on a stand-in for the instance,
which holds the tensors of the graph.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import names_bound
from graphmend_codemod.analysis.scope import FunctionNode, walk, walk_scope
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import asks_compiler, path_before_body, path_beside
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of_words
from graphmend_codemod.rules.proofs.calls.unique_callee import beside_compile_paths
from graphmend_codemod.rules.proofs.memory.initialised_state import owning
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, calling, decorator, operator_name
from graphmend_codemod.rules.proofs.outlining.effects import single_process
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.operator_arguments import handed_on, operator_arguments
from graphmend_codemod.rules.proofs.outlining.texts import updates as texts

_COMMENT = "# torch.compile cannot trace this method: it calls it as one operator."
_DECORATORS = frozenset({"torch.no_grad", "torch.jit.ignore", "torch.jit.unused"})
_CONTAINERS = ("builtins.", "collections.")
_TENSORS = frozenset({AttributeKind.BUFFER, AttributeKind.PARAMETER})
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
_SCHEMA = "(Tensor[] held, Tensor[] given, int number) -> Tensor[]"


class Update(NamedTuple):
    """What an operator changes: `tensors` of the instance, the first `changed` of them, under `conditions`."""

    tensors: list[str]
    changed: int
    conditions: list[str]


def edit(site: Site) -> Edit:
    """The compile path in front of the body of the method around the site. NotProven where that would show."""
    function, scope = site.evaluator.scope.node, site.evaluator.scope
    own, owner = scope.self_name or "", site.class_name
    names = method_parameters(site, function, own)
    update = update_of(site, function, own, names, names_bound(function))
    operator = operator_name(site, function.name)
    path = path_before_body(site, _COMMENT, update.conditions, f"{operator}({', '.join([own, *names])})")
    method = f"{owner}.{function.name}"
    words = decorating(update)
    text = calling(operator, words, "self, *given", method, f"code(self, {handed_on(function)})")
    return edit_of(site, path, update, Helper(operator, text, after=("_one_update", owner)), whole=True)


def update_of(site: Site, function: FunctionNode, own: str, names: Sequence[str], local: Collection[str]) -> Update:
    """What a function changes of the instance `own`; NotProven where it does anything else. `names` are its others."""
    effects = FunctionEffects(site, updates=True)
    changed = effects.changed(function, own=own)
    if not changed:
        raise NotProven("the method changes nothing that it holds")
    if any(name[0] != "." for name in changed):
        raise NotProven("the method changes one of its arguments")
    written = sorted(name[1:] for name in changed)
    if (held := next((each for each in written if _is_container(site, each)), None)) is not None:
        raise NotProven(f"the function changes `{own}.{held}`, which is no Tensor")
    hidden = next((each for each in effects.held.values() if each in {*local, *names}), None)
    if hidden is not None:
        raise NotProven(f"`{hidden}` is a function of the file and a variable of the method")
    if effects.parts:
        raise NotProven(f"`{next(iter(effects.parts.values()))}` is not held by the instance of the method itself")
    tensors = [*written, *sorted(each for each in effects.read - set(written) if _is_tensor(site, each))]
    others = sorted(effects.read - set(tensors) - effects.held.keys())
    conditions = _conditions(site, effects, own, site.class_name)
    conditions.append(f"_fits_an_update({', '.join([own, tuple_of_words(tensors), tuple_of_words(others), *names])})")
    return Update(tensors, len(written), conditions)


def edit_of(site: Site, path: Replacement, update: Update, operator: Helper, *, whole: bool = False) -> Edit:
    """The edit with the operator's helpers, and with operators for copies of what changes."""
    owner = site.class_name
    copies = _copies(site, owner, update.tensors[: update.changed])
    asked = any(each.startswith("_owns_its_memory(") for each in update.conditions)
    helpers = (*_helpers(site), *(owning(site) if asked else ()), operator)
    if copies:
        fake = Helper("_copied_fake", texts.COPIED_FAKE, after=("_copied",), shared=True)
        helpers = (*helpers, Helper("_copied", _copied(site), after=("_operator_name",), shared=True), fake)
    return Edit((path, *copies), imports=("torch",), helpers=helpers, whole=whole, copies=True)


def _is_tensor(site: Site, name: str) -> bool:
    """True for a buffer or parameter, and for an attribute that a function of torch makes."""
    fact = site.evaluator.scope.attribute(name)
    if fact is None or fact.kind in _TENSORS:
        return fact is not None
    return torch_api.torch_function(fact.callee) in torch_api.FUNCTIONS_RETURNING_TENSOR


def _is_container(site: Site, name: str) -> bool:
    """True for an attribute that the class sets to a list, a dict or the like."""
    fact = site.evaluator.scope.attribute(name)
    return fact is not None and (fact.text[:1] in {"[", "{", "("} or (fact.callee or "").startswith(_CONTAINERS))


def _conditions(site: Site, effects: FunctionEffects, own: str, owner: str) -> list[str]:
    """What the analysis takes for granted."""
    conditions = [f"{site.torch}.compiler.is_dynamo_compiling()"]
    if effects.methods:
        conditions.append(f"type({own}) is {owner}")
    conditions += [single_process.ASKED.format(site.torch)] if effects.alone else []
    conditions += [f"{own}.{name} is False" for name in sorted(effects.off)]
    conditions += [f"{own}.{name} is {function}" for name, function in sorted(effects.held.items())]
    conditions += [f'_owns_its_memory({own}, "{name}")' for name in sorted(effects.replaced)]
    for name, value in sorted(effects.set.items()):
        conditions += _already(f"{own}.{name}", value)
    return conditions if site.no_grad or not effects.recorded else [*conditions, f"not {site.torch}.is_grad_enabled()"]


def method_parameters(site: Site, function: FunctionNode, own: str) -> list[str]:
    """The parameters behind the instance; NotProven for a method that cannot be called by the name of its class."""
    owner = site.class_name
    demand_torch(site)
    demand_class(site, owner)
    if not own or site.function != f"{owner}.{function.name}":
        raise NotProven("the code is in a nested function; move it into a function of its own")
    decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    if any(site.resolve_global(each) not in _DECORATORS for each in decorators):
        raise NotProven("the method is decorated")
    if isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the method is asynchronous")
    return operator_arguments(function)[1:]


def demand_class(site: Site, owner: str) -> None:
    """NotProven where the name of a class may be that of something else."""
    if not site.summary.binds_only(owner, ("class",)):
        raise NotProven(f"`{owner}` may be something else when the method runs")


def _copies(site: Site, owner: str, written: Sequence[str]) -> list[Replacement]:
    """Compile paths for statements that copy a tensor that the method changes, with an operator for `clone()`.

    In a graph that ends with a change of the tensor, Inductor leaves `clone()` out and a gradient would use new values.
    """
    calls, found = calls_in(site.source.text), []
    for definition in calls.family(owner):
        eager = beside_compile_paths(definition.node)
        for statement in (part for part in walk_scope(definition.node) if isinstance(part, _SIMPLE)):
            copies = [
                (part, copied)
                for part in walk(statement)
                if isinstance(part, ast.Call) and id(part) not in eager and (copied := _copied_by(part, written))
            ]
            if copies:
                new = {id(call): (call, f"_copied({site.text(copied)})") for call, copied in copies}
                inner = site.but(written=new).text(statement)
                dynamo = f"{site.torch}.compiler.is_dynamo_compiling()"
                found.append(path_beside(site, statement, asks_compiler(dynamo), [inner]))
    return found


def _copied_by(call: ast.Call, names: Sequence[str]) -> ast.expr | None:
    """The `self.queue.detach()` of `self.queue.detach().clone()`, where `queue` is among the names."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "clone" or call.args or call.keywords:
        return None
    inner: ast.expr = call.func.value
    while isinstance(inner, (ast.Attribute, ast.Call)):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.attr in names:
            return call.func.value
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return None


def _copied(site: Site) -> str:
    lines = decorator(site, "copied", "(Tensor x) -> Tensor")
    return "\n".join([*lines, *texts.COPIED.splitlines()])


def _already(attribute: str, value: ast.Constant) -> list[str]:
    """The conditions under which `attribute = value` changes nothing."""
    if value.value is None or isinstance(value.value, bool):
        return [f"{attribute} is {value.value}"]
    return [f"type({attribute}) is {type(value.value).__name__}", f"{attribute} == {value.value!r}"]


def decorating(update: Update) -> str:
    """The decorator of an operator."""
    words = [*(f'"{name}"' for name in update.tensors), f"changed={update.changed}"]
    return f"_one_update({', '.join(words)})"


def _helpers(site: Site) -> tuple[Helper, ...]:
    lines = decorator(site, "x", _SCHEMA)
    lines[1] = '    _operator_name(method.__name__.strip("_"), method.__module__),'
    made = texts.UPDATE.format(operator="\n".join(f"        {line}" for line in lines))
    fits, apart = texts.FITS.split("\n\n\n")
    return (
        NAMING,
        Helper("_are_apart", apart, shared=True),
        Helper("_fits_an_update", fits, after=("_are_apart",), shared=True, since="compiler.is_exporting"),
        Helper("_one_update", made, after=("_operator_name",), shared=True),
    )
