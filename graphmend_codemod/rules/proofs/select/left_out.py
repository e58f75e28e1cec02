"""A loop that fills a list, and leaves elements out by a tensor: every element with a flag, and their mean."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_names, is_name, reads_name
from graphmend_codemod.analysis.scope import body_of, parameter_names, walk
from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of
from graphmend_codemod.rules.proofs.calls.only_computing import OnlyComputing, names_read
from graphmend_codemod.rules.proofs.conditions.condition import Condition
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts
from graphmend_codemod.rules.proofs.select.rest_of_function import (
    APART,
    MAY_RUN,
    demand_own_names,
    known_before,
    own_values,
    stored_in,
)

_COMMENT = "# Each element, and whether eager mode has it."
_ALL_NUMBERS = '''\
def _all_numbers(elements, kept) -> bool:
    """Whether all elements are single floating numbers of one dtype: known while tracing."""
    return len(elements) > 0 and all(
        isinstance(each, torch.Tensor)
        and each.is_floating_point()
        and (each.shape, each.dtype, each.device) == ((), elements[0].dtype, kept[0].device)
        for each in elements
    )'''
_MEAN = '''\
def _mean_of_kept(elements, kept, or_zero):
    """The mean of the elements that are kept; 0 or, without `or_zero`, an error where none is."""
    count = sum(kept[1:], kept[0].long())
    chosen = [torch.where(flag, each, 0) for each, flag in zip(elements, kept)]
    if or_zero:
        return sum(chosen) / count.clamp(min=1)
    torch._assert_async(count > 0, "the list has no element")
    dtype = chosen[0].dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return (torch.stack(chosen).sum(dtype=wide) / count).to(dtype)'''
_HELPERS = (
    MAY_RUN,
    APART,
    Helper("_all_numbers", _ALL_NUMBERS, shared=True),
    Helper("_mean_of_kept", _MEAN, shared=True),
)
_KNOWN_MEAN = """
def mean(l, ignore_nan=False, empty=0):
    l = iter(l)
    if ignore_nan:
        pass
    try:
        n = 1
        acc = next(l)
    except StopIteration:
        if empty == 'raise':
            raise ValueError('Empty mean')
        return empty
    for n, v in enumerate(l, 2):
        acc += v
    if n == 1:
        return acc
    return acc / n
