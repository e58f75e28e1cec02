"""number-of-range (GM409): a data-dependent branch on an element of `torch.arange`.

`if positions[0] > 0:` breaks the graph and waits for the device. Where the module itself counts the positions,
`positions = torch.arange(0, n)`, and asks nothing of them but whether they are None and what such a number is, a Python
`range` says the same, in the function that counts and in those it hands the positions to. Under `torch.compile` that is
what they are. Eager mode counts in a tensor, as before. Where somebody gives the positions, they stay a tensor, and
branches on their numbers break.

It is done where every use is known: calls are followed to one function of the module each. Where the positions go
anywhere else only under a test of the module's own attributes, such as `self.gradient_checkpointing and self.training`,
the compile path asks that this does not hold. It asks that the attributes to which is counted are integers, too. A size
of a tensor is no such number: Dynamo would compile anew for each length of the range. A layer of another class keeps
the tensor; under `torch.compile`, a hook that another project registers gets the range, and so does a `forward` that it
sets on the instance of a layer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import is_integer, is_name, is_not
from graphmend_codemod.analysis.scope import dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.torch_api import INT64_NAMES
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.edits import path_beside
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import beside_compile_paths, sure_calls
from graphmend_codemod.rules.proofs.numbers.number_uses import COMPARED, NumberUses

# Single numbers that are read of positions which `torch.arange` counted, in the function that counts or below it


@dataclass(frozen=True)
class Counted:
    """`name = torch.arange(...)` in a function that hands the positions, or keeps them, to where one decides."""

    function: Definition
    name: str
    assignment: ast.Assign
    call: ast.Call


def is_element_of(test: ast.expr) -> Iterator[str]:
    """The names of which a test reads a number: `p` for `p is not None and p[0] > 0`."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from is_element_of(value)
    elif is_not(test):
        yield from is_element_of(test.operand)
    else:
        element = test
        if isinstance(test, ast.Compare):
            if not isinstance(test.ops[0], COMPARED):
                return
            element = test.left
        if isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and is_integer(element.slice):
            yield element.value.id


def counted(calls: ModuleCalls, reader: Definition, name: str) -> list[Counted]:
    """Where positions are counted that get to `name` in `reader`, in order of the source."""
    found: list[Counted] = []
    todo, seen = [(reader, name)], set()
    while todo:
        function, held = todo.pop()
        if (function, held) in seen:
            continue
        seen.add((function, held))
        found += _counted_here(calls, function, held)
        if held not in parameter_names(function.node):
            continue
        for caller, call in calls.callers(function):
            given = function.arguments(call).get(held)
            if isinstance(given, ast.Name):
                todo.append((caller, given.id))
    return sorted(found, key=lambda each: each.assignment.lineno)