"""
"""The mean of a list or generator that many losses copy (bermanmaxim/LovaszSoftmax, lovasz_losses.py)."""


class Loop(NamedTuple):
    """A loop: what runs `before` the `branch` that leaves an element out, what `behind` it, and what is appended.

    `name` is the list that `element` is appended to.
    """

    node: ast.For
    before: tuple[ast.stmt, ...]
    branch: ast.If
    behind: tuple[ast.stmt, ...]
    element: ast.expr
    name: str


def loop_of(node: ast.For) -> Loop | None:
    """The loop, where it has one `if ...: continue`, and appends one element at its end; None for all others."""
    branches = [each for each in node.body if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Continue)]
    last = node.body[-1]
    call = last.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
    if len(branches) != 1 or call is None or node.orelse or not isinstance(node.target, ast.Name):
        return None
    branch, function = branches[0], call.func
    appends = isinstance(function, ast.Attribute) and function.attr == "append" and isinstance(function.value, ast.Name)
    if not appends or len(call.args) != 1 or call.keywords or len(branch.body) != 1 or branch.orelse:
        return None
    at = node.body.index(branch)
    name = function.value.id  # type: ignore[attr-defined]
    return Loop(node, tuple(node.body[:at]), branch, tuple(node.body[at + 1 : -1]), call.args[0], name)


def edit(site: Site, where: Site, loop: Loop, condition: Condition) -> Edit:
    """The compile path in front of the loop and of the mean behind it; NotProven where more is done than compute.

    `site` is the loop's, `where` that of the branch in it, which `condition` is the test of.
    """
    demand_torch(site)
    for reason in (condition.skipped, condition.hazards.impure):
        if reason is not None:
            raise NotProven(reason)
    result, or_zero = _mean_behind(site, loop)
    _demand_new_list(site, loop)
    demand_own_names(site, [loop.node])
    function, counter = site.evaluator.scope.node, loop.node.target.id  # type: ignore[attr-defined]
    names = parameter_names(function) | set(site.place.env)
    code, own = OnlyComputing(site), site.evaluator.scope.self_name
    whole = [*loop.before, *loop.behind, ast.Return(loop.element)]
    attributes = code.demand(whole, own, names | {counter} | stored_in(loop.before), {counter})
    if any(reads_name(part, loop.name) for each in (*whole, loop.branch) for part in walk(each)):
        raise NotProven(f"the loop reads `{loop.name}` while it fills it")
    before = known_before(site, names_read([*whole, ast.Return(loop.branch.test)]) - {counter} - stored_in(whole))
    if own in before:
        before.remove(own)
    asked = [*(site.operand_of_and(each) for each in condition.static), *_asked_of(where, loop, condition)]
    asked += _counts(site, loop.node.iter)
    given = sorted(before)
    asked.append(site.call("_both_may_run(", [tuple_of(given), own_values(site, attributes)], deeper=1))
    return _written(site, where, loop, condition, asked, result, or_zero)


def _asked_of(where: Site, loop: Loop, condition: Condition) -> list[str]:
    """What has to be a tensor for the test: what it reads, or what that is computed from in the same round."""
    late = stored_in(loop.before) | {loop.node.target.id}  # type: ignore[attr-defined]
    todo, found, seen = [*condition.tensors], dict[str, None](), set[str]()
    while todo:
        for fact in tensor_facts(where, todo.pop(0)):
            names = all_names(ast.parse(fact, mode="eval")) & late
            made = [each for each in loop.before if isinstance(each, ast.Assign) and stored_in([each]) & names]
            if not names:
                found[fact] = None
            elif (
                not fact.startswith("isinstance(")
                or not made
                or not all(isinstance(each.targets[0], ast.Name) for each in made)
            ):
                raise NotProven(f"`{fact}` can only be asked inside of the loop")
            todo += [each.value for each in made if not names <= seen]
            seen |= names
    for fact in condition.facts:
        if all_names(ast.parse(fact, mode="eval")) & late:
            raise NotProven(f"`{fact}` can only be asked inside of the loop")
    return [*found, *condition.facts]


def _counts(site: Site, over: ast.expr) -> list[str]:
    """What says that a loop goes through Python integers."""
    if isinstance(over, ast.Call) and is_name(over.func, "range") and site.resolve(over.func) == "builtins.range":
        return []
    if not isinstance(over, ast.Name):
        raise NotProven(f"cannot infer that `{site.text(over)}` has integers; loop over a `range` or a name")
    return [f"isinstance({over.id}, (list, tuple, range))", f"all(isinstance(each, int) for each in {over.id})"]


def _demand_new_list(site: Site, loop: Loop) -> None:
    """NotProven unless the list is empty before the loop, and nothing else has it."""
    block, position = site.place.blocks[-1]
    made = [
        number
        for number, each in enumerate(block[:position])
        if isinstance(each, ast.Assign) and any(is_name(target, loop.name) for target in each.targets)
    ]
    new = made and isinstance(value := block[made[-1]].value, ast.List) and not value.elts  # type: ignore[attr-defined]
    parts = [part for each in (block[made[-1] + 1 : position] if made else ()) for part in walk(each)]
    if not new or any(reads_name(part, loop.name) for part in parts):
        raise NotProven(f"cannot infer that `{loop.name}` is empty before the loop")


def _mean_behind(site: Site, loop: Loop) -> tuple[ast.Return, bool]:
    """The `return` of the mean behind the loop, and whether it is 0 where there is no element."""
    block, position = site.place.blocks[-1]
    last = block[position + 1] if len(block) > position + 1 else None
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Call):
        call, name = last.value, loop.name
        if len(call.args) == 1 and not call.keywords and is_name(call.args[0], name) and _is_mean(site, call.func):
            return last, True
        inner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "mean" else None
        if site.resolve(call.func) == "torch.mean" and len(call.args) == 1:
            inner = call.args[0]
        elif call.args:
            inner = None
        stacks = isinstance(inner, ast.Call) and site.resolve(inner.func) == "torch.stack" and not call.keywords
        if stacks and len(inner.args) == 1 and not inner.keywords and is_name(inner.args[0], name):  # type: ignore[union-attr]
            return last, False
    raise NotProven(f"the mean of `{loop.name}` is not returned right behind the loop; manually keep flags beside it")


def _is_mean(site: Site, function: ast.expr) -> bool:
    """True for the function of the file that is the known mean, whatever it is called."""
    if not isinstance(function, ast.Name) or site.evaluator.scope.is_local(function.id):
        return False
    from graphmend_codemod.analysis.callgraph import calls_in

    calls = calls_in(site.source.text)
    found = [each.node for each in calls.named(function.id)]
    known = ast.parse(_KNOWN_MEAN).body[0]
    return len(found) == 1 and calls.top.binds_once(function.id) and _form(found[0]) == _form(known)  # type: ignore[arg-type]


def _form(function: ast.FunctionDef) -> list[str]:
    """The function as text, without what it does where it ignores nan."""
    found = [ast.unparse(each) for each in (function.args, *function.decorator_list)]
    for each in body_of(function):
        ignores = isinstance(each, ast.If) and is_name(each.test, "ignore_nan") and not each.orelse
        found.append("if ignore_nan" if ignores else ast.unparse(each))
    return found


def _written(
    site: Site, where: Site, loop: Loop, condition: Condition, asked: Sequence[str], result: ast.Return, or_zero: bool
) -> Edit:
    element, kept, elements, flag = (site.free_name(each) for each in ("element", "kept", "elements", "is_kept"))
    read = names_read([*loop.behind, ast.Return(loop.element)])
    own = {site.evaluator.scope.self_name}
    given = sorted(each for each in read - own if site.evaluator.scope.is_local(each) and not _only_behind(loop, each))
    header = site.header("if", [site.compiling, *asked])
    inner: list[str | Original] = [f"\n    def {element}({', '.join(given)}):"]
    if loop.behind:
        span = site.span(loop.behind[0]).through(site.span(loop.behind[-1]))
        inner += ["\n        ", Original(span, 1)]
    inner += [f"\n        return {site.text(loop.element)}\n"]
    rounds: list[str | Original] = [f"\n    {elements}, {kept} = [], []"]
    rounds += [f"\n    for {loop.node.target.id} in {site.text(loop.node.iter)}:"]  # type: ignore[attr-defined]
    if loop.before:
        span = site.span(loop.before[0]).through(site.span(loop.before[-1]))
        rounds += ["\n        ", Original(span, 1)]
    call = f"{elements}.append({element}(*_gradients_where({flag}, {tuple_of(given)})))"
    lines = [f"{flag} = ~({condition.choice})", f"{kept}.append({flag})", site.broken(call, 2)]
    rounds += ["".join(f"\n        {each}" for each in lines), "\n"]
    ready = site.header("if", [site.compiling, *asked, f"_all_numbers({elements}, {kept})"])
    taken = under(ready, f"return _mean_of_kept({elements}, {kept}, or_zero={or_zero})")
    span = site.span(loop.node).through(site.span(result))
    parts = (under(header, _COMMENT), *inner, *rounds, taken, "\nelse:\n    ", Original(span, 1))
    return Edit((Replacement(span, tuple(parts)),), imports=site.imports, helpers=_HELPERS)


def _only_behind(loop: Loop, name: str) -> bool:
    """True for a name that the code behind the branch binds before it reads it."""
    return name in stored_in(loop.behind) and name not in stored_in(loop.before)