def _counted_here(calls: ModuleCalls, function: Definition, name: str) -> Iterator[Counted]:
    for node in walk_scope(function.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, call = node.targets[0], node.value
        held = is_name(target, name)
        counts = held and isinstance(call, ast.Call) and calls.qualified(call.func) == "torch.arange"
        if counts and isinstance(call, ast.Call) and id(node) not in beside_compile_paths(function.node):
            yield Counted(function, name, node, call)


rule = Rule(
    __name__,
    __doc__,
    title="read single positions from a Python range",
    contract=Contract(cost=Cost.NONE, compiled_state=ASKS_CLASSES),
)


_COMMENT = "# Numbers of it decide branches, and would have to be read out of a tensor."
_SPELLED = ("range", "isinstance", "int")


@rule.on(ast.If, candidate="test", when=lambda node: next(is_element_of(node.test), None) is not None)
def number_decides(site: Site, node: ast.If) -> Diagnostic | None:
    """`if positions[0] > 0:` where the positions come from `torch.arange` in this module."""
    names = [each for each in is_element_of(node.test) if _may_be_counted(site, each)]
    if not names or not _counts(site.source.text):
        return None
    calls = calls_in(site.source.text)
    reader = calls.at(site.evaluator.scope.node.lineno)
    if reader is None:
        return None
    found = [each for name in names for each in counted(calls, reader, name)]
    found = [each for each in found if _is_traced(calls, each.function)]
    if not found:
        return None
    counting = ", ".join(dict.fromkeys(each.function.qualname for each in found))
    message = f"data-dependent branch on a `torch.arange` element from `{counting}`: `{speculation.short(node.test)}`"
    edits: list[Replacement] = []
    reasons: list[str] = []
    for each in found:
        uses = NumberUses(sure_calls(site), site.resolve_global, swapped=True, outside=True)
        uses.several(each.function, each.name)
        try:
            replacement = _replacement(site, each, uses.unless, uses.conditions(site))
        except NotProven as reason:
            reasons.append(str(reason))
            continue
        if min(test.lineno for test in uses.tests) == node.lineno:  # type: ignore[attr-defined]
            edits.append(replacement)
    if edits:
        return Diagnostic(message, edit=Edit(tuple(edits)))
    # Where something else decides as well, the rule for that (a mask, GM109) has the reason to give.
    alone = not isinstance(node.test, ast.BoolOp) or not any(isinstance(each, ast.Call) for each in walk(node.test))
    return Diagnostic(message, declined=reasons[0]) if reasons and alone else None


def _may_be_counted(site: Site, name: str) -> bool:
    """True for a parameter, and for what a call gives, if it may be a tensor: this needs no look at the whole file."""
    scope = site.evaluator.scope
    if site.value(ast.Name(name, ast.Load())).is_python:
        return False
    given = (each for each in scope.outline.assignments if isinstance(each.value, ast.Call))
    return name in parameter_names(scope.node) or any(
        is_name(target, name) for each in given for target in each.targets
    )


@lru_cache(maxsize=4)
def _counts(text: str) -> bool:
    return "arange(" in text


def _is_traced(calls: ModuleCalls, function: Definition) -> bool:
    """True for `forward`, and for what it calls."""
    todo, seen = [function], set()
    while todo:
        each = todo.pop()
        if each.qualname.rpartition(".")[2] == "forward":
            return True
        if each not in seen:
            seen.add(each)
            todo += [caller for caller, _ in calls.callers(each)]
    return False


def _replacement(site: Site, made: Counted, unless: list[str], classes: list[str]) -> Replacement:
    """The assignment with a compile path in front."""
    node, call = made.assignment, made.call
    root = (dotted(call.func) or "").partition(".")[0]
    local = local_names(made.function.node)
    taken = [name for name in (*_SPELLED, root) if name in local]
    taken += [name for name in _SPELLED if site.evaluator.scope.resolve_global(name) not in {None, f"builtins.{name}"}]
    if taken or dotted(call.func) != f"{root}.arange" or site.evaluator.scope.resolve_global(root) != "torch":
        raise NotProven(f"`{(taken or [root])[0]}` means something else in this module")
    asked = {word.arg: word.value for word in call.keywords}
    whole = "dtype" not in asked or site.resolve_global(asked["dtype"]) in INT64_NAMES
    if not whole or asked.keys() - {"dtype", "device"} or not 1 <= len(call.args) <= 2:
        raise NotProven(f"`{speculation.short(call)}` does not count in integers, one by one")
    leaves = [leaf for argument in call.args for leaf in _numbers(argument)]
    conditions = [site.compiling]
    conditions += dict.fromkeys(f"isinstance({leaf}, int)" for leaf in leaves)
    conditions += [*classes, *(f"not ({each})" for each in unless)]
    numbers = ", ".join(site.text(argument) for argument in call.args)
    return path_beside(site, node, conditions, [_COMMENT, f"{made.name} = range({numbers})"])


def _numbers(node: ast.expr) -> list[str]:
    """The attributes in a sum that have to hold integers.

    Sizes would be as good, but Dynamo takes the length of a range for a constant, and would compile for each anew.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_numbers(node.left), *_numbers(node.right)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return []
    if (dotted(node) or "").startswith("self."):
        return [ast.unparse(node)]
    raise NotProven(f"`{speculation.short(node)}` may be a size; torch.compile would recompile for every new value")
